"""Baselines that the MLR paper compares with: Euclidean, LMNN, MLCC, SVM-MAP."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_scalar

from ..metrics.embedding import BilinearMetric, LinearMetric
from ..relevance.relevance import Relevance
from .base import BaseRanker
from .linear import LinearRanker
from .solvers.cutting_plane.admm import VectorProblem
from .solvers.cutting_plane.ranking_loss import LinearRankingLoss
from .solvers.cutting_plane.solver import cutting_plane
from .solvers.scaling import Scaled, scale_data
from .solvers.smooth.pair_loss import LargeMargin, PairLoss, RowLoss, collapse


class Euclidean(LinearRanker):
    """Plain Euclidean distance: the metric before any learning.

    Fitting costs O(n_features^2) time and memory, for the identity matrix.

    Attributes
    ----------
    metric_ : LinearMetric
        The identity.
    components_ : ndarray of shape (n_features, n_features)
        The identity matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rankspace import Euclidean
    >>> X, y = load_iris(return_X_y=True)
    >>> round(Euclidean().fit(X, y).score(X, y), 3)
    0.881
    """

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        return LinearMetric.identity(X.shape[1])


class _PairLearner(LinearRanker):
    """Learners of a square map by a loss of squared distances."""

    tol: float
    max_iter: int
    max_memory: int

    def _row_loss(self, loss: PairLoss) -> RowLoss:
        raise NotImplementedError

    def _check_params(self) -> None:
        check_scalar(self.tol, "tol", Real, min_val=0)
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.max_memory, "max_memory", Integral, min_val=1)

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        self._check_params()
        data = scale_data(X, relevance, queries)
        loss = PairLoss(
            data.X.astype(float), data.Q.astype(float), relevance, self.max_memory
        )
        d = X.shape[1]
        # The scale of standardised features, from which both methods were made to start.
        start = np.sqrt(2 * d) * np.eye(d)
        found = loss.minimise(
            self._row_loss(loss), start, tol=self.tol, max_iter=self.max_iter
        )
        if not found.converged:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.max_iter} steps while its loss still "
                f"fell by more than tol={self.tol} of itself. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.loss_ = found.loss
        self.history_ = found.losses
        self.n_iter_ = len(found.losses)
        components = (found.parameters / data.scale).astype(X.dtype)
        return LinearMetric(components, parameters={"method": type(self).__name__})


class LMNN(_PairLearner):
    """Large margin nearest neighbours.

    Pulls the nearest relevant items of each query near and pushes irrelevant ones a margin behind
    them. Which relevant items count, the targets, is settled by Euclidean distance at the start.

    Parameters
    ----------
    n_targets : int, default=3
        Targets of a query.
    push : float, default=0.5
        Weight of the pushing against the pulling, from 0 to 1.
    tol : float, default=1e-6
        Stop when two steps in a row lower the loss by no more than this share of it each.
    max_iter : int, default=200
        Maximum number of L-BFGS steps.
    max_memory : int, default=512
        Working memory in MiB.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_features, n_features)
        L with ``W = L'L``.
    loss_ : float
        Mean loss of a query.
    history_ : list of float
        The loss after each step.
    n_iter_ : int
        Steps.

    Notes
    -----
    A step costs four products of n_queries x n_items x n_features.

    References
    ----------
    K. Weinberger and L. Saul, Distance metric learning for large margin nearest neighbor
    classification, JMLR 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rankspace import LMNN
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(LMNN().fit(X, y).score(X, y) > 0.89)
    True
    """

    def __init__(
        self,
        n_targets: int = 3,
        *,
        push: float = 0.5,
        tol: float = 1e-6,
        max_iter: int = 200,
        max_memory: int = 512,
    ) -> None:
        self.n_targets = n_targets
        self.push = push
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory

    def _check_params(self) -> None:
        super()._check_params()
        check_scalar(self.n_targets, "n_targets", Integral, min_val=1)
        check_scalar(self.push, "push", Real, min_val=0, max_val=1)

    def _row_loss(self, loss: PairLoss) -> RowLoss:
        return LargeMargin(loss, self.n_targets, self.push)


class MLCC(_PairLearner):
    """Metric learning by collapsing classes.

    Makes softmax neighbours of a query as near as can be to a uniform draw from its relevant items.
    The loss is convex in W; where classes can be collapsed altogether it has no minimiser, and the
    metric grows until ``tol`` or ``max_iter`` ends it.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when two steps in a row lower the loss by no more than this share of it each.
    max_iter : int, default=200
        Maximum number of L-BFGS steps.
    max_memory : int, default=512
        Working memory in MiB.

    Attributes
    ----------
    metric_, components_, loss_, history_, n_iter_
        As for `LMNN`.

    Notes
    -----
    A step costs four products of n_queries x n_items x n_features.

    References
    ----------
    A. Globerson and S. Roweis, Metric learning by collapsing classes, NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from rankspace import MLCC
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(MLCC().fit(X, y).score(X, y) > 0.95)
    True
    """

    def __init__(
        self, *, tol: float = 1e-6, max_iter: int = 200, max_memory: int = 512
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory

    def _row_loss(self, loss: PairLoss) -> RowLoss:
        return collapse


class SVMMAP(BaseRanker):
    """A structural SVM that ranks items by ``w'x`` alone and optimises average precision.

    The baseline of the MLR paper: with ``q - x`` for features of a pair, the query only shifts all
    scores alike, so every query gets the same order of the items it ranks.

    Parameters
    ----------
    C : float, default=1000.0
        Weight of the violations against ``|w|^2 / 2``, on data divided by the root mean squared
        distance of two items.
    tol : float, default=0.01
        Stop when (upper bound - lower bound) / C is at most this.
    max_iter : int, default=200
        Maximum number of rounds. A warning reports the gap if they do not suffice.
    max_memory : int, default=512
        Working memory of a round in MiB.

    Attributes
    ----------
    metric_ : BilinearMetric
        Ranks by ``w'x``, the largest first, whatever the query.
    coef_ : ndarray of shape (n_features,)
        The weights w on the data as given.
    objective_, gap_, n_iter_, history_
        As for `MLR`.

    Notes
    -----
    A round costs a sort of its items for each query.

    References
    ----------
    Y. Yue, T. Finley, F. Radlinski and T. Joachims, A support vector method for optimizing average
    precision, SIGIR 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import SVMMAP, Relevance
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> good = np.flatnonzero(X[:, 0] > 0.5)
    >>> relevance = Relevance.from_lists([good] * 60, n_items=60, query_rows=range(60))
    >>> model = SVMMAP().fit(X, relevance)
    >>> bool(model.coef_[0] > abs(model.coef_[1:]).max())
    True
    """

    def __init__(
        self,
        C: float = 1000.0,
        *,
        tol: float = 0.01,
        max_iter: int = 200,
        max_memory: int = 512,
    ) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> BilinearMetric:
        check_scalar(self.C, "C", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.tol, "tol", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.max_memory, "max_memory", Integral, min_val=1)
        w = self._solve(scale_data(X, relevance, queries), relevance)
        self.coef_ = w.astype(X.dtype)
        d = X.shape[1]
        return BilinearMetric(
            np.zeros((1, d), dtype=X.dtype),
            self.coef_[None],
            query_offset=np.ones(1, dtype=X.dtype),
            parameters={"method": type(self).__name__, "C": float(self.C)},
        )

    def _solve(self, data: Scaled, relevance: Relevance) -> np.ndarray:
        d = data.X.shape[1]
        loss = LinearRankingLoss(
            data.X,
            data.Q,
            relevance,
            "map",
            np.arange(relevance.n_queries),
            self.max_memory,
        )
        result = cutting_plane(
            lambda w: loss.plane(w[None]),
            VectorProblem(d, self.C),
            np.zeros(d),
            tol=self.tol,
            max_iter=self.max_iter,
        )
        if not result.converged:
            warnings.warn(
                f"SVMMAP stopped after {result.n_iter} rounds with a gap of {result.gap:.3g}, "
                f"above tol={self.tol}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        self.objective_ = result.objective
        self.gap_ = result.gap
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        # Distances grow with w'x in the solver; similarities are their negatives.
        return -result.W / data.scale
