"""Ranking losses for PyTorch, so that a network can be trained on them (extra ``torch``).

Each loss takes the embeddings of a batch and who is relevant to whom, as class labels or a
`Relevance`, and returns the weighted mean over the queries that have relevant and irrelevant items.
Items are ranked by squared Euclidean distance. Every row is a query that ranks the others, unless
vectors of separate queries are given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._engine.checks import check_count
from .._engine.optional import require
from ..metrics.embedding import EmbeddingMetric
from ..relevance.inputs import check_items, check_query_vectors
from ..relevance.relevance import Relevance
from .mlr import check_oracle
from .solvers.cutting_plane.ranking_loss import discounts_of
from .solvers.cutting_plane.vote_loss import is_vote
from .solvers.warp.sampling import check_weights, rank_weights

try:
    import torch
except ImportError:
    require("torch", extra="torch")  # which says how to install it


class Batch(NamedTuple):
    """Squared distances of queries from items, and for each query what the items are.

    ``kinds`` is 1 for relevant items, 0 for irrelevant ones and -1 for those left out; ``gains``
    are those of relevant items; ``shares`` are weights of queries that add up to 1.
    """

    squares: Any
    kinds: np.ndarray
    gains: np.ndarray
    shares: np.ndarray


def batch_of(embeddings: Any, relevance: Any, queries: Any = None) -> Batch:
    """The queries of a batch that have relevant and irrelevant items."""
    if embeddings.ndim != 2:
        raise ValueError(
            f"embeddings must have shape (n_items, n_dims): got {tuple(embeddings.shape)}."
        )
    if not isinstance(relevance, Relevance):
        labels = relevance
        if torch.is_tensor(labels):
            labels = labels.detach().cpu().numpy()
        relevance = Relevance.from_labels(labels)
    relevance = relevance.for_items(len(embeddings), queries is not None)
    check_items(relevance, embeddings)
    numbers = np.flatnonzero(relevance.trainable & (relevance.weights > 0))
    if not numbers.size:
        raise ValueError(
            "a batch needs a query with relevant and irrelevant items: got "
            f"{relevance.n_queries} queries without both. Draw two rows of two classes."
        )
    if queries is not None:
        check_query_vectors(relevance, queries, embeddings.shape[1])
        points = queries[torch.as_tensor(numbers)]
    elif relevance.queries_are_rows:
        points = embeddings[torch.as_tensor(relevance.query_items[numbers])]
    else:
        raise ValueError("relevance has queries that are no rows: pass queries=.")
    kinds = np.full((numbers.size, relevance.n_items), -1, dtype=np.int8)
    gains = np.zeros(kinds.shape)
    for row, query in enumerate(numbers):
        kinds[row, relevance.irrelevant(query)] = 0
        items, grades = relevance.judged(query)
        relevant = grades >= relevance.min_relevant_grade
        kinds[row, items[relevant]] = 1
        gains[row, items[relevant]] = np.exp2(grades[relevant]) - 1
    weights = relevance.weights[numbers]
    return Batch(squared(points, embeddings), kinds, gains, weights / weights.sum())


def squared(Q: Any, X: Any) -> Any:
    """Squared distances by differences: their gradients are exact, also at distance 0."""
    return ((Q[:, None] - X[None]) ** 2).sum(dim=2)


def _constant(values: np.ndarray, like: Any) -> Any:
    return torch.as_tensor(values, dtype=like.dtype, device=like.device)


class MLRLoss(torch.nn.Module):
    """The structural SVM loss of MLR: the largest margin violation by any ranking.

    It bounds the loss of the measure from above. The most violated ranking of each query is found
    exactly; the gradient is that of its violation, a subgradient where several are tied.

    Parameters
    ----------
    measure : str, default="map"
        Measure to optimise, as for `MLR`, but ``knn-vote@k``.
    """

    def __init__(self, measure: str = "map") -> None:
        from ..evaluation.measures import parse_measure

        super().__init__()
        check_oracle(measure)
        if is_vote(measure):
            raise ValueError(f"measure={measure!r} is for MLR only: use knn@k.")
        self.measure = measure
        spec, self._cut = parse_measure(measure)
        self._kernel = spec.kernel

    def forward(self, embeddings: Any, relevance: Any, queries: Any = None) -> Any:
        """The loss of a batch of embeddings."""
        batch = batch_of(embeddings, relevance, queries)
        weights, losses = self._violations(
            batch.squares.detach().cpu().numpy().astype(np.float64), batch
        )
        margin = (_constant(weights, batch.squares) * batch.squares).sum()
        return float(losses.sum()) + margin

    def _violations(
        self, squares: np.ndarray, batch: Batch
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of items in the most violated rankings, and their losses, both times shares."""
        from .._engine.kernels.violations import VIOLATIONS, Oracle, new_memory

        n_items = squares.shape[1]
        discounts = discounts_of(self._kernel, n_items + 1)
        settings = Oracle(self._cut, discounts)
        find = VIOLATIONS[self._kernel].of_lists
        memory = new_memory(n_items)
        one, ends = np.zeros(1, dtype=np.int64), np.array([0, n_items])
        weights = np.zeros_like(squares)
        losses = np.empty(len(squares))
        in_order = np.empty(n_items)
        for row, share in enumerate(batch.shares):
            order = np.argsort(squares[row], kind="stable")
            distances, kinds = squares[row, order], batch.kinds[row, order]
            shares = np.array([share], dtype=float)
            losses[row] = find(
                one, ends, distances, kinds, settings, shares, memory, in_order
            )
            weights[row, order] = in_order
        return weights, losses


class ListwiseLoss(torch.nn.Module):
    """Listwise softmax loss, as in `ListwiseMap`: softmax neighbours against relevant items.

    The Kullback-Leibler divergence of the softmax of minus squared distances over the temperature
    from the relevant items, in proportion to their gain ``2^grade - 1``. It is smooth.

    Parameters
    ----------
    temperature : float, default=1.0
        Squared distance over which the softmax falls by a factor of e.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__()
        if not 0 < temperature < np.inf:
            raise ValueError(f"temperature must be above 0: got {temperature!r}.")
        self.temperature = float(temperature)

    def forward(self, embeddings: Any, relevance: Any, queries: Any = None) -> Any:
        """The loss of a batch of embeddings."""
        batch = batch_of(embeddings, relevance, queries)
        left_out = torch.as_tensor(batch.kinds < 0, device=batch.squares.device)
        logits = (-batch.squares / self.temperature).masked_fill(left_out, -np.inf)
        logs = torch.log_softmax(logits, dim=1).masked_fill(left_out, 0.0)
        targets = batch.gains / batch.gains.sum(axis=1, keepdims=True)
        entropy = np.where(
            targets > 0, targets * np.log(np.maximum(targets, 1e-300)), 0
        )
        losses = _constant(entropy, logs) - _constant(targets, logs) * logs
        return (_constant(batch.shares, logs) * losses.sum(dim=1)).sum()


class WARPLoss(torch.nn.Module):
    """The WARP loss of FRML, sampled: a violator for each query, weighted by its estimated rank.

    For each query, a relevant item is drawn by gain, then irrelevant ones until one violates the
    margin of 1, at most as many as there are. The rank weight ``L(n // draws) / L(n)`` counts as a
    constant in the gradient. The loss is an estimate from random draws, not an exact one.

    Parameters
    ----------
    weights : str, default="reciprocal"
        Rank weights; see `FRML`.
    n_triplets : int, default=1
        Number of triplets for each query.
    seed : int, default=0
        Seed of the draws; each call continues them.
    """

    def __init__(
        self, weights: str = "reciprocal", *, n_triplets: int = 1, seed: int = 0
    ) -> None:
        super().__init__()
        check_weights(weights)
        check_count(n_triplets, "n_triplets")
        self.weights = weights
        self.n_triplets = n_triplets
        self._random = np.random.default_rng(seed)

    def forward(self, embeddings: Any, relevance: Any, queries: Any = None) -> Any:
        """The loss of a batch of embeddings."""
        batch = batch_of(embeddings, relevance, queries)
        squares = batch.squares.detach().cpu().numpy()
        near, far, weights = [], [], []
        for row, share in enumerate(batch.shares):
            for _ in range(self.n_triplets):
                found = self._draw(squares[row], batch.kinds[row], batch.gains[row])
                if found is not None:
                    near.append((row, found[0]))
                    far.append((row, found[1]))
                    weights.append(found[2] * share / self.n_triplets)
        if not weights:
            return batch.squares.sum() * 0.0
        hinges = 1 + _picked(batch.squares, near) - _picked(batch.squares, far)
        return (_constant(np.array(weights), hinges) * hinges).sum()

    def _draw(
        self, squares: np.ndarray, kinds: np.ndarray, gains: np.ndarray
    ) -> tuple[int, int, float] | None:
        """A relevant item, a violator, and its rank weight; None if no draw is a violator."""
        positive = int(self._random.choice(gains.size, p=gains / gains.sum()))
        negatives = np.flatnonzero(kinds == 0)
        n = negatives.size
        most = 1 if self.weights == "uniform" else n
        drawn = negatives[self._random.integers(0, n, size=most)]
        violators = np.flatnonzero(squares[drawn] < 1 + squares[positive])
        if not violators.size:
            return None
        total = rank_weights(self.weights, n)
        rank = n // (int(violators[0]) + 1)
        return positive, int(drawn[violators[0]]), float(total[rank] / total[n])


def _picked(table: Any, places: list[tuple[int, int]]) -> Any:
    rows, columns = torch.as_tensor(np.array(places).T, device=table.device)
    return table[rows, columns]


class MappedVectors(torch.nn.Module):
    """The map of a linear, bilinear or asymmetric metric, to train on or to put behind a network.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric.
    side : {"items", "queries"}, default="items"
        Which map.
    """

    def __init__(self, metric: Any, side: str = "items") -> None:
        super().__init__()
        if not isinstance(metric, EmbeddingMetric) or side not in ("items", "queries"):
            raise ValueError(
                "a metric with linear maps, and side='items' or 'queries', are needed: got "
                f"{type(metric).__name__} and {side!r}."
            )
        matrix = metric.item_map if side == "items" else metric.query_map
        self.unit_length = metric.similarity == "cosine"
        self.weight = torch.nn.Parameter(torch.tensor(matrix))
        offset = np.zeros(len(matrix), matrix.dtype)
        if side == "queries":
            offset = metric.query_offset
        self.offset = torch.nn.Parameter(torch.tensor(offset))

    def forward(self, vectors: Any) -> Any:
        """Mapped vectors."""
        if self.unit_length:
            vectors = torch.nn.functional.normalize(vectors, dim=1)
        return vectors @ self.weight.T + self.offset
