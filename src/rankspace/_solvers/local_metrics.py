"""A metric for each of some lists, and the document of the list that it ranks best from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

from .._threads import in_threads, single_products
from .geometric_mean import mean_factor
from .lists import Lists, upper_levels
from .scatter import Scatter

MOST_CANDIDATES = 64  # documents tried as an anchor


class Recipe(NamedTuple):
    """How a local metric is made.

    ``pooling`` is the share of the scatter of all lists in that of one, ``n_components`` how many
    directions of a metric are kept (0: all), ``k`` where the lists are cut that choose an anchor,
    ``largest`` whether the largest distance in a list becomes 1, and not the root mean square.
    """

    t: float
    reg: float
    pooling: float
    n_components: int
    k: int
    largest: bool


class Local(NamedTuple):
    """Factors (m, r, d) of metrics, and the rows that are their anchors (m,), or -1."""

    factors: np.ndarray
    anchors: np.ndarray


def list_metrics(Z: Any, lists: Lists, chosen: np.ndarray, recipe: Recipe) -> Local:
    """Metrics and anchors of the chosen lists; each depends on its list and the pool alone."""
    pool = pooled_scatter(Z, lists)

    def work(q: int) -> tuple[np.ndarray, int]:
        part = lists.part(q)
        rows, grades = lists.rows[part], lists.grades[part]
        points = Z[rows].astype(np.float64)
        factor = local_factor(list_scatter(points, grades), pool, recipe)
        mapped = points @ factor.T
        best = best_anchor(mapped, grades, recipe.k)
        return factor / unit_of(mapped - mapped[best], recipe.largest), int(rows[best])

    with single_products():
        found = list(in_threads(work, chosen.tolist()))
    return Local(np.stack([f for f, _ in found]), np.array([a for _, a in found]))


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
    sums, counts = np.zeros((2, d, d)), np.zeros(2)
    for q in range(len(lists)):
        part = lists.part(q)
        grades = lists.grades[part]
        n, m = upper_levels(grades), int(np.sum(grades == grades[-1]))
        found = list_scatter(Z[lists.rows[part]].astype(np.float64), grades)
        pairs = lists.weights[q] * np.array([n * (n - 1), n * m])
        sums += np.stack(found) * pairs[:, None, None]
        counts += pairs
    similar = sums[0] / counts[0] if counts[0] else np.eye(d)
    return Scatter(similar, sums[1] / counts[1])


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
    values, vectors = scipy.linalg.eigh(L.T @ L, subset_by_index=[d - n, d - 1])
    # eigh leaves the sign of a vector to chance.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n)])
    return np.ascontiguousarray((vectors * (signs * np.sqrt(np.maximum(values, 0)))).T[::-1])


def best_anchor(mapped: np.ndarray, grades: np.ndarray, k: int) -> int:
    """The document of the top grade from which the others rank best by NDCG@k, itself left out."""
    n_top = min(int(np.sum(grades == grades[0])), MOST_CANDIDATES)
    distances = cdist(mapped[:n_top], mapped)
    distances[np.arange(n_top), np.arange(n_top)] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")[:, : min(k, len(mapped) - 1)]
    discounts = 1 / np.log2(np.arange(2, order.shape[1] + 2))
    # All candidates have the same grade, so the ideal of the others is the same.
    return int(np.argmax((np.exp2(grades[order]) - 1) @ discounts))


def unit_of(differences: np.ndarray, largest: bool) -> float:
    """The largest distance, or the root mean squared one; 1 if all are zero."""
    squares = np.sum(differences**2, axis=1)
    unit = np.sqrt(squares.max() if largest else squares.mean())
    return float(unit) if unit > 0 else 1.0
