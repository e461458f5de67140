"""Field weights: how much each of several vectors counts, by conditional logistic regression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._engine.fields import field_slices
from .._engine.vectors import check_is_matrix
from ..metrics.embedding import BilinearMetric, EmbeddingMetric
from ..relevance.relevance import Relevance
from ..relevance.rows import indptr_of
from ..search.index import Index
from .families import Family

MAX_QUERIES = 1000  # that a handful of weights is learned from
NEAREST = 50  # items by each field alone, and by all, that are candidates
RIDGE = 1e-3  # times the squared weights: they stay finite where relevant items always come first
FLOOR = 0.01  # share of the largest weight that each field keeps, so that a map can raise it


class FieldProblem(NamedTuple):
    """Cosines of candidates by field, the query of each, and its share of the relevant ones."""

    cosines: np.ndarray  # (n_fields, n_candidates)
    indptr: np.ndarray  # candidates of each query
    shares: np.ndarray  # sum to 1 for each query

    def loss(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """Mean cross-entropy of a softmax of weighted sums, and its gradient. Convex."""
        scores = weights @ self.cosines
        starts, lengths = self.indptr[:-1], np.diff(self.indptr)
        scores -= np.repeat(np.maximum.reduceat(scores, starts), lengths)
        powers = np.exp(scores)
        totals = np.add.reduceat(powers, starts)
        shares = powers / np.repeat(totals, lengths)
        n = starts.size
        loss = float(np.log(totals).sum() - self.shares @ scores) / n
        gradient = self.cosines @ (shares - self.shares) / n
        penalty = 0.5 * RIDGE * float(weights @ weights)
        return loss + penalty, gradient + RIDGE * weights


def field_weights(
    X: Any, relevance: Relevance, queries: Any, widths: tuple[int, ...]
) -> np.ndarray:
    """Weights of the fields, at least 0, that sum to 1.

    They make the relevant items likely among the nearest ones: the maximum of a concave likelihood,
    by bounded L-BFGS.
    """
    from scipy.optimize import minimize

    problem = _problem(X, relevance, queries, widths)
    found = minimize(
        problem.loss,
        np.full(len(widths), 1.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(widths),
    )
    weights = np.maximum(found.x, FLOOR * found.x.max())
    if not weights.any():
        weights = np.ones(len(widths))
    shares: np.ndarray = weights / weights.sum()
    return shares


def _problem(
    X: Any, relevance: Relevance, queries: Any, widths: tuple[int, ...]
) -> FieldProblem:
    """Relevant items and those nearest by each field and by all, for a sample of the queries."""
    chosen = np.flatnonzero(relevance.n_relevant > 0)
    chosen = chosen[
        np.linspace(0, chosen.size - 1, min(chosen.size, MAX_QUERIES), dtype=int)
    ]
    judged = relevance.take_queries(chosen)
    queries = queries[chosen]
    slices = field_slices(widths)
    k = min(NEAREST, len(X))
    lists = [Index(X, similarity="dot").rank(queries, k)]
    for columns in slices:
        block = np.ascontiguousarray(X[:, columns])
        index = Index(block, similarity="dot")
        lists.append(index.rank(np.ascontiguousarray(queries[:, columns]), k))
    candidates, shares = [], []
    for query in range(judged.n_queries):
        relevant = judged.relevant(query)
        row = np.union1d(
            relevant, np.concatenate([ranking[query][0] for ranking in lists])
        )
        candidates.append(row)
        shares.append(np.isin(row, relevant) / relevant.size)
    indptr = indptr_of([row.size for row in candidates])
    owners = np.repeat(np.arange(judged.n_queries), np.diff(indptr))
    items = np.concatenate(candidates)
    cosines = np.empty((len(slices), items.size))
    for row, columns in zip(cosines, slices, strict=True):
        for start in range(0, items.size, 65536):
            part = slice(start, start + 65536)
            left, right = queries[owners[part], columns], X[items[part], columns]
            row[part] = np.einsum("ij,ij->i", left, right)
    return FieldProblem(cosines, indptr, np.concatenate(shares))


@dataclass(frozen=True)
class FieldFamily(Family):
    """Weights of the fields, and then the maps of another family over the weighted fields."""

    inner: Family
    widths: tuple[int, ...]

    @classmethod
    def of(cls, inner: Family, widths: tuple[int, ...]) -> FieldFamily:
        """The family with weights first."""
        strengths = ("weights of the fields only", *inner.strengths)
        return cls(inner.method, inner.label, "dot", strengths, inner, widths)

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[EmbeddingMetric]:
        """Learn the weights, and each map. All of the weights are on the side of the queries."""
        check_is_matrix(X, "X")
        shares = field_weights(X, relevance, queries, self.widths)
        scales = np.repeat(np.sqrt(shares), self.widths).astype(X.dtype)
        identity = np.eye(X.shape[1], dtype=X.dtype)
        about = {"method": "weights of fields", "weights": shares.tolist()}
        yield BilinearMetric(np.diag(scales**2), identity, parameters=about)
        for metric in self.inner.metrics(X * scales, relevance, queries * scales):
            yield _unscaled(metric, scales, identity, shares)


def _unscaled(
    metric: EmbeddingMetric,
    scales: np.ndarray,
    identity: np.ndarray,
    shares: np.ndarray,
) -> BilinearMetric:
    """The metric for vectors that are not scaled; one that leaves items unchanged still does."""
    query_map, item_map = metric.query_map * scales, metric.item_map * scales
    offset = metric.query_offset
    if np.array_equal(metric.item_map, identity):
        query_map, item_map = scales[:, None] * query_map, identity
        offset = scales * offset
    parameters = {**metric.parameters, "weights": shares.tolist()}
    return BilinearMetric(
        query_map, item_map, query_offset=offset, parameters=parameters
    )
