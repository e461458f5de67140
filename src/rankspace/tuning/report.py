"""Tuning report: the decision in one sentence, and the tables that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._engine.files import PathLike
from .._engine.tables import Row, as_text
from ..display.page.answer import Answer, AnswerTable
from ..display.page.html import measure_label
from ..display.page.report import write_report
from ..evaluation.held_out import judged_share, orientation
from ..evaluation.memory import WEIGHTS
from ..evaluation.report import Report, _Table
from ..evaluation.significance import queries_needed
from ..relevance.relevance import Relevance
from ..search.ranking import Ranking
from .data import TuningData
from .selection import ALPHA, MIN_GROUPS, MIN_QUERIES
from .trials import Evidence, Result, Trials

N_EXTREMES = 3  # queries that the page shows for gains, and for losses
GAINS = (0.01, 0.02, 0.05)  # that the table of queries needed is about


class QuestionRow(NamedTuple):
    """What held-out queries say about one question; NaN where it cannot be measured."""

    label: str
    unchanged: float
    memory: float
    tuned: float
    difference: float
    low: float
    high: float
    outcome: str
    n_queries: int
    n_groups: int


class PathRow(NamedTuple):
    """Mean of the measure over held-out queries for one strength of one family."""

    family: str
    strength: str
    everything: float
    known: float
    new: float
    chosen: bool


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TuneReport(_Table):
    """Tuning report: what to do, and why.

    Parameters
    ----------
    decision : str
        "ship", "known only" or "keep".
    sentence : str
        The decision and its reason.
    measure, similarity, prefer : str
        What was measured, what vectors are compared by, and what was preferred.
    judged_on : str
        "held-out queries" of cross-validation, or "dev queries".
    questions : list of QuestionRow
        All queries, those for known and those for new documents.
    path : list of PathRow
        Every strength of every family.
    p_value : float
        One-sided p-value of the only test.
    needed : dict of str to dict of float to int
        Queries that would show a gain with 80 % power, for each question.
    judged_share : tuple of float
        Share of the first ten documents that somebody judged, unchanged and tuned.
    next_steps : list of str
        What to run next.
    before, after : Report
        Values of the held-out queries.
    known : ndarray
        Share of the relevant documents of each query that training queries made known.
    rankings : tuple of Ranking
        The first documents of held-out queries, before and after.
    relevance : Relevance
        Their judgments.
    query_numbers : ndarray of int
        Numbers of these queries among those passed to `tune`.
    skipped : list of str
        Families that the time budget left out.
    seconds : float
        Total time.
    """

    decision: str
    sentence: str
    measure: str
    similarity: str
    prefer: str
    judged_on: str
    questions: list[QuestionRow]
    path: list[PathRow]
    p_value: float
    needed: dict[str, dict[float, int]]
    judged_share: tuple[float, float]
    next_steps: list[str]
    before: Report
    after: Report
    known: np.ndarray
    rankings: tuple[Ranking, Ranking]
    relevance: Relevance
    query_numbers: np.ndarray
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def question(self, label: str) -> QuestionRow | None:
        """The row of a question, None if it was not asked."""
        rows = {row.label.split()[0]: row for row in self.questions}
        return rows.get(label)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values of single queries, as plain Python objects."""
        return {
            "decision": self.decision,
            "sentence": self.sentence,
            "measure": self.measure,
            "similarity": self.similarity,
            "prefer": self.prefer,
            "judged_on": self.judged_on,
            "p_value": _plain(self.p_value),
            "questions": [_plain_row(row) for row in self.questions],
            "path": [_plain_row(row) for row in self.path],
            "queries_needed": {
                name: {str(gain): n for gain, n in gains.items()}
                for name, gains in self.needed.items()
            },
            "judged_share": [_plain(share) for share in self.judged_share],
            "next_steps": self.next_steps,
            "skipped": self.skipped,
            "seconds": self.seconds,
        }

    # ------------------------------------------------------------------ text

    @property
    def _label(self) -> str:
        return measure_label(self.measure)

    @property
    def _first_line(self) -> str:
        return (
            f"{self._label} by {self.similarity}, on {self.judged_on}, "
            f"prefer={self.prefer!r}"
        )

    def __str__(self) -> str:
        parts = [self._first_line, "", self.sentence]
        if self.questions:
            parts += ["", as_text(self._header(), self._rows())]
        if self.path:
            parts += ["", as_text(self._path_header(), self._path_rows())]
        return "\n".join([*parts, *self._notes()])

    def _header(self) -> list[str]:
        head = [self.judged_on, "unchanged", "memory", "tuned", "difference"]
        return [*head, "low", "high", "outcome", "queries", "groups"]

    def _rows(self) -> list[Row]:
        return [tuple(_cell(value) for value in row) for row in self.questions]

    def _path_header(self) -> list[str]:
        return ["regularisation, strong to weak", "all", "known", "new", ""]

    def _path_rows(self) -> list[Row]:
        rows: list[Row] = []
        for row in self.path:
            name = row.strength
            if len({other.family for other in self.path if other.family}) > 1:
                name = f"{row.family}, {row.strength}" if row.family else row.strength
            values = [_cell(row.everything), _cell(row.known), _cell(row.new)]
            rows.append((name, *values, "chosen" if row.chosen else ""))
        return rows

    def _notes(self) -> list[str]:
        notes = [""]
        for name, gains in self.needed.items():
            counts = ", ".join(f"{n:,} for {gain:g}" for gain, n in gains.items())
            notes.append(
                f"Judged queries that show a gain with 80 % power, {name}: {counts}."
            )
        if self.questions:
            before, after = self.judged_share
            notes.append(
                "Tuned: each fold with the strength that the other folds choose, so that no query "
                "helps to choose its own."
                if self.judged_on == "held-out queries"
                else "Tuned: learned from the other queries."
            )
            notes.append(
                f"Of the first ten documents, {before:.0%} are judged with unchanged vectors and "
                f"{after:.0%} with tuned ones; the others count as irrelevant."
            )
        if self.skipped:
            notes.append(f"Skipped for lack of time: {', '.join(self.skipped)}.")
        return [*notes, *(f"Next: {step}" for step in self.next_steps)]

    # ------------------------------------------------------------------ page

    def write_page(
        self,
        path: PathLike,
        *,
        title: str = "rankspace tune",
        texts: Sequence[str] | None = None,
        query_texts: Sequence[str] | None = None,
    ) -> Path:
        """Write the report as an HTML page, with the queries that gain and lose most.

        Parameters
        ----------
        path : path
            The file to write.
        title : str, default="rankspace tune"
            Heading of the page.
        texts, query_texts : sequence of str, optional
            Texts of all items and of all queries that were passed to `tune`.

        Returns
        -------
        Path
        """
        numbers = self.query_numbers
        relevance = self.relevance
        if relevance.query_ids is None:
            relevance = replace(relevance, query_ids=numbers.astype(str))
        describe_query = None
        if query_texts is not None:
            describe_query = [query_texts[int(n)] for n in numbers].__getitem__
        return write_report(
            path,
            title=title,
            before=self.before,
            after=self.after,
            names=("unchanged", "tuned"),
            rankings=self.rankings,
            relevance=relevance,
            answer=self._answer,
            describe_item=None if texts is None else texts.__getitem__,
            describe_query=describe_query,
            n_extremes=N_EXTREMES,
        )

    @property
    def _answer(self) -> Answer:
        kinds = {"ship": "better", "known only": "equal", "keep": "equal"}
        tables = [
            AnswerTable("Held-out queries", self._header(), self._rows()),
            AnswerTable(
                f"Mean {self._label} by strength",
                self._path_header(),
                self._path_rows(),
            ),
        ]
        notes = [self._first_line, *filter(None, self._notes())]
        return Answer(kinds[self.decision], self.decision, self.sentence, tables, notes)


def _cell(value: Any) -> Any:
    if isinstance(value, float) and np.isnan(value):
        return "-"
    return value


def _plain(value: Any) -> Any:
    """A value for JSON, which has no NaN."""
    if isinstance(value, float) and value != value:
        return None
    return value


def _plain_row(row: Any) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row._asdict().items()}


# ---------------------------------------------------------------------- making it


def make_report(
    trials: Trials, results: list[Result], best: Result | None, seconds: float
) -> TuneReport:
    """The report of all trials, about the best result."""
    if best is None:
        return _unlearned(trials, seconds)
    return _Maker(trials, results, best).report(seconds)


class _Maker:
    """Puts the report of a result together."""

    def __init__(self, trials: Trials, results: list[Result], best: Result) -> None:
        self.trials = trials
        self.results = results
        self.best = best
        self.measure = trials.data.measure
        self.sign = orientation(self.measure)
        self.on_dev = bool(trials.on_dev.any())
        self.data = trials.data.take(trials.on_dev if self.on_dev else ~trials.on_dev)
        self.classes = self.data.relevance.has_classes

    def report(self, seconds: float) -> TuneReport:
        """The report."""
        values = self.best.judged.by_query
        strengths = self.best.strengths["all"]
        before, after = self._values(values.values, strengths)
        shares = tuple(
            judged_share(_at(values.tops, rows), self.data.relevance)
            for rows in (np.zeros_like(strengths), strengths)
        )
        rows = self._question_rows()
        return TuneReport(
            decision=self.best.verdict.decision,
            sentence=self._sentence(rows),
            measure=self.measure,
            similarity=self.data.similarity,
            prefer=self.trials.prefer,
            judged_on="dev queries" if self.on_dev else "held-out queries",
            questions=list(rows.values()),
            path=self._path_rows(),
            p_value=self.best.verdict.p_value,
            needed=self._needed(),
            judged_share=(shares[0], shares[1]),
            next_steps=self._next_steps(),
            before=_as_report(before, self.data),
            after=_as_report(after, self.data),
            known=values.known,
            rankings=(
                self._ranking(np.zeros_like(strengths)),
                self._ranking(strengths),
            ),
            relevance=self.data.relevance,
            query_numbers=self.data.query_numbers,
            skipped=self.trials.skipped,
            seconds=seconds,
        )

    def _values(
        self, values: np.ndarray, strengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        after = values[strengths, np.arange(strengths.size)]
        return self.sign * values[0], self.sign * after

    def _ranking(self, strengths: np.ndarray) -> Ranking:
        """The first documents of each query with a strength of its own."""
        values = self.best.judged.by_query
        lists = []
        for items, distances in zip(
            _at(values.tops, strengths), _at(values.distances, strengths), strict=True
        ):
            shown = items >= 0
            lists.append((items[shown], distances[shown]))
        return _as_ranking(lists, self.data)

    # ------------------------------------------------------------------ tables

    def _name(self, question: str) -> str:
        if question == "all":
            return "all queries"
        return f"{question} {'classes' if self.classes else 'documents'}"

    def _question_rows(self) -> dict[str, QuestionRow]:
        return {name: self._question_row(name) for name in ("all", "known", "new")}

    def _question_row(self, name: str) -> QuestionRow:
        question = self.best.question(name)
        asked = ~np.isnan(question.differences[0])
        n_queries = int(asked.sum())
        n_groups = int(np.unique(question.clusters[asked]).size)
        if name not in self.best.verdict.estimates:
            blank = (np.nan,) * 6
            return QuestionRow(
                self._name(name), *blank, "not measurable", n_queries, n_groups
            )
        estimate = self.best.verdict.estimates[name]
        values = self.best.judged.values_of(name)
        unchanged = float(values.values[0, asked].mean())
        low, high = estimate.interval
        return QuestionRow(
            self._name(name),
            self.sign * unchanged,
            self.sign * self._memory(values.memory, asked),
            self.sign * (unchanged + estimate.mean),
            self.sign * estimate.mean,
            *sorted((self.sign * low, self.sign * high)),
            self.best.verdict.outcomes[name],
            n_queries,
            n_groups,
        )

    def _memory(self, memory: np.ndarray, asked: np.ndarray) -> float:
        """Mean of the memory baseline with the weight that is best over all queries."""
        overall = self.best.judged.by_query.memory
        if len(overall) < len(WEIGHTS) or np.isnan(overall).all():
            return np.nan
        best = int(np.nanmean(overall, axis=1).argmax())
        return float(np.nanmean(memory[best, asked]))

    def _path_rows(self) -> list[PathRow]:
        rows = []
        for result in self.results:
            labels = ("unchanged", *result.family.strengths)
            means = self._path_means(result.path)
            for strength, label in enumerate(labels):
                if strength == 0 and rows:
                    continue
                family = result.family.label if strength else ""
                chosen = result is self.best and strength == self._acted_on
                rows.append(PathRow(family, label, *means[strength], chosen))
        return rows

    @property
    def _acted_on(self) -> int:
        """The strength of the metric that is returned; 0 for unchanged vectors."""
        keeps = self.best.verdict.decision == "keep"
        return 0 if keeps else self.best.strength

    def _path_means(self, path: Evidence) -> np.ndarray:
        """Means by strength, for all queries and for known and new documents."""
        columns = []
        for name, question in path.questions.items():
            asked = ~np.isnan(question.differences[0])
            values = path.values_of(name).values[:, asked]
            if asked.any():
                columns.append(self.sign * values.mean(axis=1))
            else:
                columns.append(np.full(len(values), np.nan))
        return np.column_stack(columns)

    def _needed(self) -> dict[str, dict[float, int]]:
        """Queries that show a gain with 80 % power, by the spread of the best strength."""
        needed = {}
        for name in self.best.verdict.estimates:
            question = self.best.path.questions[name]
            if not question.is_measurable:
                continue
            means = np.nanmean(question.differences[1:], axis=1)
            spread = question.estimate(1 + int(means.argmax()))
            needed[self._name(name)] = {
                gain: queries_needed(gain, spread) for gain in GAINS
            }
        return needed

    # ------------------------------------------------------------------ words

    def _sentence(self, rows: dict[str, QuestionRow]) -> str:
        everything = rows["all"]
        change = (
            f"{measure_label(self.measure)} goes from {everything.unchanged:.3f} to "
            f"{everything.tuned:.3f} (one-sided p = {self.best.verdict.p_value:.2g})"
        )
        label = self.best.family.label
        new = rows["new"]
        decision = self.best.verdict.decision
        if decision == "ship":
            return f"Ship it ({label}): {change}. {self._about_new(new)}"
        if decision == "known only":
            what = self._name("known")
            return (
                f"Ship it for {what} only ({label}): {change}. {self._about_new(new)}"
            )
        return f"Keep what you have: {self._why_not(rows)}"

    def _about_new(self, row: QuestionRow) -> str:
        name = self._name("new").capitalize()
        limits = f"{row.low:+.3f} to {row.high:+.3f}"
        if row.outcome == "safe":
            return f"{name} do not lose: {row.difference:+.3f} ({limits})."
        if row.outcome == "harmed":
            return f"{name} lose: {row.difference:+.3f} ({limits})."
        if row.outcome == "undecided":
            return (
                f"{name} may lose: {row.difference:+.3f} ({limits}); about "
                f"{self._to_settle():,} judged queries would settle it."
            )
        return (
            f"{name} could not be measured: that takes {MIN_QUERIES} queries in {MIN_GROUPS} "
            f"groups that share none; there are {row.n_queries} in {row.n_groups}."
        )

    def _to_settle(self) -> int:
        """Queries that would show whether new documents lose more than the tolerance."""
        estimate = self.best.verdict.estimates["new"]
        margin = max(estimate.mean + self.trials.tolerance, self.trials.tolerance / 2)
        return queries_needed(margin, estimate)

    def _why_not(self, rows: dict[str, QuestionRow]) -> str:
        verdict = self.best.verdict
        for name in ("known", "new"):
            row = rows[name]
            if verdict.outcomes.get(name) == "harmed" and row.difference:
                return (
                    f"with the {self.best.family.label}, {self._name(name)} lose "
                    f"{abs(row.difference):.3f} ({row.low:+.3f} to {row.high:+.3f})."
                )
        target = {"both": "all"}.get(self.trials.prefer, self.trials.prefer)
        row = rows[target] if target in verdict.estimates else rows["all"]
        if not row.difference:
            return "no regularisation ranks better than unchanged vectors."
        return (
            f"no significant gain, {row.difference:+.3f} on {row.label} (one-sided p = "
            f"{verdict.p_value:.2g}; required: at most {self._level:.2g})."
        )

    @property
    def _level(self) -> float:
        """Level of the first test by Holm's correction."""
        return ALPHA / max(1, len(self.results))

    def _next_steps(self) -> list[str]:
        if self.best.verdict.decision == "keep":
            return ["judge more queries and run tune again, or keep the vectors."]
        if self.best.family.method == "query":
            return [
                "map each query before the search; documents and their index stay unchanged: "
                "rankspace transform METRIC QUERIES.npy --side queries --output MAPPED.npy, or "
                "rankspace export METRIC --to onnx --output query-map.onnx."
            ]
        return [
            "map documents and queries, and build the index anew: rankspace export METRIC "
            "--vectors CORPUS.npy --to faiss --output CORPUS.faiss."
        ]


def _at(table: np.ndarray, strengths: np.ndarray) -> np.ndarray:
    """The entry of each query at a strength of its own."""
    return table[strengths, np.arange(strengths.size)]


def _as_report(values: np.ndarray, data: TuningData) -> Report:
    """The measure of each query as a report."""
    errors = frozenset() if orientation(data.measure) > 0 else frozenset([data.measure])
    return Report(
        {data.measure: values},
        errors,
        data.relevance.query_ids,
        data.relevance.weights,
        similarity=data.similarity,
    )


def _as_ranking(
    lists: list[tuple[np.ndarray, np.ndarray]], data: TuningData
) -> Ranking:
    """The first documents of each query as a ranking."""
    ranking = Ranking.from_pairs(lists, data.relevance.n_items)
    return replace(ranking, similarity=data.similarity)


def _unlearned(trials: Trials, seconds: float) -> TuneReport:
    """The report when nothing was learned: no room for a gain, or no time."""
    data = trials.data
    score = data.baseline()
    mean = data.baseline_mean()
    label = measure_label(data.measure)
    if trials.skipped:
        sentence = (
            f"Keep what you have: the time budget ended before {trials.skipped[0]} was "
            "cross-validated."
        )
    else:
        sentence = (
            f"Keep what you have: unchanged vectors have {label} {mean:.3f}, so there is nothing "
            "to gain."
        )
    values = np.full(data.n_queries, np.nan)
    values[data.baseline_queries] = orientation(data.measure) * score.values
    report = _as_report(values, data)
    lists = [(np.zeros(0, np.int64), np.zeros(0))] * data.n_queries
    for query, items, distances in zip(
        data.baseline_queries, score.tops, score.distances, strict=True
    ):
        shown = items >= 0
        lists[query] = (items[shown], distances[shown])
    ranking = _as_ranking(lists, data)
    return TuneReport(
        decision="keep",
        sentence=sentence,
        measure=data.measure,
        similarity=data.similarity,
        prefer=trials.prefer,
        judged_on="a sample of the queries",
        questions=[],
        path=[],
        p_value=1.0,
        needed={},
        judged_share=(np.nan, np.nan),
        next_steps=[],
        before=report,
        after=report,
        known=np.full(data.n_queries, np.nan),
        rankings=(ranking, ranking),
        relevance=data.relevance,
        query_numbers=data.query_numbers,
        skipped=trials.skipped,
        seconds=seconds,
    )
