"""Drift: have the queries changed since a metric was learned, and has its gain survived?"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from .._engine.projections import MAX_SAMPLE, project, spread_rows
from .._engine.rows import check_n_features
from .._engine.vectors import as_rows
from ..relevance.splits import Split
from .held_out import Judge, orientation
from .regression import MIN_QUERIES
from .search_task import check_task
from .significance import ClusteredMean, clustered_mean

PERMUTATIONS = 999  # so that the smallest p-value is 0.001
MAX_NEW = 2 * MAX_SAMPLE  # new queries that are compared: more tell hardly more
BOUND = 1.6449  # standard errors of a one-sided 95 % bound


class Drift(NamedTuple):
    """Outcome of a test for drift of the queries.

    Parameters
    ----------
    outcome : {"drifted", "no drift found"}
        Drifted: the p-value is at most the level.
    p_value : float
        Of a permutation test of the energy distance of both samples.
    size : float
        Energy coefficient of inhomogeneity: 0 for equal distributions, 1 for two points.
    n_learned, n_new : int
        Queries compared: of those that the metric was learned from, and new ones.
    level : float
        Promised rate of false alarms.

    Examples
    --------
    >>> from rankspace.evaluation import Drift
    >>> print(Drift("drifted", 0.001, 0.2, 400, 300, 0.05))
    drifted: the new queries differ from those the metric was learned from (p = 0.001, level 0.05, \
size 0.200; 300 new, 400 of before)
    """

    outcome: str
    p_value: float
    size: float
    n_learned: int
    n_new: int
    level: float

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python objects."""
        return self._asdict()

    def __str__(self) -> str:
        said = "are not shown to differ from"
        if self.outcome == "drifted":
            said = "differ from"
        return (
            f"{self.outcome}: the new queries {said} those the metric was learned from "
            f"(p = {self.p_value:.3f}, level {self.level:g}, size {self.size:.3f}; "
            f"{self.n_new} new, {self.n_learned} of before)"
        )


def check_drift(
    metric: Any, queries: Any, *, level: float = 0.05, random_state: int = 0
) -> Drift:
    """Test whether new queries have drifted from those that a metric was learned from.

    A two-sample permutation test of the energy distance of random projections. If both samples are
    drawn alike and independently, it gives a false alarm with probability ``level``.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric, AsymmetricMetric, KernelMetric or LocalMetric
        A metric with a ``query_sample``, as `tune` and the command ``fit`` keep one.
    queries : path or array-like of shape (n_queries, n_query_features)
        Vectors of new queries; of more than 1,000, so many are compared, evenly spaced.
    level : float, default=0.05
        Rate of false alarms.
    random_state : int, default=0
        Seed of the permutations.

    Returns
    -------
    Drift

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.evaluation import check_drift
    >>> rng = np.random.default_rng(0)
    >>> metric = LinearMetric(np.eye(8))
    >>> metric.keep_query_sample(rng.normal(size=(200, 8)))
    >>> check_drift(metric, rng.normal(size=(100, 8))).outcome
    'no drift found'
    >>> check_drift(metric, rng.normal(0.5, size=(100, 8))).outcome
    'drifted'
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1: got {level}.")
    old = metric.query_sample
    if old is None:
        raise ValueError(
            "the metric must hold a sample of the queries it was learned from, and this one does "
            "not: it is from an older version, or was not written by tune or fit from queries with "
            "vectors. Learn it again, or call metric.keep_query_sample(queries)."
        )
    queries = as_rows(queries, "queries")
    rows = spread_rows(queries, MAX_NEW)
    check_n_features(rows, _query_width(metric), "queries")
    unit = getattr(metric, "similarity", None) == "cosine"
    new = project(rows, "queries", unit=unit)
    if min(len(old), len(new)) < MIN_QUERIES:
        raise ValueError(
            f"a test for drift needs at least {MIN_QUERIES} queries of before and as many new "
            f"ones: got {len(old)} and {len(new)}."
        )
    p_value, size = energy_test(old, new, random_state)
    outcome = "drifted" if p_value <= level else "no drift found"
    return Drift(outcome, p_value, size, len(old), len(new), level)


def _query_width(metric: Any) -> int:
    """Number of features of a query."""
    query_map = getattr(metric, "query_map", None)
    return int(metric.n_features if query_map is None else query_map.shape[1])


def energy_test(old: np.ndarray, new: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """P-value of a permutation test of the energy distance of two samples, and its size.

    The statistic is ``2 E|X - Y| - E|X - X'| - E|Y - Y'|``, a quadratic form of the distances of
    all points with weights of opposite sign.
    """
    from scipy.spatial.distance import cdist

    points = np.concatenate((old, new)).astype(np.float64)
    distances = cdist(points, points)
    n, m = len(old), len(new)
    weights = np.repeat((1 / n, -1 / m), (n, m))
    rng = np.random.default_rng(seed)
    shuffled = np.tile(weights, (PERMUTATIONS, 1))
    rng.permuted(shuffled, axis=1, out=shuffled)
    observed = -float(weights @ distances @ weights)
    others = -np.einsum("pi,pi->p", shuffled @ distances, shuffled)
    # Permutations that only swap equal points may differ by rounding.
    slack = 1e-12 * distances.mean()
    n_extreme = np.count_nonzero(others >= observed - slack)
    p_value = (1 + n_extreme) / (1 + PERMUTATIONS)
    return float(p_value), _inhomogeneity(distances, n)


def _inhomogeneity(distances: np.ndarray, n: int) -> float:
    """Energy coefficient of inhomogeneity of the first n points and the others, without bias."""
    m = len(distances) - n
    across = distances[:n, n:].mean()
    if not across:
        return 0.0
    within_old = distances[:n, :n].sum() / (n * (n - 1))
    within_new = distances[n:, n:].sum() / (m * (m - 1))
    return float(max(0.0, 1 - (within_old + within_new) / (2 * across)))


class Gain(NamedTuple):
    """Outcome of a test whether the gain of a metric has survived.

    Parameters
    ----------
    outcome : {"survived", "lost", "inconclusive"}
        Survived: the 95 % interval of the gain is above 0. Lost: it is not, and the gain is below
        the promised one by a one-sided test at the 5 % level; without a promise, the interval is
        below 0. Else inconclusive.
    measure : str
        The measure.
    unchanged, tuned : float
        Its mean with unchanged vectors, and with the metric.
    gain : float
        The difference, positive if the metric is better.
    interval : tuple of float
        95 % confidence interval of the gain.
    promised : float or None
        The gain that `tune` measured, if the card of the metric says so.
    n_queries : int
        Number of queries.

    Examples
    --------
    >>> from rankspace.evaluation import Gain
    >>> print(Gain("survived", "map", 0.5, 0.6, 0.1, (0.05, 0.15), None, 90))
    survived: map gains +0.1000 (95 % interval +0.0500 to +0.1500, 90 queries)
    """

    outcome: str
    measure: str
    unchanged: float
    tuned: float
    gain: float
    interval: tuple[float, float]
    promised: float | None
    n_queries: int

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python objects."""
        return {**self._asdict(), "interval": list(self.interval)}

    def __str__(self) -> str:
        low, high = self.interval
        promise = ""
        if self.promised is not None:
            promise = f"promised {self.promised:+.4f}, "
        return (
            f"{self.outcome}: {self.measure} gains {self.gain:+.4f} ({promise}95 % interval "
            f"{low:+.4f} to {high:+.4f}, {self.n_queries} queries)"
        )


def check_gain(
    metric: Any,
    X: Any,
    relevance: Any,
    queries: Any,
    *,
    measure: str | None = None,
    item_ids: Any = None,
    query_ids: Any = None,
) -> Gain:
    """Test whether the gain of a metric over unchanged vectors has survived on new judgments.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric, AsymmetricMetric or KernelMetric
        The metric; what `tune` promised is read from its card.
    X : path or array-like of shape (n_items, n_features)
        Vectors of the corpus.
    relevance : Relevance, list, mapping or dataframe
        Judgments that the metric was not learned from.
    queries : path or array-like of shape (n_queries, n_query_features)
        Vectors of the judged queries.
    measure : str, optional
        The measure; by default that of the card, or "ndcg-linear@10".
    item_ids, query_ids : array-like of str, optional
        Ids of the rows of ``X`` and of ``queries``, for judgments by id; by default those that
        their files or tables hold.

    Returns
    -------
    Gain

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> from rankspace.evaluation import check_gain
    >>> rng = np.random.default_rng(0)
    >>> X, Q = rng.normal(size=(200, 4)), rng.normal(size=(40, 4))
    >>> metric = LinearMetric([[1.0, 0.0, 0.0, 0.0]])
    >>> nearest = np.abs(Q[:, :1] - X[:, 0]).argsort(axis=1)[:, :3]
    >>> check_gain(metric, X, nearest.tolist(), Q).outcome
    'survived'
    """
    if not hasattr(metric, "embed_items"):
        raise ValueError(
            f"the gain of a {type(metric).__name__} cannot be checked, as it does not map vectors: "
            "write runs of both, and compare them."
        )
    measure = measure or _measure_of(metric.card)
    task, _ = check_task(
        X, relevance, queries, metric.similarity, measure, item_ids, query_ids
    )
    split = Split(task.X, task.relevance, None, task.points, task.relevance)
    judge = Judge(split, task.similarity, task.measure)
    before, after = judge.baseline().values, judge.score(metric).values
    estimate = clustered_mean(after - before, task.distinct_queries)
    promise = promised_gain(metric.card, task.measure)
    sign = orientation(task.measure)
    return Gain(
        gain_outcome(estimate, promise),
        task.measure,
        sign * float(np.nanmean(before)),
        sign * float(np.nanmean(after)),
        estimate.mean,
        estimate.interval,
        None if promise is None else promise[0],
        estimate.n,
    )


def gain_outcome(estimate: ClusteredMean, promise: tuple[float, float] | None) -> str:
    """Whether a gain, with a promise and its standard error, has survived or is lost."""
    low, high = estimate.interval
    if low > 0:
        return "survived"
    if promise is None:
        return "lost" if high < 0 else "inconclusive"
    promised, error = promise
    shortfall = promised - estimate.mean
    is_short = shortfall > BOUND * np.hypot(error, estimate.standard_error)
    return "lost" if high < 0 or is_short else "inconclusive"


def promised_gain(card: Any, measure: str) -> tuple[float, float] | None:
    """The gain that a card promises over all queries in this measure, with its standard error."""
    if card.get("measure") != measure or card.get("decision") == "keep":
        return None
    for row in _rows_of(card.get("questions")):
        if str(row.get("label", "")).startswith("all"):
            numbers = [row.get(name) for name in ("difference", "low", "high")]
            if not all(map(_is_change, numbers)):
                return None
            gain, low, high = map(float, numbers)
            # Half the width of a 95 % interval is 1.96 standard errors.
            return orientation(measure) * gain, (high - low) / (2 * 1.96)
    return None


def _measure_of(card: Any) -> str:
    """The measure that a card names, or the default."""
    measure = card.get("measure") or "ndcg-linear@10"
    if not isinstance(measure, str):
        raise ValueError(
            f"the card of the metric must name its measure by a text: got {measure!r}. Pass "
            "measure."
        )
    return measure


def _rows_of(table: Any) -> list[Any]:
    """The rows of a table in a card, which may hold anything."""
    if not isinstance(table, list):
        return []
    return [row for row in table if isinstance(row, dict)]


def _is_change(value: Any) -> bool:
    """Whether a value of a card can be a change of a measure."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max
