"""How small vectors may be: width and storage against score, and FRML at the same ranks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankspace import FRML, AsymmetricMetric, Index, Relevance
from rankspace.evaluation.cross_validation import (
    Evidence,
    Question,
    cross_validate,
    measurable,
)
from rankspace.evaluation.significance import ClusteredMean
from rankspace.learners.families import Family
from rankspace.learners.hard_negatives import with_hard_negatives
from rankspace.metrics.embedding import EmbeddingMetric, unchanged_metric
from rankspace.metrics.reduction import (
    principal_directions,
    reducing_map,
    sample_items,
)
from rankspace.search import QuantisedMetric
from rankspace.search.index import Embedding
from rankspace.search.quantised import bytes_per_vector
from rankspace.tuning.sizes import lower_limit

from ..methods import available
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from . import signals
from .signals import PARTS

WIDTHS = (384, 256, 192, 128, 96, 64, 48, 32)
STORAGES = ("float32", "float16", "int8", "binary")
LEARNED = (256, 128, 64, 32)  # widths of FRML
TRIPLETS = 20_000  # of a fit of FRML, as for tune
LEVEL = 0.05 / len(STORAGES)  # each storage is a sequence of tests of its own
HEADER = ["vectors", *PARTS, "lower limit", "MB a million", "verdict"]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """One table for each collection that is at hand, the smallest safe sizes, and FRML."""
    only = recipe.options["only"]
    wanted = [d for d in recipe.content["datasets"] if only in ("", d["label"])]
    sets, notes = available(wanted, signals._dataset)
    pieces = []
    for data in sets:
        described = {k: data[k] for k in ("label", "name", "options") if k in data}
        settings = recipe.options["tolerance"], recipe.options["seed"]
        pieces.append((described, *settings))
    results = list(zip(sets, jobs.map(sizes_of, pieces), strict=True))
    tables = [Table(data["label"], HEADER, found["rows"]) for data, found in results]
    header = ["data", "map", "queries", "smallest safe", "MB a million"]
    rows = [[data["label"], *found["smallest"]] for data, found in results]
    tables.append(Table("The smallest safe size", header, rows))
    header = ["data", "dimensions", "reduction", "FRML", "difference"]
    rows = [[data["label"], *row] for data, found in results for row in found["frml"]]
    tables.append(Table("FRML, started from the reduction", header, rows))
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes])


def sizes_of(data: Mapping[str, Any], tolerance: float, seed: int) -> dict[str, Any]:
    """Rows of all sizes, the smallest safe one, and rows of FRML."""
    problem = signals.problem_of(json.dumps(data))
    task, _ = signals.task_of(problem)
    trials, best = signals.best_of(task, (), seed)
    family, strength = None, 0
    if best.verdict.decision != "keep":
        family, strength = best.family, best.strength
    width = problem.X.shape[1]
    widths = (width, *(w for w in WIDTHS if w < width))
    path = SizePath(family, strength, widths, seed)
    options = (trials.n_folds, trials.seed, _go_on, _ignore)
    evidence = cross_validate(path, trials.task, *options)
    rows, smallest = _grid(evidence, path, tolerance)
    kept = best.verdict.decision
    about = ["not used" if kept == "keep" else kept, f"{trials.task.n_queries:,}"]
    return {
        "rows": rows,
        "smallest": [*about, *smallest],
        "frml": _frml_rows(evidence, path),
    }


def _go_on() -> None:
    """Nothing ends a path early."""


def _ignore(fraction: float) -> None:
    """No progress is shown."""


# ---------------------------------------------------------------------- metrics


@dataclass(frozen=True)
class SizePath:
    """The metric of one strength at all widths with all storages, and then FRML."""

    family: Family | None  # None for unchanged vectors
    strength: int
    widths: tuple[int, ...]
    seed: int

    @property
    def grid(self) -> list[tuple[int, str]]:
        """Widths and storages; the first is that of the full metric."""
        return list(itertools.product(self.widths, STORAGES))

    @property
    def learned(self) -> tuple[int, ...]:
        """Widths of FRML."""
        return tuple(width for width in LEARNED if width < self.widths[0])

    @property
    def strengths(self) -> tuple[str, ...]:
        """A name for each metric."""
        sizes = [f"{width} {storage}" for width, storage in self.grid]
        return (*sizes, *(f"FRML {width}" for width in self.learned))

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[Embedding]:
        """Learn the metric once, and reduce it."""
        metric = unchanged_metric(X.shape[1], "cosine", X.dtype)
        if self.family is not None:
            path = self.family.metrics(X, relevance, queries, index)
            metric = next(itertools.islice(path, self.strength - 1, None))
        directions = principal_directions(metric, X)
        sample = sample_items(metric, X)
        for width in self.widths:
            reduced = metric
            if width < self.widths[0]:
                reduced = metric.project(reducing_map(directions, width, sample))
            for storage in STORAGES:
                yield QuantisedMetric(reduced, X, storage)
        task = (X, relevance, queries, index)
        for width in self.learned:
            yield learned_from(metric, directions[:width], *task, seed=self.seed)


def learned_from(
    metric: EmbeddingMetric,
    directions: np.ndarray,
    X: Any,
    relevance: Relevance,
    queries: Any,
    index: Index | None,
    *,
    seed: int,
) -> AsymmetricMetric:
    """FRML on documents and mapped queries, started from the reduction.

    Mapped queries are scaled to unit length in the mean: documents have unit length.
    """
    mapped = metric.embed_queries(queries)
    scale = 1 / float(np.linalg.norm(mapped, axis=1).mean())
    items, judged = with_hard_negatives(X, relevance, queries, "cosine", index)
    model = FRML(
        len(directions),
        init=directions.astype(X.dtype),
        n_triplets=TRIPLETS,
        random_state=seed,
    ).fit(items, judged, queries=scale * mapped)
    L = model.components_
    offset = getattr(metric, "query_offset", None)
    if offset is not None:
        offset = scale * L @ offset
    return AsymmetricMetric(
        scale * L @ metric.query_map, L, query_offset=offset, similarity="cosine"
    )


# ---------------------------------------------------------------------- tables


def _grid(
    evidence: Evidence, path: SizePath, tolerance: float
) -> tuple[list[list[Any]], list[str]]:
    """A row for each size with its verdict; and the safe size that takes the fewest bytes."""
    failed = dict.fromkeys(STORAGES, False)
    rows = []
    safe = []
    for number, (width, storage) in enumerate(path.grid, 1):
        estimates = _differences(evidence, number, 1)
        lower = min(lower_limit(e, LEVEL) for e in estimates.values())
        verdict = "full"
        if number > 1:
            verdict = _verdict(estimates, lower, tolerance)
        if failed[storage]:
            verdict = "not tested"
        elif verdict not in ("full", "safe"):
            failed[storage] = True
        size = bytes_per_vector(width, storage)
        if verdict in ("full", "safe"):
            safe.append((size, f"{width} {storage}"))
        label = f"{width} {storage}"
        limit = "-" if number == 1 else f"{lower:.3f}"
        rows.append([label, *_means(evidence, number), limit, size, verdict])
    size, label = min(safe)
    return rows, [label, str(size)]


def _verdict(
    estimates: Mapping[str, ClusteredMean], lower: float, tolerance: float
) -> str:
    if lower >= -tolerance:
        return "safe"
    if any(e.mean < -tolerance for e in estimates.values()):
        return "loses"
    return "too few queries"


def _differences(
    evidence: Evidence, number: int, before: int
) -> dict[str, ClusteredMean]:
    """Mean differences of two metrics, for each question."""
    found = {}
    for name, question in measurable(evidence.questions).items():
        differences = question.differences[number] - question.differences[before]
        paired = Question(differences[None], question.clusters, question.folds)
        found[name] = paired.estimate(0)
    return found


def _means(evidence: Evidence, number: int) -> list[str]:
    questions = measurable(evidence.questions)
    cells = []
    for name in signals.QUESTIONS:
        cell = "-"
        if name in questions:
            asked = ~np.isnan(questions[name].differences[0])
            cell = f"{evidence.values_of(name).values[number, asked].mean():.3f}"
        cells.append(cell)
    return cells


def _frml_rows(evidence: Evidence, path: SizePath) -> list[list[str]]:
    """The reduction and FRML at each rank, by all queries."""
    rows = []
    for number, width in enumerate(path.learned, 1 + len(path.grid)):
        reduced = 1 + path.grid.index((width, "float32"))
        estimate = _differences(evidence, number, reduced)["all"]
        means = [_means(evidence, n)[0] for n in (reduced, number)]
        rows.append([str(width), *means, signals.shown(estimate)])
    return rows
