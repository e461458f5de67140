"""Local metrics of queries that have vectors, and are their own anchors."""

from __future__ import annotations

import numpy as np

from ...._engine.parallel import Step, current_backend
from ....relevance.relevance import Relevance
from ..points import lazy_points
from ..scaling import Scaling, approximate_mean
from .lists import Lists
from .local_metrics import (
    LocalMetrics,
    LocalOptions,
    local_factor,
    set_scatter,
    shared_directions,
    unit_of,
)
from .scatter import Scatter, all_pairs

MAX_JUDGED = 64  # items of each kind from which weights of a query are learned
MAX_QUERIES = 300
PAIR_BLOCK = 1024


def query_metrics(
    Z: np.ndarray,
    relevance: Relevance,
    points: np.ndarray,
    n_metrics: int,
    options: LocalOptions,
    rng: np.random.Generator,
) -> LocalMetrics:
    """One metric of all pairs, or several local metrics of random queries.

    Queries that share their judgments, as those of a class do, share a metric, so there are no
    more metrics than different rows of judgments.
    """
    queries = None if relevance.queries_are_rows else points
    centring = Scaling(approximate_mean(Z), 1.0, dtype=np.float64)
    pool = all_pairs(lazy_points(Z, relevance, queries, centring), relevance)
    if n_metrics == 1:
        return _single_metric(Z, pool, options)
    order = rng.permutation(relevance.n_queries)
    _, first = np.unique(relevance.rows[order], return_index=True)
    chosen = order[np.sort(first)[:n_metrics]]
    shared = shared_directions(pool, options)
    if shared is not None:
        pool = pool.along(shared)
        Z = Z @ shared.T
        points = points @ shared.T

    step = _QueryStep(Z, relevance, points)
    state = (pool, options)
    factors = np.stack(list(current_backend().map(step, chosen.tolist(), state)))
    if shared is not None:
        factors = factors @ shared
    return LocalMetrics(factors, np.full(len(chosen), -1))


def _single_metric(Z: np.ndarray, pool: Scatter, options: LocalOptions) -> LocalMetrics:
    factor = local_factor(pool, pool, options._replace(pooling=1.0))
    # No two points are farther apart than twice the farthest from the mean.
    unit = 2 * unit_of((Z - Z.mean(axis=0)) @ factor.T, options.largest)
    return LocalMetrics(factor[None] / unit, np.array([-1]))


class _QueryStep(Step):
    """The local metric of a query, from its relevant and irrelevant items."""

    def __init__(self, Z: np.ndarray, relevance: Relevance, points: np.ndarray) -> None:
        self.Z = Z
        self.relevance = relevance
        self.points = points

    def map_block(self, query: int, state: tuple[Scatter, LocalOptions]) -> np.ndarray:
        """The factor of its metric."""
        pool, options = state
        point = self.points[query].astype(np.float64)
        relevant = self.Z[self.relevance.relevant(query)].astype(np.float64)
        irrelevant = self.Z[self.relevance.irrelevant(query)].astype(np.float64)
        scatter = set_scatter(np.concatenate([point[None], relevant]), irrelevant)
        factor = local_factor(scatter, pool, options)
        judged = np.concatenate([relevant, irrelevant])
        return factor / unit_of((judged - point) @ factor.T, options.largest)


def judged_rows(
    relevance: Relevance, rng: np.random.Generator
) -> tuple[Lists, np.ndarray]:
    """Relevant and irrelevant items of queries as lists, and the query of each entry."""
    queries = np.sort(rng.permutation(relevance.n_queries)[:MAX_QUERIES])
    rows = []
    grades = []
    sizes = []
    for query in queries.tolist():
        relevant = _sample(relevance.relevant(query), rng)
        irrelevant = _sample(relevance.irrelevant(query), rng)
        rows += [relevant, irrelevant]
        grades += [np.ones(relevant.size), np.zeros(irrelevant.size)]
        sizes.append(relevant.size + irrelevant.size)
    lists = Lists(
        np.concatenate(([0], np.cumsum(sizes))),
        np.concatenate(rows),
        np.concatenate(grades),
        relevance.weights[queries],
    )
    return lists, np.repeat(queries, sizes)


def _sample(items: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if items.size <= MAX_JUDGED:
        return items
    return np.sort(rng.choice(items, MAX_JUDGED, replace=False))


def pair_squares(
    Z: np.ndarray,
    rows: np.ndarray,
    points: np.ndarray,
    owner: np.ndarray,
    factors: np.ndarray,
) -> np.ndarray:
    """Squared distances (n, m) of items ``Z[rows]`` from ``points[owner]`` under each metric.

    Every point is mapped once, for most are in many pairs.
    """
    items, item_of = np.unique(rows, return_inverse=True)
    queries, query_of = np.unique(owner, return_inverse=True)
    X = Z[items]
    Q = points[queries]
    squares = np.empty((rows.size, len(factors)), dtype=Z.dtype)
    for r, factor in enumerate(factors):
        map_ = factor.T.astype(Z.dtype)
        mapped_items = X @ map_
        mapped_queries = Q @ map_
        for start in range(0, rows.size, PAIR_BLOCK):
            block = slice(start, start + PAIR_BLOCK)
            gaps = mapped_items[item_of[block]] - mapped_queries[query_of[block]]
            squares[block, r] = np.einsum("ij,ij->i", gaps, gaps)
    return squares
