"""What lexical search, past queries and a second embedding add to a map of the queries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from rankspace import Fields, Index, Ranking, Relevance, evaluate, tune
from rankspace.datasets import Dataset
from rankspace.evaluation.cross_validation import (
    Evidence,
    HeldOutValues,
    default_n_folds,
    measurable,
)
from rankspace.evaluation.fusion import FusedEvidence, HeldOutFusion, fuse_held_out
from rankspace.evaluation.held_out import oriented_values
from rankspace.evaluation.runs import check_fusion, check_runs
from rankspace.evaluation.search_task import SearchTask, check_task
from rankspace.evaluation.significance import ClusteredMean
from rankspace.learners.families import families
from rankspace.relevance.rows import indptr_of
from rankspace.relevance.splits import Split, group_queries, hold_out, share_known
from rankspace.tuning.fields import field_families
from rankspace.tuning.signals import Fused, fuse_runs
from rankspace.tuning.trials import Deadline, Result, Trials, best_result

from ..data import open_dataset, open_second_vectors
from ..data.bm25 import open_bm25
from ..methods import available
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table

TARGET = "ndcg-linear@10"  # what everything is chosen by
MEASURES = {"NDCG@10": TARGET, "MAP": "map", "R@100": "r@100"}
DEPTH = 100  # first items of each list that are fused and measured
TOLERANCE = 0.01
QUESTIONS = ("all", "known", "new")
PARTS = ("all queries", "known documents", "new documents")
WHICH = {"train": ("train",), "test": ("test",), "both": ("train", "test")}
TITLES = {"train": "", "test": ", test part"}  # what the titles of tables end with
RUN = "bm25"

UNCHANGED = "unchanged vectors"
LEXICAL = "BM25 alone"
RECIPROCAL = "reciprocal rank fusion"
MAP = "map"
WITH_BM25 = "map + BM25"
WITH_MEMORY = "map + BM25 + past queries"
BOTH = "unchanged, two embeddings"
MAP_OF_BOTH = "map over two embeddings"
EVERYTHING = "map over two embeddings + BM25"
# Fused rows, and the parts that they must not fall behind.
FUSED = {
    WITH_BM25: (MAP, LEXICAL),
    MAP_OF_BOTH: (MAP, BOTH),
    EVERYTHING: (MAP_OF_BOTH, LEXICAL),
}
ENOUGH_SETS = 3  # on which a fused ranking is to be better than its parts

Rows = dict[str, dict[str, Any]]  # by label: what was used, and values by measure


class Problem(NamedTuple):
    """A collection: what is learned from, the test part, and texts for BM25."""

    X: Any  # joined, if there are two embeddings
    relevance: Relevance
    queries: Any
    bm25: Ranking
    test: Split | None
    test_bm25: Ranking | None
    widths: tuple[int, ...] = ()  # of two embeddings


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """Tables of each collection that is at hand, and the goals, for each part."""
    asked, only = recipe.options["parts"], recipe.options["only"]
    if asked not in WHICH:
        raise ValueError(f"parts must be 'train', 'test' or 'both': got {asked!r}.")
    wanted = [d for d in recipe.content["datasets"] if only in ("", d["label"])]
    if asked == "test":
        wanted = [data for data in wanted if data.get("test", True)]
    sets, notes = available(wanted, _dataset)
    pieces = []
    for data in sets:
        kinds, note = _kinds(data)
        notes += note
        described = {k: data[k] for k in ("label", "name", "options") if k in data}
        for part in WHICH[asked]:
            if part == "train" or data.get("test", True):
                for second in kinds:
                    pieces.append((described, second, part, recipe.options["seed"]))
    results: dict[str, dict[str, list[dict[str, Any]]]] = {"train": {}, "test": {}}
    for piece, result in zip(pieces, jobs.map(values_of, pieces), strict=True):
        data, _, part, _ = piece
        results[part].setdefault(data["label"], []).append(result)
    tables = []
    for part in WHICH[asked]:
        tables += _tables_of(results[part], TITLES[part])
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes])


def _tables_of(
    results: Mapping[str, Sequence[Mapping[str, Any]]], suffix: str
) -> list[Table]:
    """The tables of one part, and its goals."""
    found = {label: Comparison.of(pieces) for label, pieces in results.items()}
    tables = []
    for label, comparison in found.items():
        title = f"{label}{suffix}"
        tables += [comparison.main_table(title), comparison.other_table(title)]
    return [*tables, _goals(found, f"Goals, all queries by NDCG@10{suffix}")]


def _kinds(data: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """One embedding, and two if the vectors of the second are at hand."""
    second = data.get("second", "")
    if not second:
        return [""], []
    try:
        open_second_vectors(data["name"], second)
    except FileNotFoundError as error:
        return [""], [f"Left out: {data['label']} with two embeddings. {error}"]
    return ["", second], []


# ---------------------------------------------------------------------- data


def _dataset(data: Mapping[str, Any]) -> Dataset:
    return open_dataset(data["name"], **data.get("options", {}))


@lru_cache(maxsize=1)
def problem_of(description: str, second: str = "") -> Problem:
    """The problem of a collection, described as JSON."""
    data = json.loads(description)
    collection = _dataset(data)
    assert collection.texts is not None
    assert collection.query_texts is not None
    assert collection.relevance is not None
    X, queries = (_single(V) for V in (collection.X, collection.queries))
    bm25 = open_bm25(data, collection.texts, collection.query_texts)
    widths: tuple[int, ...] = ()
    if second:
        others = open_second_vectors(data["name"], second)
        items, asked = (
            Fields({"first": one, "second": other})
            for one, other in zip((X, queries), others, strict=True)
        )
        X, queries, widths = np.asarray(items), np.asarray(asked), items.widths
    relevance = collection.relevance
    if "test" not in collection.splits:
        return Problem(X, relevance, queries, bm25, None, None, widths)
    train, test = collection.splits["train"], collection.splits["test"]
    test = test[relevance.trainable[test]]
    split = hold_out(X, relevance, queries, train, test)
    runs = bm25.take_queries(train), bm25.take_queries(test)
    taught = split.relevance, split.queries
    return Problem(X, *taught, runs[0], split, runs[1], widths)


def _single(vectors: Any) -> np.ndarray:
    return np.asarray(vectors, dtype=np.float32)


# ---------------------------------------------------------------------- values


def values_of(
    data: Mapping[str, Any], second: str, part: str, seed: int
) -> dict[str, Any]:
    """Values of each query for each row, with one embedding or with two."""
    problem = problem_of(json.dumps(data), second)
    if part == "test":
        return _on_test(problem, second, seed)
    return _on_folds(problem, second, seed)


def _on_folds(problem: Problem, second: str, seed: int) -> dict[str, Any]:
    """Held-out values of the training part, by the folds of tune."""
    trials, best, runs = trials_of(problem, seed)
    lexical = {RUN: runs[RUN]}
    options = (trials.n_folds, trials.seed, lexical, ["minmax", "minmax"])
    lists = fuse_held_out(best.path, trials.task, *options)
    fused = fuse_runs(trials, best, lexical, "minmax")
    decision = best.verdict.decision
    if second:
        rows = {
            BOTH: _row("", _of_strength(lists, best, 0)),
            MAP_OF_BOTH: _row(decision, _mapped(lists, best)),
            EVERYTHING: _fused_row(lists, best, fused),
        }
    else:
        everything = fuse_runs(trials, best, runs, "minmax")
        rows = {
            UNCHANGED: _row("", _of_strength(lists, best, 0)),
            LEXICAL: _row("", _of_run(lists)),
            RECIPROCAL: _row("", _reciprocal(lists)),
            MAP: _row(decision, _mapped(lists, best)),
            WITH_BM25: _fused_row(lists, best, fused),
            WITH_MEMORY: _fused_row(lists, best, everything),
        }
    evidence = best.judged
    assert evidence.folds is not None
    assert evidence.group_folds is not None
    return {
        "rows": rows,
        "known": evidence.by_query.known.tolist(),
        "clusters": evidence.clusters.tolist(),
        "groups": evidence.groups.tolist(),
        "folds": evidence.folds.tolist(),
        "group_folds": evidence.group_folds.tolist(),
    }


def trials_of(
    problem: Problem, seed: int
) -> tuple[Trials, Result, dict[str, Ranking | None]]:
    """Cross-validation of the default family, with lists to fuse, and the runs."""
    task, is_judged = task_of(problem)
    task = check_fusion(task, "minmax")
    runs = check_runs({RUN: problem.bm25, "memory": "memory"}, task, is_judged)
    trials, best = best_of(task, problem.widths, seed)
    return trials, best, runs


def task_of(problem: Problem) -> tuple[SearchTask, np.ndarray]:
    """The task of the training part, and a mask of its queries."""
    similarity = "dot" if problem.widths else "cosine"
    given = (problem.X, problem.relevance, problem.queries)
    return check_task(*given, similarity, TARGET)


def best_of(
    task: SearchTask, widths: tuple[int, ...], seed: int
) -> tuple[Trials, Result]:
    """Cross-validation of the default family, as tune does it; widths are those of fields."""
    trials = _trials(task, seed)
    todo = families(None, task.similarity, task.measure, True, trials.seed)
    if widths:
        todo = field_families(todo, widths)
    best = best_result(trials.run(todo), "both")
    assert best is not None
    return trials, best


def _trials(task: SearchTask, seed: int) -> Trials:
    nobody = np.zeros(task.n_queries, dtype=bool)
    fold_seed = int(check_random_state(seed).randint(2**31 - 1))
    settings = (default_n_folds(task.n_queries), fold_seed, Deadline(None), _quiet)
    return Trials(task, nobody, "both", TOLERANCE, *settings)


def _quiet(step: str, fraction: float) -> None:
    """No progress is shown."""


Values = Iterator[tuple[str, np.ndarray, np.ndarray]]  # measure, by query, by group


def _row(used: str, values: Values) -> dict[str, Any]:
    measured = {}
    for name, by_query, by_group in values:
        measured[name] = [by_query.tolist(), by_group.tolist()]
    return {"used": used, "values": measured}


def _fused_row(lists: FusedEvidence, best: Result, fused: Fused) -> dict[str, Any]:
    """The fused ranking that tune uses; that of the map if it uses no run."""
    used = [name for name in fused.weights if name != "vectors"]
    if not used:
        return _row("no run", _mapped(lists, best))
    last = len(fused.result.judged.by_query.values) - 1
    return _row(" + ".join(used), _of_strength(lists, fused.result, last))


def _mapped(lists: FusedEvidence, best: Result) -> Values:
    """The map with cross-fitted strengths; unchanged vectors where it is not used."""
    strengths = best.strengths
    if best.verdict.decision == "keep":
        return _of_strength(lists, best, 0)
    return _of_tops(lists, best.judged, strengths["all"], strengths["new"])


def _of_strength(lists: FusedEvidence, result: Result, strength: int) -> Values:
    evidence = result.judged
    n = evidence.by_query.values.shape[1]
    each = np.full(n, strength)
    return _of_tops(lists, evidence, each, each)


def _of_tops(
    lists: FusedEvidence,
    evidence: Evidence,
    by_query: np.ndarray,
    by_group: np.ndarray,
) -> Values:
    """Every measure of the first items of each query, under the metric of its strength."""
    for name, measure in MEASURES.items():
        yield (
            name,
            _measured(lists.by_query, evidence.by_query, by_query, measure),
            _measured(lists.by_group, evidence.by_group, by_group, measure),
        )


def _measured(
    lists: HeldOutFusion, values: HeldOutValues, strengths: np.ndarray, measure: str
) -> np.ndarray:
    found = np.full(lists.n_queries, np.nan)
    for part in lists.parts:
        own = strengths[part.queries]
        tops = values.tops[own, part.queries]
        listed = tops >= 0
        distances = values.distances[own, part.queries][listed]
        ranking = Ranking(
            indptr_of(listed.sum(axis=1)), tops[listed], distances, lists.n_items
        )
        found[part.queries] = oriented_values(ranking, part.judged, measure)
    return found


def _of_run(lists: FusedEvidence) -> Values:
    """The first items of the run."""
    for name, measure in MEASURES.items():
        found = []
        for half in (lists.by_query, lists.by_group):
            values = np.full(half.n_queries, np.nan)
            for part in half.parts:
                first = part.runs[0].top(DEPTH)
                values[part.queries] = oriented_values(first, part.judged, measure)
            found.append(values)
        yield name, found[0], found[1]


def _reciprocal(lists: FusedEvidence) -> Values:
    """Reciprocal rank fusion of unchanged vectors and the run."""
    for name, measure in MEASURES.items():
        found = []
        for half in (lists.by_query, lists.by_group):
            settings = (half.parts, half.normalise, measure, half.n_items)
            found.append(HeldOutFusion(half.values, *settings).reciprocal_values(0))
        yield name, found[0], found[1]


# ---------------------------------------------------------------------- test part


def _on_test(problem: Problem, second: str, seed: int) -> dict[str, Any]:
    """Values of the test part, with map and weights from the training part."""
    split, bm25 = problem.test, problem.test_bm25
    assert split is not None
    assert bm25 is not None
    fields: dict[str, Any] = {"X": problem.X, "queries": problem.queries}
    similarity = "cosine"
    if second:
        fields = {name: _as_fields(V, problem) for name, V in fields.items()}
        similarity = "dot"
    tuned = tune(
        relevance=problem.relevance,
        measure=TARGET,
        tolerance=TOLERANCE,
        runs={RUN: problem.bm25},
        random_state=seed,
        **fields,
    )
    unchanged = Index(problem.X, similarity=similarity).rank(split.points, DEPTH)
    mapped = Index(problem.X, tuned.metric).rank(split.points, DEPTH)
    lexical = bm25.top(DEPTH)
    fused = mapped
    used = [name for name in tuned.weights if name != "vectors"]
    if used:
        rankings = {"vectors": mapped, RUN: lexical}
        fused = Ranking.fuse(rankings, tuned.weights, normalise=tuned.normalise)
    state = "learned" if tuned.is_mapped else "keep"
    labels = (BOTH, MAP_OF_BOTH, EVERYTHING) if second else (UNCHANGED, MAP, WITH_BM25)
    with_runs = " + ".join(used) or "no run"
    found = {
        labels[0]: ("", unchanged),
        labels[1]: (state, mapped),
        labels[2]: (with_runs, fused),
    }
    if not second:
        found[LEXICAL] = ("", lexical)
        found[RECIPROCAL] = ("", Ranking.fuse({"a": unchanged, "b": lexical}))
    known = share_known(split.relevance, split.judged)
    rows = {
        label: _row(used, _of_ranking(ranking, split.judged, known))
        for label, (used, ranking) in found.items()
    }
    return {
        "rows": rows,
        "known": known.tolist(),
        "clusters": np.arange(known.size).tolist(),
        "groups": group_queries(split.judged).tolist(),
        "folds": None,
        "group_folds": None,
    }


def _as_fields(joined: np.ndarray, problem: Problem) -> Fields:
    first = problem.widths[0]
    return Fields({"first": joined[:, :first], "second": joined[:, first:]})


def _of_ranking(ranking: Ranking, judged: Relevance, known: np.ndarray) -> Values:
    for name, measure in MEASURES.items():
        values = evaluate(ranking, judged, measure).values[measure]
        yield name, values, np.where(known == 0, values, np.nan)


# ---------------------------------------------------------------------- tables


class Comparison(NamedTuple):
    """Values of all rows for the same queries."""

    rows: Rows
    evidence: Evidence  # with no values

    @classmethod
    def of(cls, parts: Sequence[Mapping[str, Any]]) -> Comparison:
        """Join the rows with one embedding and with two."""
        rows: Rows = {}
        for part in parts:
            rows |= part["rows"]
        first = parts[0]
        known = np.array(first["known"], dtype=float)
        empty = HeldOutValues.empty(0, known.size)._replace(known=known)
        folds, group_folds = first["folds"], first["group_folds"]
        evidence = Evidence(
            empty,
            empty,
            np.array(first["clusters"]),
            np.array(first["groups"]),
            None if folds is None else np.array(folds),
            None if group_folds is None else np.array(group_folds),
        )
        return cls(rows, evidence)

    def values(self, row: str, measure: str) -> tuple[np.ndarray, np.ndarray]:
        """Values by query and by group."""
        by_query, by_group = self.rows[row]["values"][measure]
        return np.array(by_query, dtype=float), np.array(by_group, dtype=float)

    def paired(
        self, before: str, after: str, measure: str
    ) -> dict[str, tuple[float, ClusteredMean]]:
        """Mean of the second row, and its difference from the first, for each question."""
        evidence = self.evidence
        halves = []
        pairs = zip(
            self.values(before, measure), self.values(after, measure), strict=True
        )
        for half, (one, other) in zip(
            (evidence.by_query, evidence.by_group), pairs, strict=True
        ):
            halves.append(half._replace(values=np.array([one, other])))
        found = {}
        full = Evidence(halves[0], halves[1], *_settings(evidence))
        for name, question in measurable(full.questions).items():
            asked = ~np.isnan(question.differences[1])
            mean = float(full.values_of(name).values[1, asked].mean())
            found[name] = (mean, question.estimate(1))
        return found

    def cells(self, row: str, measure: str) -> list[str]:
        """Mean, and difference from unchanged vectors with its interval, for each question."""
        found = self.paired(UNCHANGED, row, measure)
        cells = []
        for name in QUESTIONS:
            cell = "-"
            if name in found:
                mean, estimate = found[name]
                cell = f"{mean:.3f}"
                if row != UNCHANGED:
                    cell += f" ({shown(estimate)})"
            cells.append(cell)
        return cells

    def main_table(self, label: str) -> Table:
        """NDCG@10."""
        header = ["method", *PARTS, "used"]
        rows = [["number of queries", *self.counts(), ""]]
        for row, content in self.rows.items():
            rows.append([row, *self.cells(row, "NDCG@10"), content["used"]])
        return Table(label, header, rows)

    def other_table(self, label: str) -> Table:
        """MAP and R@100."""
        header = ["method"]
        header += [f"{name}, {part}" for name in ("MAP", "R@100") for part in QUESTIONS]
        rows = []
        for row in self.rows:
            rows.append([row, *self.cells(row, "MAP"), *self.cells(row, "R@100")])
        return Table(f"{label}, MAP and R@100", header, rows)

    def counts(self) -> list[str]:
        """How many queries answer each question."""
        found = self.paired(UNCHANGED, UNCHANGED, "NDCG@10")
        return [f"{found[name][1].n:,}" if name in found else "-" for name in QUESTIONS]

    def better_part(self, fused: str) -> str:
        """The part of a fused row with the higher mean over all queries."""
        parts = [part for part in FUSED[fused] if part in self.rows]
        means = [np.nanmean(self.values(part, "NDCG@10")[0]) for part in parts]
        return parts[int(np.argmax(means))]


def _settings(evidence: Evidence) -> tuple[Any, ...]:
    return (
        evidence.clusters,
        evidence.groups,
        evidence.folds,
        evidence.group_folds,
    )


def shown(estimate: ClusteredMean) -> str:
    low, high = estimate.interval
    return f"{estimate.mean:+.3f}, {low:+.3f} to {high:+.3f}"


# ---------------------------------------------------------------------- goals


def _goals(found: Mapping[str, Comparison], title: str) -> Table:
    """What was to be shown, and whether it is."""
    rows: list[list[str]] = []
    for fused in FUSED:
        n_sets, n_better, worse = 0, 0, []
        for label, comparison in found.items():
            if fused not in comparison.rows:
                continue
            part = comparison.better_part(fused)
            estimate = comparison.paired(part, fused, "NDCG@10")["all"][1]
            low, high = estimate.interval
            n_sets += 1
            n_better += low > 0
            if high < 0:
                worse.append(label)
            verdict = "worse" if high < 0 else "better" if low > 0 else "no difference"
            about = f"{label}: {fused} against {part}"
            rows.append([about, shown(estimate), verdict])
        if n_sets:
            text = f"{len(worse)} of {n_sets} sets"
            goal = f"{fused}: worse than the better part"
            rows.append([goal, text, "no" if worse else "held"])
            goal = f"{fused}: better than the better part"
            enough = "held" if n_better >= ENOUGH_SETS else "no"
            rows.append([goal, f"{n_better} of {n_sets} sets", enough])
    rows += _new_documents(found)
    return Table(title, ["goal", "measured", "verdict"], rows)


def _new_documents(found: Mapping[str, Comparison]) -> list[list[str]]:
    """Fused rows against the map alone for new documents of SciFact."""
    rows = []
    for label in found:
        comparison = found[label]
        for fused in FUSED:
            if label != "SciFact" or fused not in comparison.rows:
                continue
            answers = comparison.paired(MAP, fused, "NDCG@10")
            if "new" in answers:
                estimate = answers["new"][1]
                verdict = "held" if estimate.interval[0] > 0 else "no"
                goal = f"{label}, new documents: {fused} better than the map"
                rows.append([goal, shown(estimate), verdict])
    return rows
