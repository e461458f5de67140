"""A metric for each of some lists, and the document of the list that it ranks best from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from ...._engine.parallel import Step, current_backend
from ...._engine.parallel.threads import single_threaded_blas
from ....evaluation.measures import gains_of
from .lists import Lists, upper_counts, upper_levels
from .mean import mean_factor
from .scatter import Scatter

BLOCK = 2**17  # numbers in a block of documents
LISTS = 4  # whose metrics are made in one go
MOST_CANDIDATES = 64  # documents tried as an anchor


class Recipe(NamedTuple):
    """How a local metric is made.

    ``pooling`` is the share of the scatter of all lists in that of one, ``n_components`` how many
    directions of a metric are kept (0: all), ``k`` where the lists are cut that choose an anchor,
    ``largest`` whether the largest distance in a list becomes 1, and not the root mean square,
    ``n_directions`` how many leading directions of the metric of all lists each is made in (0:
    all).
    """

    t: float
    reg: float
    pooling: float
    n_components: int
    k: int
    largest: bool
    n_directions: int = 0


class Local(NamedTuple):
    """Factors (m, r, d) of metrics, and the rows that are their anchors (m,), or -1."""

    factors: np.ndarray
    anchors: np.ndarray


class ListStep(Step):
    """Over runs of lists: sums of their pairs or, given a pool, the metric of each list.

    ``numbers`` are those of the lists at hand, ascending; all by default.
    """

    def __init__(self, Z: Any, lists: Lists, numbers: np.ndarray | None = None) -> None:
        self.Z, self.lists = Z, lists
        self.numbers = np.arange(len(lists)) if numbers is None else numbers

    def restrict(self, blocks: list[np.ndarray]) -> ListStep:
        """The same with the documents of some lists only."""
        numbers = np.concatenate(blocks)
        lists = self.lists.take(np.searchsorted(self.numbers, numbers))
        own = Lists(
            lists.indptr, np.arange(lists.rows.size), lists.grades, lists.weights
        )
        return ListStep(self.Z[lists.rows], own, numbers)

    def map_block(self, block: np.ndarray, state: Any) -> Any:
        """Sums of a run, or a factor and the place of an anchor for each list."""
        places = np.searchsorted(self.numbers, block)
        if state is not None:
            return [self._metric(q, *state) for q in places.tolist()]
        some = self.lists.take(places)
        return _pair_sums(self.Z, some, upper_counts(some), some.ends()[1])

    def _metric(
        self, q: int, pool: Scatter, shared: np.ndarray | None, recipe: Recipe
    ) -> tuple[np.ndarray, int]:
        part = self.lists.part(q)
        grades = self.lists.grades[part]
        points = self.Z[self.lists.rows[part]].astype(np.float64)
        if shared is not None:
            points = points @ shared.T
        factor = local_factor(list_scatter(points, grades), pool, recipe)
        mapped = points @ factor.T
        best = best_anchor(mapped, grades, recipe.k)
        factor /= unit_of(mapped - mapped[best], recipe.largest)
        return factor if shared is None else factor @ shared, best


def list_metrics(Z: Any, lists: Lists, chosen: np.ndarray, recipe: Recipe) -> Local:
    """Metrics and anchors of the chosen lists; each depends on its list and the pool alone."""
    pool = pooled_scatter(Z, lists)
    shared = shared_directions(pool, recipe)
    if shared is not None:
        pool = Scatter(*(shared @ part @ shared.T for part in pool))
    blocks = np.array_split(chosen, -(-chosen.size // LISTS))
    runs = current_backend().map(ListStep(Z, lists), blocks, (pool, shared, recipe))
    found = [one for run in runs for one in run]
    anchors = lists.rows[lists.indptr[chosen] + np.array([best for _, best in found])]
    return Local(np.stack([factor for factor, _ in found]), anchors)


def shared_directions(pool: Scatter, recipe: Recipe) -> np.ndarray | None:
    """Orthonormal rows: the directions that count most in the metric of all lists, if not all do.

    A geometric mean costs the cube of the features; that of all lists is made once, the others
    among its leading directions only.
    """
    n = recipe.n_directions
    if not 0 < n < len(pool.similar):
        return None
    everyone = recipe._replace(pooling=1.0, n_components=n)
    with single_threaded_blas():
        factor = local_factor(pool, pool, everyone)
    return factor / np.linalg.norm(factor, axis=1, keepdims=True)


def list_scatter(points: np.ndarray, grades: np.ndarray) -> Scatter:
    """Mean scatter among the documents of the upper grades, and from them to the lowest grade."""
    n_high = upper_levels(grades)
    return set_scatter(points[:n_high], points[grades == grades[-1]])


def set_scatter(high: np.ndarray, low: np.ndarray) -> Scatter:
    """Mean scatter of pairs inside one set, and of pairs across two; zero without a pair."""
    centre = high.mean(axis=0)
    high, low = high - centre, low - centre
    # From this centre the column sum of high is zero, and with it all cross terms.
    inside = high.T @ high / len(high)
    pairs = 2 * len(high) / max(1, len(high) - 1)
    return Scatter(pairs * inside, inside + low.T @ low / len(low))


def pooled_scatter(Z: Any, lists: Lists) -> Scatter:
    """Mean scatter over the pairs of all lists."""
    d = Z.shape[1]
    n_high, n_low = upper_counts(lists), lists.ends()[1]
    sums = current_backend().reduce(
        ListStep(Z, lists), _runs(lists, max(1, BLOCK // d))
    )
    counts = lists.weights @ (n_high * (n_high - 1)), lists.weights @ (n_high * n_low)
    similar = sums[0] / counts[0] if counts[0] else np.eye(d)
    return Scatter(similar, sums[1] / counts[1])


def _runs(lists: Lists, most: int) -> list[np.ndarray]:
    """Lists in runs of about so many documents at most."""
    cuts = np.flatnonzero(np.diff(lists.indptr[:-1] // most)) + 1
    return np.split(np.arange(len(lists)), cuts)


def _pair_sums(
    Z: Any, lists: Lists, n_high: np.ndarray, n_low: np.ndarray
) -> np.ndarray:
    """Sums over the pairs of documents of upper grades, and from those to the lowest grade.

    With each list moved to the mean of its upper grades, n of them and m of the lowest, the first
    is ``2 n`` times their products, the second m times these and n times those of the lowest.
    """
    sizes = np.diff(lists.indptr)
    owner = np.repeat(np.arange(len(lists)), sizes)
    place = np.arange(owner.size) - lists.indptr[owner]
    high, low = place < n_high[owner], place >= (sizes - n_low)[owner]
    used = high | low
    owner, high = owner[used], high[used]
    points = Z[lists.rows[used]].astype(np.float64)
    starts = np.searchsorted(owner, np.arange(len(lists)))
    upper = np.add.reduceat(np.where(high[:, None], points, 0.0), starts, axis=0)
    points -= (upper / n_high[:, None])[owner]
    n, m, weights = n_high[owner], n_low[owner], lists.weights[owner]
    inside, across = (
        points[high],
        points * np.sqrt(weights * np.where(high, m, n))[:, None],
    )
    inside *= np.sqrt(2 * weights[high] * n[high])[:, None]
    return np.stack([inside.T @ inside, across.T @ across])


def local_factor(own: Scatter, pool: Scatter, recipe: Recipe) -> np.ndarray:
    """The factor of the geometric mean of one list, largest directions first."""
    S, D = (
        _mixed(mine, all_lists, recipe.pooling, recipe.reg)
        for mine, all_lists in zip(own, pool, strict=True)
    )
    L = mean_factor(S, D, recipe.t)
    return leading_directions(L, recipe.n_components) if recipe.n_components else L


def _mixed(own: np.ndarray, pool: np.ndarray, pooling: float, reg: float) -> np.ndarray:
    if not np.trace(own) > 0:
        own = pool if np.trace(pool) > 0 else np.eye(len(pool))
    mixed = (1 - pooling) * own + pooling * pool
    return mixed + reg * np.trace(mixed) / len(mixed) * np.eye(len(mixed))


def leading_directions(L: np.ndarray, n: int) -> np.ndarray:
    """The factor of the best approximation of ``L'L`` of rank n."""
    d = L.shape[1]
    if n >= d:
        return L
    # All of them: asked for some, LAPACK may leave out those of a value that comes several times.
    values, vectors = scipy.linalg.eigh(L.T @ L, driver="evd")
    values, vectors = values[d - n :], vectors[:, d - n :]
    # eigh leaves the sign of a vector to chance.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n)])
    return np.ascontiguousarray(
        (vectors * (signs * np.sqrt(np.maximum(values, 0)))).T[::-1]
    )


def best_anchor(mapped: np.ndarray, grades: np.ndarray, k: int) -> int:
    """The document of the top grade from which the others rank best by NDCG@k, itself left out."""
    n_top = min(int(np.sum(grades == grades[0])), MOST_CANDIDATES)
    distances = cdist(mapped[:n_top], mapped)
    distances[np.arange(n_top), np.arange(n_top)] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, : min(k, len(mapped) - 1)]
    discounts = 1 / np.log2(np.arange(2, order.shape[1] + 2))
    # All candidates have the same grade, so the ideal of the others is the same.
    return int(np.argmax(gains_of(grades[order]) @ discounts))


def unit_of(differences: np.ndarray, largest: bool) -> float:
    """The largest distance, or the root mean squared one; 1 if all are zero."""
    squares = np.sum(differences**2, axis=1)
    unit = np.sqrt(squares.max() if largest else squares.mean())
    return float(unit) if unit > 0 else 1.0
