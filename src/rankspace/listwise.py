"""A linear map that pulls queries and their relevant items together, away from all others."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from ._base import BaseRanker
from ._choices import check_choice
from ._scaling import Scaled, scale_data
from ._solvers.pair_loss import Listwise, PairLoss, QueryLoss
from .metric import BilinearMetric, EmbeddingMetric, LinearMetric
from .relevance import Relevance

SIDES = ("both", "query")
MOST_QUERIES = 500  # that settle the temperature


class ListwiseMap(BaseRanker):
    """A map near the identity that makes relevant items likely neighbours of their query.

    Minimises the cross entropy of softmax neighbours, ``p(x | q)`` in proportion to
    ``exp(-|L q - L x|^2 / temperature)``, against the relevant items in proportion to their gain,
    plus ``pull |L - I|^2``. The loss is smooth and every item takes part in it: nothing is sampled,
    and L-BFGS needs no step size. For embeddings that are good already, few judgments suffice.

    Parameters
    ----------
    pull : float, default=0.01
        How strongly L is drawn to the identity. Larger is safer with few judgments.
    side : {"both", "query"}, default="both"
        Map queries and items alike, or queries only: then items stay as they are, and are ranked by
        their inner product with the mapped query, which for vectors of unit length is the cosine
        up to a factor.
    temperature : float, optional
        In units of the mean squared distance of two items; by default the one under which the
        vectors as they are have the least loss.
    tol : float, default=1e-4
        Stop when the loss falls by less than this share of itself.
    max_iter : int, default=100
        Steps of L-BFGS at most.
    max_items : int, default=20000
        If there are more items, so many are kept to learn on: those that are judged, and others at
        random.
    max_memory : int, default=512
        Working memory in MiB.
    random_state : int, RandomState or None, default=None
        Seed of the items that are kept.

    Attributes
    ----------
    metric_ : LinearMetric or BilinearMetric
        The learned map; bilinear if it is of the queries only.
    components_ : ndarray of shape (n_features, n_features)
        L, if it maps both sides.
    temperature_ : float
        The temperature used.
    loss_ : float
        The loss at the end.
    history_ : list of float
        The loss after each step.
    n_iter_ : int
        Steps.

    Notes
    -----
    A step costs four products of n_queries x n_items x n_features, or two for the queries only.

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
        pull: float = 0.01,
        *,
        side: str = "both",
        temperature: float | None = None,
        tol: float = 1e-4,
        max_iter: int = 100,
        max_items: int = 20_000,
        max_memory: int = 512,
        random_state: Any = None,
    ) -> None:
        self.pull = pull
        self.side = side
        self.temperature = temperature
        self.tol = tol
        self.max_iter = max_iter
        self.max_items = max_items
        self.max_memory = max_memory
        self.random_state = random_state

    @property
    def _metric_kind(self) -> type:  # type: ignore[override]
        return LinearMetric if self.side == "both" else BilinearMetric

    def _learn(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> EmbeddingMetric:
        self._check_params()
        X, relevance, queries = self._thinned(X, relevance, queries)
        data = scale_data(X, relevance, queries)
        if self.side == "both":
            loss = PairLoss(data.X, data.Q, relevance, self.max_memory)
        else:
            points = X[relevance.own_items] if queries is None else queries
            data = Scaled(data.X, (points / data.scale).astype(X.dtype), data.scale)
            loss = QueryLoss(data.X, data.Q, relevance, self.max_memory)
        identity = np.eye(X.shape[1])
        self.temperature_ = self._temperature(loss, identity)
        rows = Listwise(relevance, self.temperature_)
        found = loss.minimise(
            rows, identity, tol=self.tol, max_iter=self.max_iter, pull=float(self.pull)
        )
        if not found.converged:
            warnings.warn(
                f"ListwiseMap stopped after {self.max_iter} steps while its loss still fell by "
                f"more than tol={self.tol} of itself. Raise max_iter, tol or pull.",
                ConvergenceWarning, stacklevel=3,
            )  # fmt: skip
        self.loss_, self.history_, self.n_iter_ = found.loss, found.losses, len(found.losses)
        return self._metric(found.components.astype(X.dtype))

    def _metric(self, L: np.ndarray) -> EmbeddingMetric:
        parameters = {"method": "ListwiseMap", "side": self.side, "pull": float(self.pull)}
        if self.side == "both":
            return LinearMetric(L, parameters=parameters)
        return BilinearMetric(L, np.eye(len(L), dtype=L.dtype), parameters=parameters)

    def _temperature(self, loss: PairLoss, identity: np.ndarray) -> float:
        """The one given, or the one of least loss at the start."""
        if self.temperature is not None:
            return float(self.temperature)
        few = loss.thinned(MOST_QUERIES)

        def value(log_temperature: float) -> float:
            rows = Listwise(few.relevance, float(np.exp(log_temperature)))
            return few.value_and_gradient(identity, rows)[0]

        found = minimize_scalar(value, bounds=(np.log(1e-4), np.log(10.0)), options={"xatol": 0.05})
        return float(np.exp(found.x))

    def _thinned(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> tuple[np.ndarray, Relevance, np.ndarray | None]:
        """At most ``max_items`` items, and what is known of them."""
        if len(X) <= self.max_items:
            return X, relevance, queries
        chance = check_random_state(self.random_state).uniform(size=len(X))
        if queries is not None:
            chance[relevance.items] = -1.0
        rows = np.sort(np.argsort(chance, kind="stable")[: self.max_items])
        if queries is None:
            part = relevance[rows]
            return X[rows], part.take_queries(part.trainable), None
        part = relevance._take_items(rows)
        return X[rows], part.take_queries(part.trainable), queries[part.trainable]

    def _check_params(self) -> None:
        check_choice(self.side, "side", SIDES)
        check_scalar(self.pull, "pull", Real, min_val=0)
        check_scalar(self.tol, "tol", Real, min_val=0)
        for name in ("max_iter", "max_items", "max_memory"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        if self.temperature is not None:
            check_scalar(
                self.temperature, "temperature", Real, min_val=0, include_boundaries="neither"
            )
