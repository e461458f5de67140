"""Listwise metric learning: a linear map near the identity with a softmax loss."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.metaestimators import available_if

from .._engine.checks import check_choice
from .._engine.parallel.threads import n_threads, single_threaded_blas, thread_map
from .._engine.similarity import unit_rows
from ..metrics.embedding import (
    AsymmetricMetric,
    BilinearMetric,
    EmbeddingMetric,
    LinearMetric,
)
from ..relevance.relevance import Relevance
from ..search.index import Index
from .base import BaseRanker
from .fit_data import WeightedFit
from .hard_negatives import default_n_negatives, mine_hard_negatives
from .linear import LinearRanker
from .solvers.points import Points, in_blocks, partly_white, scaled_points
from .solvers.scaling import Scaling
from .solvers.smooth.lbfgs import Minimum
from .solvers.smooth.pair_loss import GAINS, Grouped, Listwise, PairLoss, QueryLoss
from .standardising import chosen_scaling, scaling_card

SIDES = {"shared": PairLoss, "query": QueryLoss}
# What the metric of each of the sides can be compared by. Separate maps mix squared distances and
# products, which agree for vectors of equal length only.
SIMILARITIES = {
    "shared": ("euclidean", "cosine"),
    "query": ("dot", "cosine"),
    "separate": ("cosine",),
}
MAX_TEMPERATURE_QUERIES = 200  # that choose the temperature
# Default regs times the number of queries. On held-out training queries of SciFact and NFCorpus (48
# draws, 100 to 400 to learn from) one reg of 24 to 0.8 gained less, overall or for new documents.
TOTAL_REGS = (80.0, 2.4)


class ListwiseMap(WeightedFit, LinearRanker):
    """Listwise metric learning: a linear map near the identity that improves embeddings.

    Minimises the divergence of softmax neighbours, ``p(x | q)`` in proportion to
    ``exp(-|L q - L x|^2 / temperature)``, from the relevant items in proportion to their gain,
    plus ``reg |L - I|^2``, after partial whitening. The loss is smooth: no pairs are sampled, and
    L-BFGS needs no learning rate. Few judgments suffice to improve good embeddings.

    Parameters
    ----------
    reg : float or sequence of float, optional
        Regularisation of L towards the identity: more is safer, less learns more. With several, a
        map is learned for each, and the mean of their squared distances (or products) is used,
        which often errs less than a single reg in between. By default 80 and 2.4 over the number of
        queries.
    sides : {"shared", "query", "separate"}, default="shared"
        "shared" maps queries and items by the same map and compares them by Euclidean distance.
        "query" maps only queries: items stay unchanged and are ranked by their inner product with
        the mapped query. "separate" learns both and takes the mean of the squared distance and of
        minus twice the product, which is a map for each side and often errs less than either; it is
        for vectors of equal length.
    similarity : {"cosine", "dot", "euclidean"}, optional
        What unmapped vectors are compared by. With "cosine", queries and items are brought to unit
        length before learning, and by the learned metric before its map. By default vectors are
        taken unchanged: "euclidean" for a shared map, "dot" for a map of the queries. A shared
        map has no "dot", a map of the queries no "euclidean", and separate maps neither.
    scaling : {"auto", "standard"} or None, default="auto"
        Whether features are standardised before learning, see `MLR`. "auto" does so only for a
        shared map without ``similarity``: products and cosines of unmapped vectors depend on scale.
    whiten : float, default=0.2
        Degree of whitening before learning: none (0), full (1), or beyond, up to 2. It needs no
        judgments, so it holds for new items too.
    temperature : float or sequence of float, optional
        Temperature of the softmax, in units of the mean squared distance of two items; a lower one
        focuses on the nearest items. With several, the mean of the losses is minimised. By default
        two: the one of lowest loss before learning, and half of it.
    gain : {"exponential", "linear", "binary"}, default="exponential"
        Gain of a relevant item: ``2^grade - 1``, its grade, or 1.
    unjudged_weight : float, default=1.0
        Weight in the softmax of an item that is relevant to no query, above 0 and at most 1. Below
        1, the map gains less by moving all queries towards items that are relevant to some, which
        harms queries whose relevant items are unjudged.
    tol : float, default=2e-2
        Stop when two steps in a row lower the loss by at most this fraction each.
    max_iter : int, default=100
        Maximum number of L-BFGS steps.
    n_negatives : int, optional
        Maximum number of unjudged items used as hard negatives: those nearest to the queries, one
        rank of all queries after the other. Others are hardly ever neighbours. By default 1.5 for
        each query, from 1,000 to 1,500.
    max_items : int, default=20000
        With more items, the loss is taken over groups of queries, each with at most this many
        judged items and hard negatives. If the items are the queries too, this many of them are
        drawn at random.
    max_memory : int, default=512
        Working memory in MiB.
    random_state : int, RandomState or None, default=None
        Seed of the random items.

    Attributes
    ----------
    metric_ : LinearMetric, BilinearMetric or AsymmetricMetric
        The learned map of both sides, of the queries only, or of each side.
    components_ : ndarray of shape (n_features, n_features)
        L, if it maps both sides.
    regs_ : list of float
        The regs used, strongest first.
    loss_ : float
        The final loss, summed over all maps that were learned.
    n_iter_ : int
        Number of steps of all maps.
    scaling_ : {"standard", "none"}
        Whether features were standardised.
    temperatures_ : list of float
        The temperatures used; with "separate" those of the shared map.
    history_ : list of float
        The loss after each step, one map after another.

    Notes
    -----
    A step costs two products of n_queries x n_items x n_features.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import Euclidean, ListwiseMap
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> before = Euclidean().fit(X, y).score(X, y)
    >>> bool(ListwiseMap().fit(X, y).score(X, y) > before + 0.1)
    True
    """

    def __init__(
        self,
        reg: float | Sequence[float] | None = None,
        *,
        sides: str = "shared",
        similarity: str | None = None,
        scaling: str | None = "auto",
        whiten: float = 0.2,
        temperature: float | Sequence[float] | None = None,
        gain: str = "exponential",
        unjudged_weight: float = 1.0,
        tol: float = 2e-2,
        max_iter: int = 100,
        n_negatives: int | None = None,
        max_items: int = 20_000,
        max_memory: int = 512,
        random_state: Any = None,
    ) -> None:
        self.reg = reg
        self.sides = sides
        self.similarity = similarity
        self.scaling = scaling
        self.whiten = whiten
        self.temperature = temperature
        self.gain = gain
        self.unjudged_weight = unjudged_weight
        self.tol = tol
        self.max_iter = max_iter
        self.n_negatives = n_negatives
        self.max_items = max_items
        self.max_memory = max_memory
        self.random_state = random_state

    def _store_metric(self, metric: Any) -> None:
        if isinstance(metric, LinearMetric):
            super()._store_metric(metric)
        else:
            BaseRanker._store_metric(self, metric)

    def path(
        self,
        X: Any,
        y: Any,
        regs: Sequence[float],
        *,
        queries: Any = None,
    ) -> Iterator[EmbeddingMetric]:
        """Learn a metric for each ``reg``, warm-started: each search starts at the last map.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,) or Relevance
            Class labels, or the relevance of items to queries.
        regs : sequence of float
            Values of ``reg``, best in descending order.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are not rows of ``X``.

        Yields
        ------
        LinearMetric, BilinearMetric or AsymmetricMetric
            The metric of each ``reg``.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.preprocessing import scale
        >>> from rankspace import ListwiseMap
        >>> X, y = load_wine(return_X_y=True)
        >>> metrics = ListwiseMap().path(scale(X), y, regs=[1.0, 0.1])
        >>> [metric.components.shape for metric in metrics]
        [(13, 13), (13, 13)]
        """
        self._check_params()
        X, relevance, queries = self._training_data(X, y, queries)
        # As in fit, and not while the reader has its turn.
        with single_threaded_blas():
            problems, whitening = self._problems(X, relevance, queries)
        paths = [problem.path(regs, self.tol, self.max_iter) for problem in problems]
        for reg in regs:
            with single_threaded_blas():
                maps = []
                for problem, path in zip(problems, paths, strict=True):
                    maps.append(problem.unwhitened(reg, next(path), whitening))
                card = scaling_card(self)
                metric = _mean_metric(maps, X.dtype, self.similarity, card)
            yield metric

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> EmbeddingMetric:
        self._check_params()
        problems, whitening = self._problems(X, relevance, queries)
        self.regs_ = self._regs(sum(loss.Q.shape[0] for loss in problems[0].losses))
        self.temperatures_ = problems[0].temperatures
        maps = self._minimise(problems, whitening)
        return _mean_metric(maps, X.dtype, self.similarity, scaling_card(self))

    def _problems(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> tuple[list[_Problem], np.ndarray]:
        """The loss of each side for whitened vectors, and the whitening."""
        if queries is None:
            X, relevance = self._subsample_rows(X, relevance)
        if self.similarity == "cosine":
            X = unit_rows(X, "X")
            queries = None if queries is None else unit_rows(queries, "queries")
        scaling = self._scaling(X)
        points = scaled_points(X, relevance, queries, scaling)
        whitening = partly_white(points.items, self.whiten)
        points = points._replace(matrix=in_blocks(points.matrix, whitening))
        mean = np.asarray(scaling.mean) / scaling.divisor
        origin = (whitening @ mean).astype(X.dtype)
        if scaling.spreads is not None:
            whitening = whitening / scaling.spreads
        sides = tuple(SIDES) if self.sides == "separate" else (self.sides,)
        problems = []
        for side in sides:
            groups = self._query_groups(side, relevance, X, queries)
            problems.append(self._problem(side, points, origin, relevance, groups))
        return problems, whitening

    def _scaling(self, X: np.ndarray) -> Scaling:
        """The scaling; "auto" standardises only where no unmapped vectors are compared."""
        if self.scaling == "auto" and (self.sides != "shared" or self.similarity):
            self.scaling_ = "none"
            return Scaling.of(X)
        return chosen_scaling(self, X)

    def _regs(self, n_queries: int) -> list[float]:
        """The given regs, or the defaults for a number of queries, strongest first."""
        if self.reg is None:
            return [total / n_queries for total in TOTAL_REGS]
        return np.unique(self.reg)[::-1].tolist()

    def _problem(
        self,
        side: str,
        points: Points,
        origin: np.ndarray,
        relevance: Relevance,
        groups: list[_Group],
    ) -> _Problem:
        """The loss of a map of a side."""
        queries = points.queries
        if side == "query":
            # Inner products depend on the origin, so the centring of the queries is undone.
            queries = queries + origin
        losses = []
        for group in groups:
            losses.append(self._loss(side, points.items, queries, relevance, group))
        temperatures = self._temperatures(losses[0])
        log_weights = self._log_weights(relevance)
        row_losses = []
        for loss, group in zip(losses, groups, strict=True):
            weights = log_weights
            if weights is not None and group.items is not None:
                weights = weights[group.items]
            row_losses.append(
                Listwise(loss.relevance, temperatures, self.gain, weights)
            )
        return _Problem(side, losses, row_losses)

    def _minimise(self, problems: list[_Problem], whitening: np.ndarray) -> list[_Map]:
        """A map for each side and reg, for vectors that are not whitened."""
        tasks = list(itertools.product(reversed(self.regs_), problems))

        def work(task: tuple[float, _Problem]) -> Minimum:
            reg, problem = task
            return problem.minimise(reg, self.tol, self.max_iter)

        # Blocks of one loss end together, searches do not: if blocks keep all threads busy, take
        # one search after the other.
        n_blocks = min(problem.n_blocks for problem in problems)
        if n_blocks >= n_threads() >= len(tasks):
            minima = list(map(work, tasks))
        else:
            minima = list(thread_map(work, tasks, depth=len(tasks)))
        self._record(minima)
        maps = []
        for (reg, problem), minimum in zip(tasks, minima, strict=True):
            maps.append(problem.unwhitened(reg, minimum.parameters, whitening))
        return maps

    def _record(self, minima: list[Minimum]) -> None:
        if not all(minimum.converged for minimum in minima):
            warnings.warn(
                f"ListwiseMap stopped after {self.max_iter} steps while its loss still fell by "
                f"more than tol={self.tol} of itself. Raise max_iter, tol or reg.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.loss_ = sum(minimum.loss for minimum in minima)
        histories = [minimum.losses for minimum in minima]
        self.history_ = list(itertools.chain.from_iterable(histories))
        self.n_iter_ = len(self.history_)

    def _loss(
        self,
        side: str,
        X: np.ndarray,
        queries: np.ndarray,
        relevance: Relevance,
        group: _Group,
    ) -> PairLoss:
        """The loss of a group of queries over its items."""
        Q = queries[group.queries]
        relevance = relevance.take_queries(group.queries)
        if group.items is not None:
            X = X[group.items]
            relevance = relevance._take_items(group.items)
        return SIDES[side](X, Q, relevance, self.max_memory)

    def _log_weights(self, relevance: Relevance) -> np.ndarray | None:
        """Log of the weight of each item, None if all weigh the same."""
        if self.unjudged_weight == 1:
            return None
        weights = np.full(relevance.n_items, np.log(self.unjudged_weight))
        weights[relevance.items[relevance.grades >= relevance.min_relevant_grade]] = 0.0
        return weights

    def _temperatures(self, loss: PairLoss) -> list[float]:
        """The given temperatures, or the one of lowest loss before learning, and half of it."""
        if self.temperature is not None:
            return np.atleast_1d(self.temperature).tolist()
        n_in_memory = max(1, self.max_memory * 2**15 // len(loss.X))
        loss = loss.subsample(min(MAX_TEMPERATURE_QUERIES, n_in_memory))
        queries = np.arange(loss.relevance.n_queries)
        distances = loss.unmapped(queries)
        states = loss.states(queries)

        def value(log_temperature: float) -> float:
            temperatures = [float(np.exp(log_temperature))]
            row_loss = Listwise(loss.relevance, temperatures, self.gain)
            return float(loss.weights @ row_loss(distances, states, queries)[0])

        bounds = (np.log(1e-4), np.log(10.0))
        minimum = minimize_scalar(value, bounds=bounds, options={"xatol": 0.05})
        best = float(np.exp(minimum.x))
        return [best, best / 2.0]

    def _subsample_rows(
        self, X: np.ndarray, relevance: Relevance
    ) -> tuple[np.ndarray, Relevance]:
        """At most ``max_items`` random rows, of those that are queries first."""
        if len(X) <= self.max_items:
            return X, relevance
        order = check_random_state(self.random_state).permutation(len(X))
        is_query = np.zeros(len(X), dtype=bool)
        is_query[relevance.query_items] = True
        order = order[np.argsort(~is_query[order], kind="stable")]
        rows = np.sort(order[: self.max_items])
        relevance = relevance[rows]
        if not relevance.trainable.any():
            raise ValueError(
                f"max_items is too small: among {self.max_items} random rows of {len(X)}, no "
                "query has both relevant and irrelevant items. Raise max_items."
            )
        return X[rows], relevance.take_queries(relevance.trainable)

    def _query_groups(
        self, side: str, relevance: Relevance, X: np.ndarray, queries: np.ndarray | None
    ) -> list[_Group]:
        """Groups of queries in order, whose judged items fill at most about half of ``max_items``.

        The items of a group are its judged items and hard negatives of its queries.
        """
        numbers = np.arange(relevance.n_queries)
        if queries is None or (relevance.query_items >= 0).any():
            return [_Group(numbers, None)]
        group_of = np.zeros_like(numbers)
        if relevance.n_items > self.max_items:
            sizes = np.diff(relevance.indptr)[relevance.rows]
            group_of = (np.cumsum(sizes) - sizes) // max(1, self.max_items // 2)
        # What the maps of a side are compared by; for the cosine, X is at unit length already.
        index = Index(X, similarity="dot" if side == "query" else "euclidean")
        groups = []
        for group in np.unique(group_of):
            members = numbers[group_of == group]
            judged = np.unique(relevance.take_queries(members).items)
            items = self._group_items(index, queries[members], judged, numbers.size)
            groups.append(_Group(members, items))
        return groups

    def _group_items(
        self, index: Index, queries: np.ndarray, judged: np.ndarray, n_queries: int
    ) -> np.ndarray | None:
        """Judged items and hard negatives of a group of queries; None for all items."""
        n_negatives = self.n_negatives
        if n_negatives is None:
            n_negatives = default_n_negatives(n_queries)
        n_negatives = min(n_negatives, max(0, self.max_items - judged.size))
        if judged.size + n_negatives >= len(index):
            return None
        negatives = mine_hard_negatives(index, queries, judged, n_negatives)
        return np.sort(np.concatenate((judged, negatives)))

    def _check_params(self) -> None:
        check_choice(self.sides, "sides", SIMILARITIES)
        if self.similarity is not None:
            name = f"similarity with sides={self.sides!r}"
            check_choice(self.similarity, name, SIMILARITIES[self.sides])
        if self.reg is not None:
            self._check_several("reg", include_boundaries="left")
        check_scalar(self.unjudged_weight, "unjudged_weight", Real)
        if not 0 < self.unjudged_weight <= 1:
            raise ValueError(
                f"unjudged_weight must be above 0 and at most 1: got {self.unjudged_weight}."
            )
        check_scalar(self.tol, "tol", Real, min_val=0)
        check_scalar(self.whiten, "whiten", Real, min_val=0, max_val=2)
        check_choice(self.gain, "gain", GAINS)
        if self.n_negatives is not None:
            check_scalar(self.n_negatives, "n_negatives", Integral, min_val=0)
        for name in ("max_iter", "max_items", "max_memory"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        if self.temperature is not None:
            self._check_several("temperature", include_boundaries="neither")

    def _check_several(self, name: str, include_boundaries: str) -> None:
        values = np.atleast_1d(getattr(self, name)).tolist()
        if not values:
            raise ValueError(f"{name} must be a number or several: got none.")
        for value in values:
            check_scalar(
                value, name, Real, min_val=0, include_boundaries=include_boundaries
            )
            if not np.isfinite(value):
                raise ValueError(f"{name} must be finite: got {value}.")


def _maps_both_sides(estimator: ListwiseMap) -> bool:
    return estimator.sides == "shared"


# Only a map of both sides has a space to transform to. Set after the class: inside it,
# scikit-learn's wrapper for set_output would hide the condition.
for _name in (
    "transform",
    "fit_transform",
    "get_mahalanobis_matrix",
    "get_metric",
    "pair_distance",
    "pair_score",
):
    _method = available_if(_maps_both_sides)(getattr(LinearRanker, _name))
    setattr(ListwiseMap, _name, _method)


class _Group(NamedTuple):
    """Numbers of some queries, and of the items of their loss; None for all items."""

    queries: np.ndarray
    items: np.ndarray | None


class _Map(NamedTuple):
    """A learned map, its side and its reg."""

    side: str
    reg: float
    L: np.ndarray


class _Problem:
    """The listwise loss of a map of one side, over all groups of queries."""

    def __init__(
        self, side: str, losses: list[PairLoss], row_losses: list[Listwise]
    ) -> None:
        self.side = side
        self.losses = losses
        self.row_losses = row_losses
        self.temperatures = row_losses[0].temperatures
        self.n_blocks = min(len(loss.blocks) for loss in losses)

    def minimise(self, reg: float, tol: float, max_iter: int) -> Minimum:
        """Minimise the loss plus ``reg |L - I|^2``."""
        return Grouped(self.losses).minimise(
            self.row_losses,
            self.identity,
            tol=tol,
            floor=0.0,
            max_iter=max_iter,
            reg=reg,
        )

    def path(
        self, regs: Sequence[float], tol: float, max_iter: int
    ) -> Iterator[np.ndarray]:
        """Minimise for each ``reg``, warm-started."""
        return Grouped(self.losses).path(
            self.row_losses,
            self.identity,
            regs,
            tol=tol,
            max_iter=max_iter,
        )

    @property
    def identity(self) -> np.ndarray:
        """The map that regularisation draws to."""
        return np.eye(self.losses[0].X.shape[1])

    def unwhitened(self, reg: float, L: np.ndarray, whitening: np.ndarray) -> _Map:
        """The map for vectors that are not whitened."""
        if self.side == "query":
            L = whitening.T @ L
        return _Map(self.side, reg, L @ whitening)


def _mean_metric(
    maps: list[_Map], dtype: Any, similarity: str | None, card: dict[str, str]
) -> EmbeddingMetric:
    """The metric of the mean squared distance (or minus twice the product) of several maps.

    With L and M, ``|L q - L x|^2 - 2 (M q)'x`` is ``|A q - L x|^2`` up to terms without x, where
    ``A = L + inv(L)' M``.
    """
    shared = [map_.L for map_ in maps if map_.side == "shared"]
    query = [map_.L for map_ in maps if map_.side == "query"]
    regs = sorted({map_.reg for map_ in maps}, reverse=True)
    parameters: dict[str, Any] = {"method": "ListwiseMap", "sides": "separate"}
    parameters["reg"] = regs if len(regs) > 1 else regs[0]
    parameters |= card
    settings: dict[str, Any] = {"parameters": parameters}
    if similarity is not None:
        settings["similarity"] = similarity
    if not shared:
        query_map = np.mean(query, axis=0).astype(dtype)
        identity = np.eye(len(query_map), dtype=dtype)
        parameters["sides"] = "query"
        return BilinearMetric(query_map, identity, **settings)
    item_map = _root_mean_square(shared)
    if not query:
        parameters["sides"] = "shared"
        return LinearMetric(item_map.astype(dtype), **settings)
    query_map = item_map + np.linalg.solve(item_map.T, np.mean(query, axis=0))
    return AsymmetricMetric(
        (query_map / np.sqrt(2)).astype(dtype),
        (item_map / np.sqrt(2)).astype(dtype),
        **settings,
    )


def _root_mean_square(maps: Sequence[np.ndarray]) -> np.ndarray:
    """A map whose squared distances are the mean of those of several maps."""
    if len(maps) == 1:
        return maps[0]
    squares, directions = np.linalg.eigh(np.mean([L.T @ L for L in maps], axis=0))
    return (directions * np.sqrt(np.maximum(squares, 0))) @ directions.T
