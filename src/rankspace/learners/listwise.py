"""A linear map that pulls queries and their relevant items together, away from all others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.metaestimators import available_if

from .._engine.checks import check_choice
from .._engine.parallel.threads import n_threads, thread_map
from ..metrics.embedding import (
    AsymmetricMetric,
    BilinearMetric,
    EmbeddingMetric,
    LinearMetric,
)
from ..relevance.relevance import Relevance
from ..search.index import Index
from .base import BaseRanker
from .hard_negatives import enough_unjudged, mine_hard_negatives
from .linear import LinearRanker
from .solvers.scaling import Scaled, in_blocks, partly_white, scale_data
from .solvers.smooth.pair_loss import (
    GAINS,
    Grouped,
    Listwise,
    Minimum,
    PairLoss,
    QueryLoss,
)

SIDES = {"shared": PairLoss, "query": QueryLoss}
MOST_QUERIES = 200  # that settle the temperature
# Pulls times the number of queries. On held-out training queries of SciFact and NFCorpus (48 draws,
# 100 to 400 to learn from) one pull of 24 to 0.8 gained less, overall or for new documents.
TOTAL_REGS = (80.0, 2.4)
Key = tuple[str, float]  # a side and a pull


class ListwiseMap(LinearRanker):
    """A map near the identity that makes relevant items likely neighbours of their query.

    Minimises the divergence of softmax neighbours, ``p(x | q)`` in proportion to
    ``exp(-|L q - L x|^2 / temperature)``, from the relevant items in proportion to their gain,
    plus ``pull |L - I|^2``, where directions of large spread were made a little shorter before.
    The loss is smooth: no pairs are sampled, and L-BFGS needs no step size. For embeddings that
    are good already, few judgments suffice.

    Parameters
    ----------
    reg : float or sequence of float, optional
        How strongly L is drawn to the identity: more is safer, less learns more. Of several, the
        mean of the squared distances (or products) is taken, which often errs less than a pull
        in between. By default 80 and 2.4 over the number of queries.
    sides : {"shared", "query", "separate"}, default="shared"
        Map queries and items alike, or queries only: then items stay as they are, and are ranked by
        their inner product with the mapped query, which for vectors of unit length is the cosine
        up to a factor. Or learn both, and take the mean of the squared distance and of minus twice
        the product: that is a map for each side, and often errs less than either. The last two are
        for vectors of one length.
    whiten : float, default=0.2
        How far the items are brought to equal spread in all directions before: not at all (0),
        until they are white (1), or beyond, up to 2. Needs no judgments, so it holds for new items
        too.
    temperature : float or sequence of float, optional
        Of the softmax, in units of the mean squared distance of two items; lower looks more at the
        nearest items. Of several, the mean of the losses is taken. By default two: the one of
        least loss before anything is learned, and half of it.
    gain : {"exponential", "linear", "binary"}, default="exponential"
        What a relevant item counts: ``2^grade - 1``, its grade, or 1.
    unjudged_weight : float, default=1.0
        What an item that is relevant to no query counts among possible neighbours, above 0. Below
        1, a map gains less by drawing all queries to the items that are relevant to some, which
        harms queries whose relevant items no judgment names.
    tol : float, default=2e-2
        Stop when two steps in a row lower the loss by no more than this share of it each.
    max_iter : int, default=100
        Steps of L-BFGS at most.
    n_negatives : int, optional
        Of the items that no judgment names so many take part at most: those nearest to a query,
        in turn for all queries. The others are hardly ever neighbours. By default three for
        two queries, from 1,000 to 1,500.
    max_items : int, default=20000
        If there are more items, queries are taken in groups, whose judged and nearest items are so
        many together. If the items are the queries too, so many of them are drawn at random.
    max_memory : int, default=512
        Working memory in MiB.
    random_state : int, RandomState or None, default=None
        Seed of the items that are kept.

    Attributes
    ----------
    metric_ : LinearMetric, BilinearMetric or AsymmetricMetric
        The learned map of both sides, of the queries only, or of each.
    components_ : ndarray of shape (n_features, n_features)
        L, if it maps both sides.
    parts_ : dict of str to metric
        What the metric is made of: "shared" and "query", if ``sides="separate"``; "weakest", what the
        weakest of several pulls learned; and of both, "weakest shared" and "weakest query".
    regs_ : list of float
        The pulls, strongest first.
    loss_ : float
        The loss at the end, summed over all maps that were learned.
    n_iter_ : int
        Steps of all.
    temperatures_ : list of float
        The temperatures used; with "separate" those of the map of both sides.
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

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> EmbeddingMetric:
        self._check_params()
        if queries is None:
            X, relevance = self._fewer_rows(X, relevance)
        by_default = np.divide(TOTAL_REGS, relevance.n_queries)
        self.regs_ = np.unique(by_default if self.reg is None else self.reg)[
            ::-1
        ].tolist()
        data = scale_data(X, relevance, queries)
        white = partly_white(data.X, self.whiten)
        data = data._replace(
            X=in_blocks(data.X, white),
            Q=in_blocks(data.Q, white),
            mean=(white @ (data.mean / data.scale)).astype(X.dtype),
        )
        sides = tuple(SIDES) if self.sides == "separate" else (self.sides,)
        problems = {
            side: self._problem(side, data, relevance, X, queries) for side in sides
        }
        self.temperatures_ = problems[sides[0]].temperatures
        minima = self._minima(problems)
        maps = {
            key: _unwhitened(key[0], found.components, white)
            for key, found in minima.items()
        }
        self.parts_ = {
            name: _mean({key: maps[key] for key in keys}, X.dtype)
            for name, keys in self._parts(list(maps)).items()
        }
        return _mean(maps, X.dtype)

    def _parts(self, keys: list[Key]) -> dict[str, list[Key]]:
        """The maps of each part by name."""
        sides = list(SIDES) if self.sides == "separate" else []
        weakest = [key for key in keys if key[1] == self.regs_[-1]]
        parts = {side: [key for key in keys if key[0] == side] for side in sides}
        if len(weakest) < len(keys):
            parts["weakest"] = weakest
            parts |= {
                f"weakest {side}": [key for key in weakest if key[0] == side]
                for side in sides
            }
        return parts

    def _problem(
        self,
        side: str,
        data: Scaled,
        relevance: Relevance,
        X: np.ndarray,
        queries: np.ndarray | None,
    ) -> _Problem:
        """What is to be minimised for a side."""
        groups = self._groups(side, relevance, X, queries)
        losses = [self._loss(side, data, relevance, *group) for group in groups]
        temperatures = self._temperatures(losses[0])
        weights = self._log_weights(relevance)
        rows = [
            Listwise(
                loss.relevance,
                temperatures,
                self.gain,
                weights if weights is None or items is None else weights[items],
            )
            for loss, (_, items) in zip(losses, groups, strict=True)
        ]
        return _Problem(Grouped(losses), rows, X.shape[1], temperatures)

    def _minima(self, problems: dict[str, _Problem]) -> dict[Key, Minimum]:
        """What each pull finds for each side; side by side, unless each can use all cores."""
        keys = [(side, reg) for reg in reversed(self.regs_) for side in problems]

        def work(key: Key) -> Minimum:
            problem = problems[key[0]]
            return problem.loss.minimise(
                problem.rows,
                np.eye(problem.n_features),
                tol=self.tol,
                floor=0.0,
                max_iter=self.max_iter,
                reg=key[1],
            )

        blocks = min(
            len(part.blocks)
            for problem in problems.values()
            for part in problem.loss.losses
        )
        in_turn = (
            blocks >= n_threads() >= len(keys)
        )  # blocks end together, searches do not
        done = map(work, keys) if in_turn else thread_map(work, keys, depth=len(keys))
        minima = dict(zip(keys, done, strict=True))
        if not all(found.converged for found in minima.values()):
            warnings.warn(
                f"ListwiseMap stopped after {self.max_iter} steps while its loss still fell by "
                f"more than tol={self.tol} of itself. Raise max_iter, tol or reg.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.loss_ = sum(found.loss for found in minima.values())
        self.history_ = [loss for found in minima.values() for loss in found.losses]
        self.n_iter_ = len(self.history_)
        return minima

    def _loss(
        self,
        side: str,
        data: Scaled,
        relevance: Relevance,
        queries: np.ndarray,
        items: np.ndarray | None,
    ) -> PairLoss:
        """The loss of some queries, over some or all of the items."""
        part, Q = relevance.take_queries(queries), data.Q[queries]
        if (
            side == "query"
        ):  # a product with the queries, so these count from where zero is
            Q = Q + data.mean
        if items is None:
            return SIDES[side](data.X, Q, part, self.max_memory)
        return SIDES[side](data.X[items], Q, part._take_items(items), self.max_memory)

    def _log_weights(self, relevance: Relevance) -> np.ndarray | None:
        """What each item counts, if not all count alike."""
        if self.unjudged_weight == 1:
            return None
        weights = np.full(relevance.n_items, np.log(self.unjudged_weight))
        weights[relevance.items[relevance.grades >= relevance.min_relevant_grade]] = 0.0
        return weights

    def _temperatures(self, loss: PairLoss) -> list[float]:
        """Those given, or the one of least loss before learning, and half of it."""
        if self.temperature is not None:
            return np.atleast_1d(self.temperature).tolist()
        few = loss.thinned(
            min(MOST_QUERIES, max(1, self.max_memory * 2**15 // len(loss.X)))
        )
        everyone = np.arange(few.relevance.n_queries)
        distances, states = few.unmapped(everyone), few.states(everyone)

        def value(log_temperature: float) -> float:
            rows = Listwise(few.relevance, [float(np.exp(log_temperature))], self.gain)
            return float(few.weights @ rows(distances, states, everyone)[0])

        found = minimize_scalar(
            value, bounds=(np.log(1e-4), np.log(10.0)), options={"xatol": 0.05}
        )
        best = float(np.exp(found.x))
        return [best, best / 2.0]

    def _fewer_rows(
        self, X: np.ndarray, relevance: Relevance
    ) -> tuple[np.ndarray, Relevance]:
        """At most ``max_items`` rows, which are the queries too."""
        if len(X) <= self.max_items:
            return X, relevance
        order = check_random_state(self.random_state).permutation(len(X))
        rows = np.sort(order[: self.max_items])
        part = relevance[rows]
        return X[rows], part.take_queries(part.trainable)

    def _groups(
        self, side: str, relevance: Relevance, X: np.ndarray, queries: np.ndarray | None
    ) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Queries in order, cut where their judgments would fill half of the items; and the items.

        All judged items of a group take part, and of the others those nearest to its queries.
        """
        numbers = np.arange(relevance.n_queries)
        if queries is None or (relevance.query_items >= 0).any():
            return [(numbers, None)]
        group_of = np.zeros_like(numbers)
        if relevance.n_items > self.max_items:
            sizes = np.diff(relevance.indptr)[relevance.rows]
            group_of = (np.cumsum(sizes) - sizes) // max(1, self.max_items // 2)
        enough = self.n_negatives
        enough = enough_unjudged(numbers.size) if enough is None else enough
        unmapped = np.eye(X.shape[1], dtype=X.dtype)
        index = Index(
            X, BilinearMetric(unmapped, unmapped) if side == "query" else None
        )
        groups: list[tuple[np.ndarray, np.ndarray | None]] = []
        for group in np.unique(group_of):
            members = numbers[group_of == group]
            judged = np.unique(relevance.take_queries(members).items)
            most = min(enough, max(0, self.max_items - judged.size))
            if judged.size + most >= relevance.n_items:
                groups.append((members, None))
                continue
            others = mine_hard_negatives(index, queries[members], judged, most)
            groups.append((members, np.sort(np.concatenate((judged, others)))))
        return groups

    def _check_params(self) -> None:
        check_choice(self.sides, "sides", (*SIDES, "separate"))
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


class _Problem(NamedTuple):
    """A loss over all groups of queries, and what makes it of distances."""

    loss: Grouped
    rows: list[Listwise]
    n_features: int
    temperatures: list[float]


def _unwhitened(side: str, L: np.ndarray, white: np.ndarray) -> np.ndarray:
    """A map of white vectors, as one of vectors as they are."""
    return L @ white if side == "shared" else white @ L @ white


def _mean(maps: Mapping[Key, np.ndarray], dtype: Any) -> EmbeddingMetric:
    """The mean of what maps of one side or two say, each learned with some pulls.

    With L and M, ``|L q - L x|^2 - 2 (M q)'x`` is ``|A q - L x|^2`` but for what no item changes,
    where ``A = L + inv(L)' M``.
    """
    both = [L for (side, _), L in maps.items() if side == "shared"]
    query = [M for (side, _), M in maps.items() if side == "query"]
    pulls = sorted({reg for _, reg in maps}, reverse=True)
    parameters = {
        "method": "ListwiseMap",
        "sides": "separate" if both and query else "shared" if both else "query",
        "reg": pulls if len(pulls) > 1 else pulls[0],
    }
    if not both:
        left = np.mean(query, axis=0).astype(dtype)
        return BilinearMetric(
            left, np.eye(len(left), dtype=dtype), parameters=parameters
        )
    right = _root_mean_square(both)
    if not query:
        return LinearMetric(right.astype(dtype), parameters=parameters)
    left = right + np.linalg.solve(right.T, np.mean(query, axis=0))
    left, right = ((map_ / np.sqrt(2)).astype(dtype) for map_ in (left, right))
    return AsymmetricMetric(left, right, parameters=parameters)


def _root_mean_square(maps: Sequence[np.ndarray]) -> np.ndarray:
    """A map whose squared distances are the mean of those of several."""
    if len(maps) == 1:
        return maps[0]
    squares, directions = np.linalg.eigh(np.mean([L.T @ L for L in maps], axis=0))
    return (directions * np.sqrt(np.maximum(squares, 0))) @ directions.T
