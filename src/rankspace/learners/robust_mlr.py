"""Robust MLR: metric learning to rank with group-sparse feature selection."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_scalar

from .._engine.files import PathLike
from ..metrics.embedding import LinearMetric
from .mlr import MLR, MetricProblem
from .solvers.cutting_plane.admm import PlaneProblem
from .solvers.cutting_plane.group_sparse import GroupSparseProblem, TraceAndGroups
from .solvers.cutting_plane.solver import SolverResult


class RobustMLR(MLR):
    """Robust metric learning to rank with group-sparse feature selection.

    Minimises ``tr(W) + sparsity * |W|_{2,1} + C xi``, where the norm is the sum of the lengths of
    the columns of W. Rows and columns of features that are not selected are exactly zero.

    Parameters
    ----------
    C : float or "auto", default=1000.0
        Weight of the violations; see `MLR`.
    sparsity : float, default=1.0
        Weight lambda of the (2,1)-norm.
    measure : str or callable, default="map"
        Measure to optimise; see `MLR`.
    tol : float, default=0.01
        Stopping tolerance: stop when (upper bound - lower bound) / C is at most ``tol``.
    max_iter : int, default=200
        Maximum number of cutting-plane rounds.
    scaling : {"auto", "standard"} or None, default="auto"
        Whether features are standardised before learning; see `MLR`.
    batch_size : int, optional
        Number of queries sampled at random for each round. Bounds from samples give no certificate.
    n_components : int, optional
        Number of leading directions of the solution to keep; all by default.
    max_memory : int, default=512
        Working memory of a round in MiB. A larger ``X`` that is mapped from a file is streamed.
    checkpoint : path, optional
        File to which rounds are saved. If it exists, `fit` on the same data with the same
        parameters resumes from it, and gives the same metric as an uninterrupted run, also if the
        run had finished. Only ``n_components`` may differ, and ``max_iter`` may be larger.
    random_state : int, RandomState or None, default=None
        Seed of the batches.

    Attributes
    ----------
    support_ : ndarray of int
        Indices of the selected features.
    metric_, components_, C_, C_scores_, objective_, gap_, n_iter_, history_, scale_, scaling_
        As for `MLR`.

    Notes
    -----
    Fitting costs as much as `MLR`.

    References
    ----------
    D. Lim, B. McFee and G. Lanckriet, Robust structural metric learning, ICML 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import RobustMLR
    >>> X, y = load_wine(return_X_y=True)
    >>> noise = np.random.default_rng(0).normal(size=(len(X), 20))
    >>> model = RobustMLR(measure="auc", sparsity=3.0).fit(np.c_[scale(X), noise], y)
    >>> bool(model.support_.size < 33)
    True
    """

    def __init__(
        self,
        C: float | str = 1000.0,
        *,
        sparsity: float = 1.0,
        measure: Any = "map",
        tol: float = 0.01,
        max_iter: int = 200,
        scaling: str | None = "auto",
        batch_size: int | None = None,
        n_components: int | None = None,
        max_memory: int = 512,
        checkpoint: PathLike | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.sparsity = sparsity
        self.measure = measure
        self.tol = tol
        self.max_iter = max_iter
        self.scaling = scaling
        self.batch_size = batch_size
        self.n_components = n_components
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state

    constraint = "psd"
    blocks = None
    regularizer = "trace"
    prior = None

    def _check_params(self) -> None:
        super()._check_params()
        check_scalar(self.sparsity, "sparsity", Real, min_val=0)

    def _plane_problem(self, problem: MetricProblem, C: float) -> PlaneProblem:
        regularizer = TraceAndGroups(problem.cone, self.sparsity)
        return GroupSparseProblem(problem.cone, regularizer, C)

    def _store(self, result: SolverResult, cone: Any, dtype: Any) -> LinearMetric:
        metric = super()._store(result, cone, dtype)
        self.support_ = np.flatnonzero(result.W.any(axis=0))
        # Factors of a matrix with zero rows have zero columns up to rounding only.
        components = metric.components.copy()
        components[:, np.setdiff1d(np.arange(len(result.W)), self.support_)] = 0
        return LinearMetric(components, parameters=metric.parameters)
