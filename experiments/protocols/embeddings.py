"""Sentence embeddings and judgments: is a learned map worth it, for known and for new documents?"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from rankspace import Index, ListwiseMap, Relevance, tune
from rankspace.datasets import Dataset
from rankspace.evaluation.cross_validation import (
    Evidence,
    HeldOutValues,
    Path,
    cross_validate,
    default_n_folds,
    measurable,
)
from rankspace.evaluation.held_out import Judge
from rankspace.evaluation.memory import memory_values
from rankspace.evaluation.search_task import check_task
from rankspace.metrics.embedding import EmbeddingMetric
from rankspace.relevance.splits import Split, group_queries, hold_out, share_known
from rankspace.tuning.selection import ALPHA, outcome

from ..data import open_dataset
from ..methods import available
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table
from . import adapters

MEASURE = "ndcg-linear@10"
TOLERANCE = 0.01  # a loss that does not matter, as for tune
QUESTIONS = ("all", "known", "new")
PARTS = {"train": ("train",), "test": ("test",), "both": ("train", "test")}
FIELDS = ("label", "name", "options", "per_class", "held_out_classes")  # of a problem
HEADER = [
    "method",
    "all queries",
    "known documents",
    "new documents",
    "decision",
    "seconds",
]

Result = Mapping[str, Any]


class Problem(NamedTuple):
    """What is learned from, and the test part."""

    X: Any
    relevance: Relevance
    queries: Any  # None if the items are the queries
    test: Split | None
    known: np.ndarray | None  # share of known documents of each test query
    groups: np.ndarray | None  # of test queries that depend on each other

    @property
    def similarity(self) -> str:
        """What vectors are compared by; those of all sets here have unit length."""
        return "euclidean" if self.queries is None else "cosine"


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """All methods on all collections that are at hand, one table for each, and the goals."""
    part, only = recipe.options["parts"], recipe.options["only"]
    if part not in PARTS:
        raise ValueError(f"parts must be 'train', 'test' or 'both': got {part!r}.")
    wanted = [d for d in recipe.content["datasets"] if only in ("", d["label"])]
    sets, notes = available(wanted, _dataset)
    methods = recipe.content["methods"]
    if find_spec("torch") is None:
        methods = [m for m in methods if m["estimator"] != "adapter"]
        notes.append("Left out: adapter. It needs torch.")
    tables = []
    for name in PARTS[part]:
        results = _results(sets, methods, name, recipe.options["seed"], jobs)
        ending = ", test part" if name == "test" else ""
        tables += [_table(f"{label}{ending}", rows) for label, rows in results.items()]
        if name == "train":
            tables.append(_goals(sets, results))
    return Outcome(recipe, tables, [*recipe.content["notes"], *notes])


def _results(
    sets: Sequence[Mapping[str, Any]],
    methods: Sequence[Mapping[str, Any]],
    part: str,
    seed: int,
    jobs: Jobs,
) -> dict[str, dict[str, Result]]:
    """What each method gives on one part of each collection that has it."""
    pieces = []
    for data, method in itertools.product(sets, methods):
        is_there = part == "train" or data.get("test", True)
        if is_there and method["label"] not in data.get("skip", []):
            described = {name: data[name] for name in FIELDS if name in data}
            pieces.append((described, dict(method), part, seed))
    results: dict[str, dict[str, Result]] = {}
    for piece, result in zip(pieces, jobs.map(one_piece, pieces), strict=True):
        results.setdefault(piece[0]["label"], {})[piece[1]["label"]] = result
    return results


# ---------------------------------------------------------------------- one piece


def one_piece(
    data: Mapping[str, Any], method: Mapping[str, Any], part: str, seed: int
) -> dict[str, Any]:
    """Measure a method by folds of the training part, or on the test part."""
    problem = _problem(json.dumps(data), seed)
    _warm_up(json.dumps(method))
    if part == "train":
        return _on_folds(problem, method, seed)
    return _on_test(problem, method, seed)


def _on_folds(problem: Problem, method: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Held-out values of the training part, by the folds of tune."""
    name = method["estimator"]
    if name == "tune":
        return _tuned_on_folds(problem, method, seed)
    if name == "memory":
        start = time.perf_counter()
        evidence = _folds(problem, Learner(None), seed)
        return _memory(evidence, _best_weight(evidence), time.perf_counter() - start)
    learn = LEARNERS[name]
    start = time.perf_counter()
    learn(problem.X, problem.relevance, problem.queries, seed)
    seconds = time.perf_counter() - start
    evidence = _folds(problem, Learner(learn, seed), seed)
    return {"seconds": seconds, "decision": "", "answers": _answers(evidence, 1)}


def _tuned_on_folds(
    problem: Problem, method: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """What the report of tune says."""
    report = _tune(problem, method, seed).report
    answers = {}
    for name in QUESTIONS:
        row = report.question(name)
        if row is not None and row.outcome != "not measurable":
            answers[name] = {
                "value": row.tuned,
                "difference": row.difference,
                "low": row.low,
                "high": row.high,
                "outcome": row.outcome,
                "queries": row.n_queries,
            }
    return {
        "seconds": report.seconds,
        "decision": report.decision,
        "p_value": report.p_value,
        "answers": answers,
    }


def _on_test(problem: Problem, method: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Values of the test part, with a metric learned from the training part."""
    name, decision = method["estimator"], ""
    start = time.perf_counter()
    if name == "memory":
        weight = _best_weight(_folds(problem, Learner(None), seed))
        evidence = _tested(problem, None)
        return _memory(evidence, weight, time.perf_counter() - start)
    metric: EmbeddingMetric
    if name == "tune":
        tuned = _tune(problem, method, seed)
        metric, decision = tuned.metric, tuned.decision
    else:
        metric = LEARNERS[name](problem.X, problem.relevance, problem.queries, seed)
    seconds = time.perf_counter() - start
    answers = _answers(_tested(problem, metric), 1)
    return {"seconds": seconds, "decision": decision, "answers": answers}


def _tune(problem: Problem, method: Mapping[str, Any], seed: int) -> Any:
    return tune(
        problem.X,
        problem.relevance,
        queries=problem.queries,
        similarity=problem.similarity,
        measure=MEASURE,
        tolerance=TOLERANCE,
        random_state=seed,
        **method.get("fixed", {}),
    )


# ---------------------------------------------------------------------- learners

Learn = Callable[[Any, Relevance, Any, int], EmbeddingMetric]


@dataclass(frozen=True)
class Learner:
    """A learner with nothing to choose, or none, as a path that can be cross-validated."""

    learn: Learn | None
    seed: int = 0

    @property
    def strengths(self) -> tuple[str, ...]:
        """One metric, if there is a learner."""
        return ("",) if self.learn else ()

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None
    ) -> Iterator[EmbeddingMetric]:
        """The metric, if there is a learner."""
        if self.learn is not None:
            yield self.learn(X, relevance, queries, self.seed)


def always(X: Any, relevance: Relevance, queries: Any, seed: int) -> EmbeddingMetric:
    """A listwise map with its defaults, always used: of the queries, or shared for labels."""
    model = ListwiseMap(gain="linear", random_state=seed)
    if queries is not None:
        model.set_params(sides="query", similarity="cosine")
    metric: EmbeddingMetric = model.fit(X, relevance, queries=queries).metric_
    return metric


LEARNERS: dict[str, Learn] = {"always": always, "adapter": adapters.adapter}


@cache
def _warm_up(method: str) -> None:
    """Load and compile the code of a method before it is timed."""
    points = np.random.default_rng(0).normal(size=(340, 160)).astype(np.float32)
    relevance = Relevance.from_lists(np.arange(80).reshape(40, 2).tolist(), n_items=300)
    problem = Problem(points[40:], relevance, points[:40], None, None, None)
    _on_folds(problem, json.loads(method), 0)


# ---------------------------------------------------------------------- evidence


def _folds(problem: Problem, path: Path, seed: int) -> Evidence:
    """Held-out values of a path of metrics, by the folds of tune with the same seed."""
    relevance, similarity = problem.relevance, problem.similarity
    task, _ = check_task(problem.X, relevance, problem.queries, similarity, MEASURE)
    fold_seed = int(check_random_state(seed).randint(2**31 - 1))
    n_folds = default_n_folds(task.n_queries)
    return cross_validate(path, task, n_folds, fold_seed, _go_on, _ignore)


def _go_on() -> None:
    """Nothing ends a path early."""


def _ignore(fraction: float) -> None:
    """No progress is shown."""


def _tested(problem: Problem, metric: EmbeddingMetric | None) -> Evidence:
    """Values of the test queries: unchanged, and with the metric if there is one."""
    split, known = problem.test, problem.known
    assert split is not None
    assert known is not None
    assert problem.groups is not None
    judge = Judge(split, problem.similarity, MEASURE)
    scores = [judge.baseline()]
    if metric is not None:
        scores.append(judge.score(metric))
    values = HeldOutValues(
        np.array([score.values for score in scores]),
        memory_values(judge.index, split, problem.similarity, MEASURE),
        np.array([score.tops for score in scores]),
        np.array([score.distances for score in scores]),
        known,
    )
    is_new = known == 0
    of_new = values._replace(
        values=np.where(is_new, values.values, np.nan),
        memory=np.where(is_new, values.memory, np.nan),
    )
    each = np.arange(known.size)
    return Evidence(values, of_new, each, problem.groups)


def _best_weight(evidence: Evidence) -> int:
    """The weight of the memory with the best mean over all held-out queries; 0 without any."""
    memory = evidence.by_query.memory
    if np.isnan(memory).all():
        return 0
    return int(np.nanmean(memory, axis=1).argmax())


def _answers(evidence: Evidence, strength: int) -> dict[str, Any]:
    """Mean, and its difference from unchanged vectors, for each question that is measurable."""
    answers = {}
    for name, question in measurable(evidence.questions).items():
        asked = ~np.isnan(question.differences[0])
        unchanged = float(evidence.values_of(name).values[0, asked].mean())
        estimate = question.estimate(strength)
        low, high = estimate.interval
        answers[name] = {
            "value": unchanged + estimate.mean,
            "difference": estimate.mean,
            "low": low,
            "high": high,
            "outcome": outcome(estimate, TOLERANCE),
            "queries": estimate.n,
        }
    return answers


def _memory(evidence: Evidence, weight: int, seconds: float) -> dict[str, Any]:
    """Answers of unchanged vectors, and of the memory of past queries beside them."""
    remembered: dict[str, Any] = {}
    if not np.isnan(evidence.by_query.memory).all():
        remembered = _answers(_with_memory(evidence, weight), 1)
    return {
        "seconds": seconds,
        "decision": "",
        "unchanged": _answers(evidence, 0),
        "answers": remembered,
    }


def _with_memory(evidence: Evidence, weight: int) -> Evidence:
    """The evidence with the memory in the place of a metric."""

    def paired(part: HeldOutValues) -> HeldOutValues:
        values = np.array([part.values[0], part.memory[weight]])
        return part._replace(values=values)

    by_query, by_group = paired(evidence.by_query), paired(evidence.by_group)
    return replace(evidence, by_query=by_query, by_group=by_group)


# ---------------------------------------------------------------------- data


def _dataset(data: Mapping[str, Any]) -> Dataset:
    return _load(data["name"], json.dumps(data.get("options", {})))


@lru_cache(maxsize=1)
def _load(name: str, options: str) -> Dataset:
    return open_dataset(name, **json.loads(options))


@lru_cache(maxsize=1)
def _problem(description: str, seed: int) -> Problem:
    """The problem of a data set, described as JSON."""
    data = json.loads(description)
    dataset = _dataset(data)
    if dataset.labels is not None:
        return _labelled(dataset, data["per_class"], data["held_out_classes"], seed)
    X = np.asarray(dataset.X, dtype=np.float32)
    queries = np.asarray(dataset.queries, dtype=np.float32)
    relevance = dataset.relevance
    assert relevance is not None
    if "test" not in dataset.splits:
        return Problem(X, relevance, queries, None, None, None)
    train, test = dataset.splits["train"], dataset.splits["test"]
    test = test[relevance.trainable[test]]
    split = hold_out(X, relevance, queries, train, test)
    known = share_known(split.relevance, split.judged)
    groups = group_queries(split.judged)
    return Problem(X, split.relevance, split.queries, split, known, groups)


def _labelled(dataset: Dataset, per_class: int, n_held_out: int, seed: int) -> Problem:
    """Learn from some classes; test rows rank training rows of all classes."""
    labels = np.asarray(dataset.labels)
    X = np.asarray(dataset.X, dtype=np.float32)
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(labels))
    corpus = _some_of_each(labels, dataset.splits["train"], per_class, rng)
    learned = corpus[~np.isin(labels[corpus], classes[:n_held_out])]
    test = dataset.splits["test"]
    judged = Relevance.from_labels(labels[corpus], query_labels=labels[test])
    relevance = Relevance.from_labels(labels[learned])
    split = Split(X[learned], relevance, None, X[test], judged, corpus=X[corpus])
    known = np.isin(labels[test], labels[learned]).astype(float)
    groups = np.unique(labels[test], return_inverse=True)[1]
    return Problem(X[learned], relevance, None, split, known, groups)


def _some_of_each(
    labels: np.ndarray, rows: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """So many rows of each class, drawn at random."""
    drawn = []
    for label in np.unique(labels[rows]):
        drawn.append(rng.permutation(rows[labels[rows] == label])[:n])
    return np.sort(np.concatenate(drawn))


# ---------------------------------------------------------------------- tables


def _table(label: str, results: Mapping[str, Result]) -> Table:
    """A row for each method, after that of unchanged vectors."""
    rows: list[Sequence[str]] = []
    sizes = ""
    for name, result in results.items():
        if "unchanged" in result:
            unchanged = result["unchanged"]
            cells = [_mean(unchanged.get(question)) for question in QUESTIONS]
            rows.append(["unchanged", *cells, "", ""])
            sizes = _sizes(unchanged)
        cells = [_gain(result["answers"].get(question)) for question in QUESTIONS]
        rows.append([name, *cells, result["decision"], f"{result['seconds']:,.1f}"])
    return Table(f"{label}{sizes}", HEADER, rows)


def _sizes(answers: Mapping[str, Any]) -> str:
    counts = [f"{answers[name]['queries']:,} {name}" for name in answers]
    return f" ({', '.join(counts)})"


def _mean(answer: Any) -> str:
    return "–" if answer is None else f"{answer['value']:.3f}"


def _gain(answer: Any) -> str:
    """Mean, difference from unchanged vectors, and whether it harms."""
    if answer is None:
        return "–"
    difference = f"{answer['difference']:+.3f}"
    return f"{answer['value']:.3f} ({difference}, {answer['outcome']})"


# ---------------------------------------------------------------------- goals


def _goals(
    sets: Sequence[Mapping[str, Any]], results: Mapping[str, Mapping[str, Result]]
) -> Table:
    """What was to be shown on training folds, and whether it is."""
    rows: list[Sequence[str]] = []
    for data in sets:
        tuned = results[data["label"]].get("tune")
        goal = data.get("goal")
        if tuned is not None and goal is not None:
            rows.append([f"{data['label']}: {GOALS[goal]}", *CHECKS[goal](tuned)])
    harmless = {
        label: methods for label, methods in results.items() if not _harms_new(methods)
    }
    for name in ("tune", "tune, prefer known"):
        label = f"gain on known documents, {name}"
        kinds = {label: results, f"{label}, where the map harms no new ones": harmless}
        for kind, found in kinds.items():
            gains = _known_gains(found, name)
            if gains is not None:
                rows.append([kind, *gains])
    return Table("Goals, judged on training folds", ["goal", "measured", "held"], rows)


GOALS = {
    "unharmed": "neither known nor new documents are harmed",
    "shipped": "shipped if the estimate is significant",
}


def _unharmed(tuned: Result) -> tuple[str, str]:
    outcomes = []
    for name in ("known", "new"):
        answer = tuned["answers"].get(name)
        if answer is not None:
            outcomes.append(f"{name} {answer['difference']:+.3f} {answer['outcome']}")
    harmed = any("harmed" in text for text in outcomes)
    held = not harmed or tuned["decision"] == "keep"
    return f"{tuned['decision']}: {', '.join(outcomes)}", _yes(held)


def _shipped(tuned: Result) -> tuple[str, str]:
    held = tuned["p_value"] > ALPHA or tuned["decision"] != "keep"
    return f"{tuned['decision']}, p = {tuned['p_value']:.2g}", _yes(held)


CHECKS = {"unharmed": _unharmed, "shipped": _shipped}


def _harms_new(methods: Mapping[str, Result]) -> bool:
    """Whether the map that is always taken harms new documents."""
    answers = methods.get("map, always", {}).get("answers", {})
    return bool(answers.get("new", {}).get("outcome") == "harmed")


def _known_gains(
    results: Mapping[str, Mapping[str, Result]], name: str
) -> tuple[str, str] | None:
    """Mean gain on known documents of what tune decides, and of the map taken always."""
    tuned, fixed = [], []
    for methods in results.values():
        if name not in methods or "map, always" not in methods:
            continue
        always_gain = methods["map, always"]["answers"].get("known")
        gain = methods[name]["answers"].get("known")
        if always_gain is None:
            continue
        kept = methods[name]["decision"] == "keep" or gain is None
        tuned.append(0.0 if kept else gain["difference"])
        fixed.append(always_gain["difference"])
    if not tuned:
        return None
    text = f"{np.mean(tuned):+.4f}, map taken always {np.mean(fixed):+.4f}"
    return f"{text} ({len(tuned)} sets)", _yes(np.mean(tuned) >= np.mean(fixed))


def _yes(held: Any) -> str:
    return "yes" if held else "no"
