"""Do the intervals, decisions and promises of tune hold?

"Simulated" draws held-out differences of single queries, so nothing is learned: eight strengths
whose true gain is known, 300 queries with a standard deviation of 0.15 (most differences are 0 or
small, some large), half of them known, in groups of two on average that agree in part. The
procedure of tune then chooses, tests and decides. "Covered" counts the runs whose 95 % interval
holds the true mean of what was chosen, of those in which something was chosen. "Power" draws 300
queries, asks the report how many would show a gain of 0.02 with 80 % power, draws so many anew, and
counts how often the test shows it. "Shipped to new" is the decision "ship".
"Resampled" (`--resamples N`, needs the data folder) takes 300 training queries of SciFact or
NFCorpus at random, lets tune fit and choose, and compares its interval with the mean gain of the
very same maps on all other training queries of the same kind: known to the fold, or with documents
new to it. That mean has an error too, which widens the interval. The table has
279 draws of SciFact.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _table import publish
from joblib import Parallel, delayed
from scipy.stats import t

from rankspace import Index
from rankspace.datasets import open_dataset
from rankspace.evaluation.cross_validation import Folds, Question
from rankspace.evaluation.held_out import Judge
from rankspace.evaluation.search_task import SearchTask, check_task
from rankspace.evaluation.significance import (
    ClusteredMean,
    clustered_mean,
    queries_needed,
)
from rankspace.learners.families import Family, families
from rankspace.metrics.embedding import EmbeddingMetric
from rankspace.relevance.relevance import Relevance
from rankspace.relevance.splits import (
    GroupFolds,
    QueryFolds,
    Split,
    fold_groups,
    fold_queries,
    group_queries,
    hold_out,
    only_trainable,
    share_known,
)
from rankspace.tuning.selection import ALPHA, Verdict, cross_fit, decide
from rankspace.tuning.trials import Deadline, Trials

N_STRENGTHS = 8
N_FOLDS = 5
N_QUERIES = 300
SPREAD = 0.15
TOLERANCE = 0.01
AGREEMENT = 0.3  # share of the variance of a difference that its group has in common
ALIKE = 0.9  # and that all strengths have in common
CHANGED = 0.4  # share of the queries whose difference is not almost 0


# ---------------------------------------------------------------------- simulated


@dataclass(frozen=True)
class Truth:
    """True mean differences for known and for new documents, for each strength."""

    known: np.ndarray
    new: np.ndarray

    @classmethod
    def constant(cls, known: float, new: float) -> Truth:
        """The same at every strength."""
        return cls(np.full(N_STRENGTHS, known), np.full(N_STRENGTHS, new))

    @classmethod
    def rising(cls, known: float, new: float) -> Truth:
        """From little at the strongest regularisation to all at the weakest."""
        ramp = np.linspace(1 / N_STRENGTHS, 1, N_STRENGTHS)
        return cls(known * ramp, new * ramp)


def drawn_groups(n: int, rng: np.random.Generator) -> np.ndarray:
    """A group for each query, of two queries on average."""
    sizes = rng.geometric(0.5, size=n)
    return np.repeat(np.arange(n), sizes)[:n]


def noise(groups: np.ndarray, agreement: float, rng: np.random.Generator) -> np.ndarray:
    """Deviations of unit variance for all strengths: mostly small, sometimes large."""

    def deviations(n: int) -> np.ndarray:
        large = rng.random(n) < CHANGED
        return rng.normal(size=n) * np.where(large, np.sqrt(0.99 / CHANGED), 0.1)

    n = groups.size
    shared = deviations(groups.max() + 1)[groups]
    own = np.sqrt(agreement) * shared + np.sqrt(1 - agreement) * deviations(n)
    by_strength = rng.normal(size=(N_STRENGTHS, n))
    return np.sqrt(ALIKE) * own + np.sqrt(1 - ALIKE) * by_strength


def drawn(
    truth: Truth, n: int, rng: np.random.Generator
) -> tuple[dict[str, Question], dict[str, np.ndarray]]:
    """Questions of one run, and the true gain of each query at a strength."""
    groups = drawn_groups(n, rng)
    each = np.arange(n)
    is_known = rng.random(n) < 0.5
    known, new = truth.known[:, None], truth.new[:, None]
    by_query_truth = np.vstack([np.zeros(n), np.where(is_known, known, new)])
    by_group_truth = np.vstack([np.zeros(n), np.broadcast_to(new, (N_STRENGTHS, n))])
    zero = np.zeros((1, n))
    by_query = by_query_truth + np.vstack([zero, SPREAD * noise(each, 0.0, rng)])
    by_group = by_group_truth + np.vstack(
        [zero, SPREAD * noise(groups, AGREEMENT, rng)]
    )
    folds = rng.permutation(n) % N_FOLDS
    questions = {
        "all": Question(by_query, each, folds),
        "known": Question(np.where(is_known, by_query, np.nan), each, folds),
        "new": Question(by_group, groups, groups % N_FOLDS),
    }
    truths = {
        "all": by_query_truth,
        "known": np.where(is_known, by_query_truth, np.nan),
        "new": by_group_truth,
    }
    return questions, truths


def decided(
    truth: Truth, n: int, rng: np.random.Generator
) -> tuple[Verdict, dict[str, float]]:
    """The verdict of one run, and the true mean of what was chosen for each question."""
    questions, truths = drawn(truth, n, rng)
    strengths = cross_fit(questions, "both", TOLERANCE)
    tested = {name: q.at(strengths[name]) for name, q in questions.items()}
    each = np.arange(n)
    true_means = {
        name: float(np.nanmean(truths[name][strengths[name], each]))
        for name in questions
    }
    return decide(tested, "both", TOLERANCE), true_means


def covers(estimate: ClusteredMean, truth: float) -> bool:
    low, high = estimate.interval
    return bool(low <= truth <= high)


SCENES = {
    "nothing to gain": Truth.constant(0.0, 0.0),
    "both gain 0.05": Truth.constant(0.05, 0.05),
    "known gain 0.08, new lose 0.03, rising": Truth.rising(0.08, -0.03),
}


def coverage_rows(n_runs: int) -> list[list[Any]]:
    """How often the intervals cover."""
    rows = []
    for scene, truth in SCENES.items():
        rng = np.random.default_rng(0)
        runs = [decided(truth, N_QUERIES, rng) for _ in range(n_runs)]
        for name in ("known", "new"):
            shares = []
            for verdict, true_means in runs:
                # A run that chose the unchanged vectors for all has no interval.
                if verdict.estimates[name].standard_error > 0:
                    shares.append(covers(verdict.estimates[name], true_means[name]))
            what = f"simulated: {name} documents covered, {scene}"
            rows.append([what, len(shares), float(np.mean(shares)), "0.92 to 0.98"])
    return rows


def decision_rows(n_runs: int) -> list[list[Any]]:
    """How often a harm and a gain are shipped."""
    gain = "both gain 0.05: shipped to new documents too"
    harm = "known gain 0.05, new lose 0.03: shipped to new documents"
    none = "nothing to gain: shipped at all"
    cases: list[tuple[str, Truth, Callable[[str], bool], str]] = [
        (gain, Truth.constant(0.05, 0.05), _to_new, "at least 0.8"),
        (harm, Truth.constant(0.05, -0.03), _to_new, "at most 0.1"),
        (none, Truth.constant(0.0, 0.0), _at_all, "at most 0.05"),
    ]
    rows = []
    for label, truth, counts, required in cases:
        rng = np.random.default_rng(1)
        runs = [decided(truth, N_QUERIES, rng)[0].decision for _ in range(n_runs)]
        share = float(np.mean([counts(decision) for decision in runs]))
        rows.append([f"simulated: {label}", n_runs, share, required])
    return rows


def _to_new(decision: str) -> bool:
    return decision == "ship"


def _at_all(decision: str) -> bool:
    return decision != "keep"


def power_rows(n_runs: int, gain: float = 0.02) -> list[list[Any]]:
    """How often a gain shows in as many queries as promised."""
    rows = []
    for label, agreement in (("independent queries", 0.0), ("groups", AGREEMENT)):
        rng = np.random.default_rng(2)
        shown = []
        for _ in range(n_runs):
            needed = queries_needed(gain, _sample(gain, N_QUERIES, agreement, rng))
            shown.append(_sample(gain, needed, agreement, rng).p_value <= ALPHA)
        what = f"simulated: power promised as 0.8, {label}"
        rows.append([what, n_runs, float(np.mean(shown)), "0.75 to 0.85"])
    return rows


def _sample(
    gain: float, n: int, agreement: float, rng: np.random.Generator
) -> ClusteredMean:
    groups = drawn_groups(n, rng) if agreement else np.arange(n)
    values = gain + SPREAD * noise(groups, agreement, rng)[0]
    return clustered_mean(values, groups)


# ---------------------------------------------------------------------- resampled


@dataclass(frozen=True)
class Recorded(Family):
    """A family that keeps the metrics it learned, by the vectors of their training queries."""

    family: Family
    paths: dict[bytes, list[EmbeddingMetric]] = field(default_factory=dict)

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[EmbeddingMetric]:
        """The metrics of the family."""
        path = self.paths.setdefault(queries.tobytes(), [])
        for metric in self.family.metrics(X, relevance, queries, index):
            path.append(metric)
            yield metric


@dataclass(frozen=True)
class Resample:
    """Some training queries of a collection, which tune has learned from, and the others."""

    data: SearchTask
    fresh: np.ndarray
    drawn: np.ndarray
    seed: int

    @classmethod
    def of(cls, name: str, seed: int) -> Resample:
        """Draw the queries."""
        collection = open_dataset(name)
        relevance = collection.relevance
        assert relevance is not None
        train = collection.splits["train"]
        data, _ = check_task(
            np.asarray(collection.X, dtype=np.float32),
            relevance.take_queries(train),
            np.asarray(collection.queries[train], dtype=np.float32),
            "cosine",
        )
        order = np.random.default_rng(seed).permutation(data.n_queries)
        return cls(data, np.sort(order[N_QUERIES:]), np.sort(order[:N_QUERIES]), seed)

    def covered(self) -> dict[str, bool]:
        """For each question, whether its interval holds the mean over fresh queries."""
        sample = self.data.take(self.drawn)
        family = self._family()
        nobody = np.zeros(sample.n_queries, dtype=bool)
        settings = ("both", TOLERANCE, N_FOLDS, self.seed, Deadline(None), _quiet)
        (result,) = Trials(sample, nobody, *settings).run([family])
        found = {}
        for name, folds in self._folds(sample).items():
            question = result.judged.questions[name]
            estimate = result.question(name).estimate(0)
            # Unchanged vectors in all folds have no interval.
            if not question.is_measurable or estimate.standard_error == 0:
                continue
            asked = ~np.isnan(question.differences[0])
            truths, weights = [], []
            for fold in np.unique(folds.queries[asked]):
                members = (folds.queries == fold) & asked
                strength = int(result.strengths[name][members][0])
                path = family.paths[_key(sample, folds, fold)]
                metric = path[strength - 1] if strength else None
                truths.append(self._true_gain(folds, fold, metric))
                weights.append(members.sum() / asked.sum())
            found[name] = _agrees(estimate, truths, np.array(weights))
        return found

    def _family(self) -> Recorded:
        """The default family of tune."""
        similarity, measure = self.data.similarity, self.data.measure
        (family,) = families(None, similarity, measure, True, self.seed)
        about = (family.method, family.label, family.similarity, family.strengths)
        return Recorded(*about, family)

    def _folds(self, sample: SearchTask) -> dict[str, Folds]:
        """The folds of each question, as tune makes them."""
        return {
            "known": fold_queries(sample.n_queries, N_FOLDS, self.seed),
            "new": fold_groups(sample.relevance, N_FOLDS, self.seed),
        }

    def _true_gain(
        self, folds: Folds, fold: int, metric: EmbeddingMetric | None
    ) -> ClusteredMean:
        """Mean gain of a fold's map on fresh queries that are to it what held-out ones are."""
        split, groups = self._fresh_split(folds, fold)
        gain = np.zeros(len(split.points))
        if metric is not None:
            judge = Judge(split, self.data.similarity, self.data.measure)
            gain = judge.score(metric).values - judge.baseline().values
        return clustered_mean(gain, groups)

    def _fresh_split(self, folds: Folds, fold: int) -> tuple[Split, np.ndarray]:
        """Fresh queries of one question, and groups of them."""
        data, relevance = self.data, self.data.relevance
        if isinstance(folds, QueryFolds):
            train = self.drawn[folds.queries != fold]
            split = hold_out(data.X, relevance, data.queries, train, self.fresh)
            keep = share_known(split.relevance, split.judged) == 1
            groups = np.arange(keep.size)
        else:
            split, groups = self._new_split(fold, folds)
            keep = share_known(split.relevance, split.judged) == 0
        judged = split.judged.take_queries(keep)
        return split._replace(points=split.points[keep], judged=judged), groups[keep]

    def _new_split(self, fold: int, by_group: GroupFolds) -> tuple[Split, np.ndarray]:
        """Fresh queries in a fold of groups; where groups were cut, with a part of their items."""
        data, relevance = self.data, self.data.relevance
        items = by_group.items
        groups = group_queries(relevance.take_queries(self.fresh))
        if (items >= 0).any():
            # Documents that no drawn query asks for get folds as theirs did.
            rng = np.random.default_rng(self.seed)
            drawn_folds = rng.integers(N_FOLDS, size=items.size)
            items = np.where(items >= 0, items, drawn_folds)
            groups = np.arange(groups.size)
        queries = np.full(relevance.n_queries, fold)
        queries[self.drawn] = by_group.queries
        folds = GroupFolds(queries, items, queries)
        split = folds.split(data.X, relevance, data.queries, fold)
        fresh = np.isin(np.flatnonzero(queries == fold), self.fresh)
        judged = split.judged.take_queries(fresh)
        return split._replace(points=split.points[fresh], judged=judged), groups


def _key(task: SearchTask, folds: Folds, fold: int) -> bytes:
    """The vectors of a fold's training queries."""
    split = folds.split(task.X, task.relevance, task.queries, fold)
    queries: np.ndarray = only_trainable(split).queries
    return queries.tobytes()


def _quiet(step: str, fraction: float) -> None:
    """No progress is shown."""


def _agrees(
    estimate: ClusteredMean, truths: list[ClusteredMean], weights: np.ndarray
) -> bool:
    """Whether estimate and truth differ by no more than their errors allow."""
    truth = float(weights @ [fold.mean for fold in truths])
    # The folds share their fresh queries, so their errors add up without cancelling.
    error = float(weights @ [fold.standard_error for fold in truths])
    width = float(t.ppf(0.975, estimate.n_clusters - 1))
    widened = width * float(np.hypot(estimate.standard_error, error))
    return bool(abs(estimate.mean - truth) <= widened)


def resampled_rows(n_resamples: int) -> list[list[Any]]:
    """How often the intervals cover, with real queries and maps."""
    rows = []
    for name in ("scifact", "nfcorpus"):
        jobs = (delayed(resampled)(name, seed) for seed in range(n_resamples))
        runs = Parallel(n_jobs=-1)(jobs)
        for question in ("known", "new"):
            shares = [run[question] for run in runs if question in run]
            share = float(np.mean(shares)) if shares else float("nan")
            what = f"resampled {name}: {question} documents covered"
            rows.append([what, len(shares), share, "0.92 to 0.98"])
    return rows


def resampled(name: str, seed: int) -> dict[str, bool]:
    """For each question of one draw, whether its interval covers."""
    found = Resample.of(name, seed).covered()
    print(name, seed, found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resamples", type=int, default=0, help="of each collection")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = coverage_rows(400) + decision_rows(400) + power_rows(1000)
    if options.resamples:
        rows += resampled_rows(options.resamples)
    publish("tune: calibration", ["what", "runs", "share", "required"], rows)


if __name__ == "__main__":
    main()
