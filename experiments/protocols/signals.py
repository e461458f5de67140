"""What lexical search and past queries add to a map, and how small vectors may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from rankspace import Ranking, Relevance, rank_bm25, tune
from rankspace.evaluation.cross_validation import (
    Evidence,
    default_n_folds,
    measurable,
)
from rankspace.evaluation.fusion import FusedEvidence, fuse_held_out
from rankspace.evaluation.runs import check_fusion, check_runs
from rankspace.evaluation.search_task import SearchTask, check_task
from rankspace.learners.families import families
from rankspace.tuning.selection import outcome
from rankspace.tuning.signals import Fused, fuse_runs
from rankspace.tuning.trials import Deadline, Result, Trials, best_result

from ..data import open_dataset
from ..methods import available
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table

MEASURE = "ndcg-linear@10"
TOLERANCE = 0.01
QUESTIONS = ("all", "known", "new")
PARTS = ("all queries", "known documents", "new documents")
RUN = "bm25"


class Problem(NamedTuple):
    """The training part of a collection."""

    X: np.ndarray
    relevance: Relevance
    queries: np.ndarray
    bm25: Ranking


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """One table for each collection that is at hand."""
    only = recipe.options["only"]
    wanted = [d for d in recipe.content["datasets"] if only in ("", d["label"])]
    sets, notes = available(wanted, lambda data: open_dataset(data["name"]))
    work = {"signals": signals_of, "sizes": sizes_of}[recipe.options["what"]]
    pieces = [(dict(data), recipe.options["seed"]) for data in sets]
    results = zip(sets, jobs.map(work, pieces), strict=True)
    tables = [_table(data["label"], **result) for data, result in results]
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes])


def _table(label: str, header: list[str], rows: list[list[Any]]) -> Table:
    """The table of a collection; width and storage name a row together."""
    if header[1] == "storage":
        header = ["vectors", *header[2:]]
        rows = [[f"{row[0]} {row[1]}", *row[2:]] for row in rows]
    return Table(label, header, rows)


def _problem(data: Mapping[str, Any]) -> Problem:
    collection = open_dataset(data["name"])
    if "train" in collection.splits:
        collection = collection.part("train")
    assert collection.texts is not None
    assert collection.query_texts is not None
    assert collection.relevance is not None
    X, Q = (np.asarray(V, dtype=np.float32) for V in (collection.X, collection.queries))
    bm25 = rank_bm25(collection.texts, collection.query_texts)
    return Problem(X, collection.relevance, Q, bm25)


# ---------------------------------------------------------------------- signals


def signals_of(data: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Unchanged vectors, BM25, reciprocal ranks, the map, and what tune fuses."""
    problem = _problem(data)
    task, is_judged = check_task(
        problem.X, problem.relevance, problem.queries, "cosine", MEASURE
    )
    task = check_fusion(task, "minmax")
    runs = check_runs({RUN: problem.bm25, "memory": "memory"}, task, is_judged)
    lexical = {RUN: runs[RUN]}
    trials, best = _trials(task, seed)
    options = (trials.n_folds, trials.seed, lexical, ["minmax", "minmax"])
    lists = fuse_held_out(best.path, task, *options)
    mapped = _mapped(best)
    fused = fuse_runs(trials, best, lexical, "minmax")
    everything = fuse_runs(trials, best, runs, "minmax")
    rows = [
        _row("unchanged vectors", lists, *_of(lists, "unchanged")),
        _row("BM25 alone", lists, *_of(lists, RUN)),
        _row("reciprocal rank fusion", lists, *_of(lists, "reciprocal")),
        _row(f"map ({best.verdict.decision})", lists, *mapped),
        _fused_row("with BM25", lists, fused, mapped),
        _fused_row("with BM25 and memory", lists, everything, mapped),
    ]
    return {"header": ["method", *PARTS, "all, against the map"], "rows": rows}


def _trials(task: SearchTask, seed: int) -> tuple[Trials, Result]:
    """Cross-validation of the default family, as tune does it."""
    nobody = np.zeros(task.n_queries, dtype=bool)
    fold_seed = int(check_random_state(seed).randint(2**31 - 1))
    settings = (default_n_folds(task.n_queries), fold_seed, Deadline(None), _quiet)
    trials = Trials(task, nobody, "both", TOLERANCE, *settings)
    family = families(None, task.similarity, task.measure, True, fold_seed)
    best = best_result(trials.run(family), "both")
    assert best is not None
    return trials, best


def _quiet(step: str, fraction: float) -> None:
    """No progress is shown."""


def _of(lists: FusedEvidence, which: str) -> tuple[np.ndarray, np.ndarray]:
    """Values by query and by group of unchanged vectors, of the run alone, or of rank fusion."""
    found = []
    for part in (lists.by_query, lists.by_group):
        n = part.n_queries
        if which == "reciprocal":
            found.append(part.reciprocal_values(0))
            continue
        weights = np.tile([[1.0], [0.0]] if which == "unchanged" else [[0.0], [1.0]], n)
        found.append(part.score(np.zeros(n, dtype=int), weights).values)
    return found[0], found[1]


def _mapped(best: Result) -> tuple[np.ndarray, np.ndarray]:
    """Values of the map with cross-fitted strengths; unchanged vectors where it is kept."""
    evidence, strengths = best.judged, best.strengths
    if best.verdict.decision == "keep":
        return evidence.by_query.values[0], evidence.by_group.values[0]
    each = np.arange(strengths["all"].size)
    by_query = evidence.by_query.values[strengths["all"], each]
    return by_query, evidence.by_group.values[strengths["new"], each]


def _fused_row(
    label: str,
    lists: FusedEvidence,
    fused: Fused,
    mapped: tuple[np.ndarray, np.ndarray],
) -> list[Any]:
    """The row of what tune fuses, and its difference from the map alone."""
    used = [name for name in fused.weights if name != "vectors"]
    values = mapped
    if used:
        judged = fused.result.judged
        values = judged.by_query.values[-1], judged.by_group.values[-1]
    row = _row(f"{label}: used {', '.join(used) or 'none'}", lists, *values)
    against = _compared(lists.evidence, mapped, values)
    return [*row[:-1], against["all"] + f"; new {against.get('new', '-')}"]


def _row(
    label: str, lists: FusedEvidence, by_query: np.ndarray, by_group: np.ndarray
) -> list[Any]:
    """Mean, and difference from unchanged vectors, for each question."""
    evidence = lists.evidence
    unchanged = evidence.by_query.values[0], evidence.by_group.values[0]
    differences = _compared(evidence, unchanged, (by_query, by_group))
    means = _means(evidence, by_query, by_group)
    cells = []
    for name in QUESTIONS:
        cell = "-"
        if name in means:
            cell = f"{means[name]:.3f} ({differences[name]})"
        cells.append(cell)
    return [label, *cells, ""]


def _means(
    evidence: Evidence, by_query: np.ndarray, by_group: np.ndarray
) -> dict[str, float]:
    found = {}
    for name, question in measurable(evidence.questions).items():
        asked = ~np.isnan(question.differences[0])
        values = by_group if name == "new" else by_query
        found[name] = float(values[asked].mean())
    return found


def _compared(
    evidence: Evidence,
    before: tuple[np.ndarray, np.ndarray],
    after: tuple[np.ndarray, np.ndarray],
) -> dict[str, str]:
    """Paired difference with its interval, for each question."""
    parts = []
    for part, one, other in zip(
        (evidence.by_query, evidence.by_group), before, after, strict=True
    ):
        missing = np.isnan(part.values[0])
        rows = np.where(missing, np.nan, np.array([one, other]))
        parts.append(part._replace(values=rows))
    paired = replace(evidence, by_query=parts[0], by_group=parts[1])
    found = {}
    for name, question in measurable(paired.questions).items():
        estimate = question.estimate(1)
        low, high = estimate.interval
        verdict = outcome(estimate, TOLERANCE)
        found[name] = f"{estimate.mean:+.3f}, {low:+.3f} to {high:+.3f}, {verdict}"
    return found


# ---------------------------------------------------------------------- sizes


def sizes_of(data: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Width and storage against score, with the verdicts of non-inferiority."""
    problem = _problem(data)
    report = tune(
        problem.X,
        problem.relevance,
        queries=problem.queries,
        similarity="cosine",
        n_components="smallest",
        size_tolerance=data.get("tolerance", 0.005),
        random_state=seed,
    ).report
    plain = json.loads(report.to_json())["sizes"]
    header = ["dimensions", "storage", *PARTS, "lower limit", "MB a million", "verdict"]
    rows = []
    for row in plain:
        cells = list(row.values())
        numbers = ["-" if cell is None else f"{cell:.3f}" for cell in cells[2:6]]
        rows.append([cells[0], cells[1], *numbers, cells[6], cells[7]])
    return {"header": header, "rows": rows}
