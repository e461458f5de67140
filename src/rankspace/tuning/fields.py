"""Fields in `tune`: joined vectors, and what each field contributes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from .._engine.fields import Fields, field_slices
from ..evaluation.cross_validation import (
    Evidence,
    Question,
    cross_validate,
    evaluate_on,
    measurable,
)
from ..evaluation.search_task import SearchTask
from ..evaluation.significance import ClusteredMean
from ..learners.families import Family
from ..learners.fields import FieldFamily
from ..metrics.embedding import BilinearMetric, EmbeddingMetric, unchanged_metric
from ..relevance.inputs import check_stored_order, row_ids
from ..relevance.relevance import Relevance
from ..search.index import Index
from .parts import Corpus, Learned, Request
from .report import SignalRow, TuneReport
from .trials import OutOfTime, Result, Trials

NAMES = {"all": "all queries", "known": "known documents", "new": "new documents"}


def joined_fields(X: Any, queries: Any) -> tuple[Fields, Fields]:
    """Items and queries as fields with the same names; one vector a query serves all fields."""
    items = X if isinstance(X, Fields) else Fields(X)
    if queries is None:
        raise ValueError(
            "fields need separate queries: here the items are the queries. Pass the queries' "
            "vectors as queries=...."
        )
    if isinstance(queries, Mapping):
        queries = Fields(queries)
    if not isinstance(queries, Fields):
        queries = Fields(dict.fromkeys(items.names, queries))
    theirs = dict(zip(queries.names, queries.widths, strict=True))
    ours = dict(zip(items.names, items.widths, strict=True))
    if list(theirs.items()) != list(ours.items()):
        raise ValueError(
            "queries must have the fields of X, in their order and width: got "
            f"{_shown(theirs)} for {_shown(ours)}."
        )
    return items, queries


def _shown(widths: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {width}" for name, width in widths.items())


def check_field_options(similarity: str | None, methods: Any) -> str:
    """The similarity of joined unit vectors: fields are compared by cosine, each of them."""
    if similarity not in (None, "cosine"):
        raise ValueError(
            f"fields are compared by similarity 'cosine', each of them: got {similarity!r}."
        )
    if methods is not None and list(methods) != ["query"]:
        raise ValueError(f"fields need the method 'query' alone: got {methods!r}.")
    return "dot"


def field_families(families: list[Family], widths: tuple[int, ...]) -> list[Family]:
    """The families, with weights of the fields first."""
    return [FieldFamily.of(family, widths) for family in families]


class FieldCorpus(Corpus):
    """Documents with several vectors each, which are joined."""

    fields: Fields

    def __init__(self, request: Request) -> None:
        similarity = check_field_options(request.similarity, request.methods)
        self.fields, by_field = joined_fields(request.X, request.queries)
        check_stored_order(request.relevance, self.fields, by_field)
        joined = replace(
            request,
            X=np.asarray(self.fields),
            queries=np.asarray(by_field),
            item_ids=row_ids(self.fields, request.item_ids, "item"),
            query_ids=row_ids(by_field, request.query_ids, "query"),
            similarity=similarity,
        )
        super().__init__(joined)
        self.rows: list[SignalRow] = []
        self.rivals: list[str] = []

    @staticmethod
    def is_requested(request: Request) -> bool:
        """Whether the vectors have names."""
        return isinstance(request.X, Fields | Mapping)

    def families(self, task: SearchTask) -> list[Family]:
        """The families, with weights of the fields."""
        return field_families(super().families(task), self.fields.widths)

    def extend(self, learned: Learned) -> Learned:
        """Measure what each field contributes."""
        names = self.fields.names
        widths = dict(zip(names, self.fields.widths, strict=True))
        trials, metric = learned.trials, learned.metric
        evidence = None
        if not trials.skipped:
            evidence = field_evidence(trials, learned.best, self.fields)
        if evidence is not None:
            self.rows = field_rows(evidence, metric, self.fields)
            answer = "this answer"
            if self.request.runs is not None:
                # They are weighed later.
                answer = "this answer without runs"
            self.rivals = better_alone(evidence, learned.best, names, answer)
        metric.parameters["fields"] = widths
        return learned

    def describe(self, report: TuneReport) -> TuneReport:
        """The report with what each field contributes."""
        return with_fields(report, self.rows, self.rivals)


@dataclass(frozen=True)
class DropPath:
    """The metric of one strength, then the same without each field, then each field unmapped."""

    family: Family | None
    strength: int
    fields: Fields

    @property
    def strengths(self) -> tuple[str, ...]:
        """A name for each metric."""
        names = self.fields.names
        alone = (f"{name} alone" for name in names)
        return ("all fields", *names, *alone)

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[EmbeddingMetric]:
        """Learn the metric once, and leave fields out."""
        metric = unchanged = unchanged_metric(X.shape[1], "dot", X.dtype)
        if self.family is not None and self.strength:
            path = self.family.metrics(X, relevance, queries, index)
            metric = next(itertools.islice(path, self.strength - 1, None))
        yield metric
        for columns in field_slices(self.fields.widths):
            query_map = metric.query_map.copy()
            query_map[:, columns] = 0
            query_map[columns] = 0
            yield BilinearMetric(query_map, metric.item_map)
        for columns in field_slices(self.fields.widths):
            query_map = np.zeros_like(unchanged.query_map)
            query_map[columns] = unchanged.query_map[columns]
            yield BilinearMetric(query_map, unchanged.item_map)


def field_evidence(
    trials: Trials, best: Result | None, fields: Fields
) -> Evidence | None:
    """Held-out values without each field and of each alone; None if the time is over."""
    family, strength = None, 0
    if _is_used(best):
        family, strength = best.family, best.strength
    path = DropPath(family, strength, fields)
    check = trials.deadline.check
    try:
        if trials.on_dev.any():
            return evaluate_on(path, trials.task, trials.on_dev, check)
        options = (trials.n_folds, trials.seed, check, _show_nothing)
        return cross_validate(path, trials.training, *options)
    except OutOfTime:
        trials.skipped.append("contributions of fields")
        return None


def _is_used(best: Result | None) -> TypeGuard[Result]:
    return best is not None and best.verdict.decision != "keep"


def field_rows(
    evidence: Evidence, metric: EmbeddingMetric, fields: Fields
) -> list[SignalRow]:
    """What dropping each field costs on held-out queries."""
    everything = evidence.questions["all"]
    shares = metric.parameters.get("weights", np.full(len(fields.names), np.nan))
    rows = []
    for number, name in enumerate(fields.names):
        cost = everything.differences[1] - everything.differences[2 + number]
        estimate = _estimate(cost, everything)
        low, high = estimate.interval
        weight = (float(shares[number]), np.nan, np.nan)
        about = ""
        if fields.n_missing[name]:
            about = f"{fields.n_missing[name]:,} documents lack it"
        rows.append(
            SignalRow(f"field {name}", *weight, estimate.mean, low, high, about)
        )
    return rows


def better_alone(
    evidence: Evidence, best: Result | None, names: Sequence[str], answer_name: str
) -> list[str]:
    """A sentence for each field that, alone and unmapped, scores higher than the answer.

    Unchanged vectors count all fields alike, which may be worse than the search of today if that
    uses one field.
    """
    sentences = []
    for number, name in enumerate(names):
        found = []
        for question, values in measurable(evidence.questions).items():
            alone = values.differences[2 + len(names) + number]
            answer = best.question(question).differences[0] if _is_used(best) else 0.0
            estimate = _estimate(alone - answer, values)
            if estimate.mean > 0:
                low, high = estimate.interval
                found.append(
                    f"{NAMES[question]} {estimate.mean:+.4f}, {low:+.4f} to {high:+.4f}"
                )
        if found:
            sentences.append(
                f"Field {name} alone, unmapped, scores higher than {answer_name} "
                f"({'; '.join(found)}): if it is your search today, compare with it first."
            )
    return sentences


def _estimate(values: np.ndarray, question: Question) -> ClusteredMean:
    """The mean of differences of the queries of a question."""
    return Question(values[None], question.clusters, question.folds).estimate(0)


def _show_nothing(fraction: float) -> None:
    """No progress is shown."""


def with_fields(
    report: TuneReport, rows: list[SignalRow], rivals: list[str]
) -> TuneReport:
    """The report with what each field contributes."""
    note = (
        "Fields: each is compared by cosine, and the weighted cosines are summed; a document or "
        "query that lacks a field has 0 there. The weight is the field's share; its gain is what "
        "leaving the field out of the metric costs. Unchanged: all fields count alike."
    )
    step = (
        "Join the fields of documents and of queries first, by np.asarray(Fields(...)): the metric "
        "is for joined vectors."
    )
    return replace(
        report,
        signals=[*rows, *report.signals],
        notes=[*report.notes, note, *rivals],
        next_steps=[step, *report.next_steps],
    )
