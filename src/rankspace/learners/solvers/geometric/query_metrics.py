"""Local metrics of queries that have vectors, which are their own anchors."""

from __future__ import annotations

import numpy as np

from ...._engine.parallel import Step, current_backend
from ....relevance.relevance import Relevance
from .lists import Lists
from .local_metrics import (
    Local,
    Recipe,
    local_factor,
    set_scatter,
    shared_directions,
    unit_of,
)
from .scatter import Scatter, all_pairs, centred

MOST_JUDGED = 64  # items of each kind that weights of a query are learned from
MOST_QUERIES = 300
PAIR_BLOCK = 1024


def query_metrics(
    Z: np.ndarray,
    relevance: Relevance,
    points: np.ndarray,
    n_metrics: int,
    recipe: Recipe,
    rng: np.random.Generator,
) -> Local:
    """The metric of all pairs if one is asked for, else those of queries drawn at random.

    Queries that share their judgments, as those of a class do, share a metric, so no more are made
    than there are different rows of judgments.
    """
    separate = None if relevance.queries_are_rows else points
    pool = all_pairs(centred(Z, relevance, separate), relevance)
    if n_metrics == 1:
        factor = local_factor(pool, pool, recipe._replace(pooling=1.0))
        # No two points are farther apart than twice the farthest from the mean.
        unit = 2 * unit_of((Z - Z.mean(axis=0)) @ factor.T, recipe.largest)
        return Local(factor[None] / unit, np.array([-1]))
    order = rng.permutation(relevance.n_queries)
    _, first = np.unique(relevance.rows[order], return_index=True)
    chosen = order[np.sort(first)[:n_metrics]]
    shared = shared_directions(pool, recipe)
    if shared is not None:
        pool = Scatter(*(shared @ part @ shared.T for part in pool))
        Z, points = Z @ shared.T, points @ shared.T

    step = _QueryStep(Z, relevance, points)
    factors = np.stack(
        list(current_backend().map(step, chosen.tolist(), (pool, recipe)))
    )
    if shared is not None:
        factors = factors @ shared
    return Local(factors, np.full(len(chosen), -1))


class _QueryStep(Step):
    """The metric of a query, from its relevant and irrelevant items."""

    def __init__(self, Z: np.ndarray, relevance: Relevance, points: np.ndarray) -> None:
        self.Z, self.relevance, self.points = Z, relevance, points

    def map_block(self, query: int, state: tuple[Scatter, Recipe]) -> np.ndarray:
        """Its factor."""
        pool, recipe = state
        high, low = self.relevance.relevant(query), self.relevance.irrelevant(query)
        near = np.concatenate([self.points[query][None], self.Z[high]]).astype(
            np.float64
        )
        far = self.Z[low].astype(np.float64)
        factor = local_factor(set_scatter(near, far), pool, recipe)
        judged = np.concatenate([near[1:], far])
        return factor / unit_of((judged - near[0]) @ factor.T, recipe.largest)


def judged_rows(
    relevance: Relevance, rng: np.random.Generator
) -> tuple[Lists, np.ndarray]:
    """Relevant and irrelevant items of queries as lists, and the query of each entry."""
    queries = np.sort(rng.permutation(relevance.n_queries)[:MOST_QUERIES])
    rows, grades, sizes = [], [], []
    for query in queries.tolist():
        high = _some(relevance.relevant(query), rng)
        low = _some(relevance.irrelevant(query), rng)
        rows += [high, low]
        grades += [np.ones(high.size), np.zeros(low.size)]
        sizes.append(high.size + low.size)
    lists = Lists(
        np.concatenate(([0], np.cumsum(sizes))),
        np.concatenate(rows),
        np.concatenate(grades),
        relevance.weights[queries],
    )
    return lists, np.repeat(queries, sizes)


def _some(items: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if items.size <= MOST_JUDGED:
        return items
    return np.sort(rng.choice(items, MOST_JUDGED, replace=False))


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
    asked, query_of = np.unique(owner, return_inverse=True)
    X, Q = Z[items], points[asked]
    squares = np.empty((rows.size, len(factors)), dtype=Z.dtype)
    for r, factor in enumerate(factors):
        near, far = (part @ factor.T.astype(Z.dtype) for part in (Q, X))
        for start in range(0, rows.size, PAIR_BLOCK):
            part = slice(start, start + PAIR_BLOCK)
            gaps = far[item_of[part]] - near[query_of[part]]
            squares[part, r] = np.einsum("ij,ij->i", gaps, gaps)
    return squares
