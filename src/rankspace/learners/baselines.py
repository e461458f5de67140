"""Baselines of the MLR paper: Euclidean distance, LMNN, MLCC and SVM-MAP."""

from __future__ import annotations

import warnings
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_scalar

from ..metrics.embedding import BilinearMetric, LinearMetric
from ..relevance.relevance import Relevance
from .base import BaseRanker
from .fit_data import WeightedFit
from .linear import LinearRanker
from .solvers.cutting_plane.admm import VectorProblem
from .solvers.cutting_plane.ranking_loss import LinearRankingLoss
from .solvers.cutting_plane.solver import cutting_plane
from .solvers.points import Points, scaled_points
from .solvers.scaling import Scaling
from .solvers.smooth.pair_loss import LargeMargin, PairLoss, RowLoss, collapse


class Euclidean(LinearRanker):
    """Euclidean distance, the baseline without learning.

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


class _PairLearner(WeightedFit, LinearRanker):
    """Learners of a square linear map that minimise a loss of squared distances by L-BFGS."""

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
        scaling = Scaling.of(X)._replace(dtype=np.float64)
        points = scaled_points(X, relevance, queries, scaling)
        loss = PairLoss(points.items, points.queries, relevance, self.max_memory)
        d = X.shape[1]
        # The scale of standardised features, for which the starts of both methods were designed.
        start = np.sqrt(2 * d) * np.eye(d)
        result = loss.minimise(
            self._row_loss(loss), start, tol=self.tol, max_iter=self.max_iter
        )
        if not result.converged:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.max_iter} steps while its loss still "
                f"decreased by a fraction of more than tol={self.tol}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.loss_ = result.loss
        self.history_ = result.losses
        self.n_iter_ = len(result.losses)
        components = (result.parameters / scaling.scale).astype(X.dtype)
        return LinearMetric(components, parameters={"method": type(self).__name__})


class LMNN(_PairLearner):
    """Large margin nearest neighbours (LMNN).

    Moves target neighbours of each query closer, and pushes irrelevant items a margin farther away
    than the targets. The targets are the relevant items with the smallest Euclidean distances.

    Parameters
    ----------
    n_targets : int, default=3
        Number of target neighbours of a query.
    push : float, default=0.5
        Weight of the push term, from 0 to 1; the target term has weight ``1 - push``.
    tol : float, default=1e-6
        Stopping tolerance: stop after two successive steps whose relative decrease of the loss is
        at most ``tol``.
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
        Loss after each step.
    n_iter_ : int
        Number of L-BFGS steps.

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
    """Maximally collapsing metric learning (MCML): metric learning by collapsing classes.

    Minimises the Kullback-Leibler divergence between the softmax neighbours of a query and the
    uniform distribution over its relevant items. The loss is convex in W. If a metric collapses
    every class to a point, there is no minimiser, and the metric grows until ``tol`` or
    ``max_iter`` stops it.

    Parameters
    ----------
    tol : float, default=1e-6
        Stopping tolerance; see `LMNN`.
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


class SVMMAP(WeightedFit, BaseRanker):
    """SVM-MAP: a structural SVM that ranks items by ``w'x`` and optimises average precision.

    The baseline of the MLR paper. The features of a pair are ``q - x``, so the query shifts all
    scores by the same amount, and every query orders its items in the same way.

    Parameters
    ----------
    C : float, default=1000.0
        Weight of the violations against ``|w|^2 / 2``, on data divided by the root mean squared
        distance of two items.
    tol : float, default=0.01
        Stopping tolerance: stop when (upper bound - lower bound) / C is at most ``tol``.
    max_iter : int, default=200
        Maximum number of cutting-plane rounds.
    max_memory : int, default=512
        Working memory of a round in MiB.

    Attributes
    ----------
    metric_ : BilinearMetric
        Ranks by ``w'x``, largest first, independently of the query.
    coef_ : ndarray of shape (n_features,)
        Weights w, for unscaled data.
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
        scaling = Scaling.of(X)
        points = scaled_points(X, relevance, queries, scaling)
        w = self._solve(points, relevance) / scaling.scale
        self.coef_ = w.astype(X.dtype)
        d = X.shape[1]
        return BilinearMetric(
            np.zeros((1, d), dtype=X.dtype),
            self.coef_[None],
            query_offset=np.ones(1, dtype=X.dtype),
            parameters={"method": type(self).__name__, "C": float(self.C)},
        )

    def _solve(self, points: Points, relevance: Relevance) -> np.ndarray:
        d = points.matrix.shape[1]
        all_queries = np.arange(relevance.n_queries)
        loss = LinearRankingLoss(points, relevance, "map", all_queries, self.max_memory)
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
        # The solver learns distances w'x; similarities are their negatives.
        return -result.W
