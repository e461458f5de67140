"""Local metrics of candidate lists, each with the document that ranks its list best as anchor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from ...._engine.parallel import Step, current_backend
from ...._engine.parallel.threads import single_threaded_blas
from ....evaluation.measures import gains_of
from .lists import Lists, even_runs, high_counts
from .mean import mean_factor
from .scatter import Scatter

BLOCK = 2**17  # numbers in a block of documents
LISTS = 4  # whose metrics are made in one block
MAX_CANDIDATES = 64  # documents tried as an anchor


class LocalOptions(NamedTuple):
    """Options of a local metric.

    ``pooling`` is the share of the scatter of all lists in that of one, ``n_components`` the number
    of directions kept of a metric (0: all), ``k`` the NDCG cut-off that chooses an anchor,
    ``largest`` whether the largest distance in a list is scaled to 1, rather than the root mean
    square, ``n_directions`` the number of leading directions of the metric of all lists in which
    each metric is made (0: all).
    """

    t: float
    reg: float
    pooling: float
    n_components: int
    k: int
    largest: bool
    n_directions: int = 0


class LocalMetrics(NamedTuple):
    """Factors (m, r, d) of metrics, and the rows that are their anchors (m,), or -1."""

    factors: np.ndarray
    anchors: np.ndarray


class ListStep(Step):
    """A step over runs of candidate lists.

    ``numbers`` are those of the lists at hand, ascending; all by default.
    """

    def __init__(self, Z: Any, lists: Lists, numbers: np.ndarray | None = None) -> None:
        self.Z = Z
        self.lists = lists
        self.numbers = np.arange(len(lists)) if numbers is None else numbers

    def restrict(self, blocks: list[np.ndarray]) -> ListStep:
        """The same with the documents of some lists only."""
        numbers = np.concatenate(blocks)
        lists = self.lists.take(np.searchsorted(self.numbers, numbers))
        Z = self.Z[lists.rows]
        return type(self)(Z, lists.renumbered(), numbers)


class PairSumStep(ListStep):
    """Scatter sums over the pairs of lists."""

    def map_block(self, block: np.ndarray, state: None) -> np.ndarray:
        """Sums over a run of lists."""
        lists = self.lists.take(np.searchsorted(self.numbers, block))
        return _pair_sums(self.Z, lists, high_counts(lists), lists.ends()[1])


class ListMetricStep(ListStep):
    """The local metric of each list, and the place of its anchor in the list."""

    def map_block(
        self, block: np.ndarray, state: tuple[Scatter, np.ndarray | None, LocalOptions]
    ) -> list[tuple[np.ndarray, int]]:
        """Factors and anchors of a run of lists."""
        lists = self.lists.take(np.searchsorted(self.numbers, block))
        n_high = high_counts(lists)
        return [self._metric(lists, q, n_high[q], *state) for q in range(len(lists))]

    def _metric(
        self,
        lists: Lists,
        q: int,
        n_high: int,
        pool: Scatter,
        shared: np.ndarray | None,
        options: LocalOptions,
    ) -> tuple[np.ndarray, int]:
        entries = lists.rows_of(q)
        grades = lists.grades[entries]
        points = self.Z[lists.rows[entries]].astype(np.float64)
        if shared is not None:
            points = points @ shared.T
        # Similar: documents of the upper grades; dissimilar: these and the lowest grade.
        scatter = set_scatter(points[:n_high], points[grades == grades[-1]])
        factor = local_factor(scatter, pool, options)
        mapped = points @ factor.T
        anchor = best_anchor(mapped, grades, options.k)
        factor /= unit_of(mapped - mapped[anchor], options.largest)
        if shared is not None:
            factor = factor @ shared
        return factor, anchor


def list_metrics(
    Z: Any, lists: Lists, chosen: np.ndarray, options: LocalOptions
) -> LocalMetrics:
    """Metrics and anchors of the chosen lists; each depends on its list and the pool alone."""
    pool = pooled_scatter(Z, lists)
    shared = shared_directions(pool, options)
    if shared is not None:
        pool = pool.along(shared)
    blocks = np.array_split(chosen, -(-chosen.size // LISTS))
    state = (pool, shared, options)
    factors = []
    anchors = []
    for run in current_backend().map(ListMetricStep(Z, lists), blocks, state):
        for factor, anchor in run:
            factors.append(factor)
            anchors.append(anchor)
    rows = lists.rows[lists.indptr[chosen] + np.array(anchors)]
    return LocalMetrics(np.stack(factors), rows)


def shared_directions(pool: Scatter, options: LocalOptions) -> np.ndarray | None:
    """Leading directions of the metric of all lists as orthonormal rows; None if all count.

    A geometric mean costs the cube of the features; that of all lists is made once, the others
    only among its leading directions.
    """
    n = options.n_directions
    if not 0 < n < len(pool.similar):
        return None
    with single_threaded_blas():
        pooled = options._replace(pooling=1.0, n_components=n)
        factor = local_factor(pool, pool, pooled)
    return factor / np.linalg.norm(factor, axis=1, keepdims=True)


def set_scatter(high: np.ndarray, low: np.ndarray) -> Scatter:
    """Mean scatter of pairs inside one set, and of pairs across two; zero without a pair."""
    centre = high.mean(axis=0)
    high = high - centre
    low = low - centre
    # From this centre the column sum of high is zero, and with it all cross terms.
    inside = high.T @ high / len(high)
    pairs = 2 * len(high) / max(1, len(high) - 1)
    return Scatter(pairs * inside, inside + low.T @ low / len(low))


def pooled_scatter(Z: Any, lists: Lists) -> Scatter:
    """Mean scatter over the pairs of all lists."""
    d = Z.shape[1]
    runs = even_runs(lists.indptr[:-1], max(1, BLOCK // d))
    blocks = [np.arange(first, last) for first, last in runs]
    similar, dissimilar = current_backend().reduce(PairSumStep(Z, lists), blocks)
    n_high = high_counts(lists)
    n_low = lists.ends()[1]
    n_similar = lists.weights @ (n_high * (n_high - 1))
    similar = similar / n_similar if n_similar else np.eye(d)
    return Scatter(similar, dissimilar / (lists.weights @ (n_high * n_low)))


def _pair_sums(
    Z: Any, lists: Lists, n_high: np.ndarray, n_low: np.ndarray
) -> np.ndarray:
    """Sums over the pairs of documents of upper grades, and from those to the lowest grade.

    With each list moved to the mean of its upper grades, n of them and m of the lowest, the first
    is ``2 n`` times their products, the second m times these and n times those of the lowest.
    """
    sizes = np.diff(lists.indptr)
    owner = lists.owner
    place = np.arange(owner.size) - lists.indptr[owner]
    high = place < n_high[owner]
    used = high | (place >= (sizes - n_low)[owner])
    owner = owner[used]
    high = high[used]
    points = Z[lists.rows[used]].astype(np.float64)
    starts = np.searchsorted(owner, np.arange(len(lists)))
    upper = np.add.reduceat(np.where(high[:, None], points, 0.0), starts, axis=0)
    points -= (upper / n_high[:, None])[owner]
    weights = lists.weights[owner]
    n = n_high[owner]
    counts = np.where(high, n_low[owner], n)
    across = points * np.sqrt(weights * counts)[:, None]
    inside = points[high] * np.sqrt(2 * weights[high] * n[high])[:, None]
    return np.stack([inside.T @ inside, across.T @ across])


def local_factor(scatter: Scatter, pool: Scatter, options: LocalOptions) -> np.ndarray:
    """The factor of the geometric mean of one list, largest directions first."""
    S = _pooled(scatter.similar, pool.similar, options)
    D = _pooled(scatter.dissimilar, pool.dissimilar, options)
    L = mean_factor(S, D, options.t)
    return leading_directions(L, options.n_components) if options.n_components else L


def _pooled(own: np.ndarray, pool: np.ndarray, options: LocalOptions) -> np.ndarray:
    """The scatter of a list, pooled with that of all lists and regularised."""
    d = len(pool)
    if not np.trace(own) > 0:
        own = pool if np.trace(pool) > 0 else np.eye(d)
    mixed = (1 - options.pooling) * own + options.pooling * pool
    return mixed + options.reg * np.trace(mixed) / d * np.eye(d)


def leading_directions(L: np.ndarray, n: int) -> np.ndarray:
    """The factor of the best approximation of ``L'L`` of rank n."""
    d = L.shape[1]
    if n >= d:
        return L
    # All of them: for some only, LAPACK may leave out those of a multiple eigenvalue.
    values, vectors = scipy.linalg.eigh(L.T @ L, driver="evd")
    lengths = np.sqrt(np.maximum(values[d - n :], 0))
    vectors = vectors[:, d - n :]
    # eigh leaves the sign of a vector open.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n)])
    return np.ascontiguousarray((vectors * (signs * lengths)).T[::-1])


def best_anchor(mapped: np.ndarray, grades: np.ndarray, k: int) -> int:
    """The document of the top grade from which the others rank best by NDCG@k, itself left out."""
    n_top = min(int(np.sum(grades == grades[0])), MAX_CANDIDATES)
    distances = cdist(mapped[:n_top], mapped)
    np.fill_diagonal(distances, np.inf)
    order = np.argsort(distances, axis=1, kind="stable")[:, : min(k, len(mapped) - 1)]
    discounts = 1 / np.log2(np.arange(2, order.shape[1] + 2))
    # All candidates have the same grade, so the ideal of the others is the same.
    return int(np.argmax(gains_of(grades[order]) @ discounts))


def unit_of(differences: np.ndarray, largest: bool) -> float:
    """The largest distance, or the root mean squared one; 1 if all are zero."""
    squares = np.sum(differences**2, axis=1)
    unit = float(np.sqrt(squares.max() if largest else squares.mean()))
    return unit if unit > 0 else 1.0
