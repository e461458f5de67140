"""Metric learning to rank: structural SVMs over rankings (McFee and Lanckriet, 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar
from threadpoolctl import threadpool_limits

from .._engine.checks import check_choice
from .._engine.files import PathLike
from ..evaluation.measures import parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from .base import BaseRanker, logger
from .solvers.cutting_plane.admm import Frobenius, PlaneProblem, Trace
from .solvers.cutting_plane.checkpoint import Checkpoint, digest
from .solvers.cutting_plane.cones import DiagonalCone, PSDCone
from .solvers.cutting_plane.ranking_loss import ORACLE_MEASURES, Plane, RankingLoss
from .solvers.cutting_plane.sampled_rounds import sampled_cutting_plane
from .solvers.cutting_plane.solver import SolverResult, cutting_plane
from .solvers.cutting_plane.subgradient import projected_subgradient
from .solvers.scaling import Scaled, scaled_rows

UNHASHED = (
    "checkpoint",
    "max_iter",
    "max_memory",
    "n_components",
    "random_state",
    "tol",
)


class MLR(BaseRanker):
    """Metric learning to rank by a structural SVM over rankings.

    Learns the positive semi-definite matrix W that minimises ``tr(W) + C xi``, where xi is the mean
    over queries of the largest margin violation by any ranking, the margin of a ranking being its
    loss under the chosen measure. The most violated rankings are found exactly, and the answer is
    certified: the objective lies within ``C tol`` of the best there is.

    Parameters
    ----------
    C : float, default=1000.0
        Weight of the violations, in the paper's scale, on data divided by the root mean squared
        distance of two items. If it is too small the best metric is zero, and a warning says so.
    measure : str, default="map"
        ``auc``, ``p@k``, ``knn@k``, ``map``, ``mrr``, ``ndcg``, ``ndcg@k``, ``ndcg-mlr`` or
        ``ndcg-mlr@k``. NDCG is optimised in its binary form.
    tol : float, default=0.01
        Stop when (upper bound - lower bound) / C is at most this.
    max_iter : int, default=200
        Rounds at most. If they do not suffice a warning names the gap.
    constraint : {"psd", "diagonal"}, default="psd"
        The whole cone, or one weight a feature.
    regularizer : {"trace", "frobenius"}, default="trace"
        tr(W), or half the squared Frobenius distance from the prior (from zero without one).
    prior : None, "identity" or array-like of shape (n_features, n_features), default=None
        What to stay near, with ``regularizer="frobenius"``. "identity" is a multiple of it, chosen
        by the training queries; an array is a Mahalanobis matrix on the data as given.
    batch_size : int, optional
        Draw so many queries anew each round. Bounds are then of a sample: there is no certificate,
        and the gap of the last round stands in ``history_`` as it is.
    n_components : int, optional
        Keep the leading directions of the answer only.
    solver : {"admm", "subgradient"}, default="admm"
        The inner solver; "subgradient" is the paper's own, for reference.
    max_memory : int, default=512
        Working memory of a round in MiB; a larger ``X`` that is mapped from a file is streamed.
    checkpoint : path, optional
        A file to keep the rounds in. If it exists, `fit` on the same data with the same parameters
        goes on from it.
    random_state : int, RandomState or None, default=None
        Seed of the batches.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_components, n_features)
        L with ``W = L'L``, on the data as given.
    objective_ : float
        Objective of the answer, on scaled data, before ``n_components`` cuts it; with
        ``batch_size`` that of the last batch.
    gap_ : float
        (Upper - lower bound) / C; with ``batch_size``, violation less slack of the last batch.
    n_iter_ : int
        Rounds.
    history_ : list of dict
        Bounds, violation, slack, number of constraints, inner iterations and seconds a round.
    scale_ : float
        What the data were divided by.

    Notes
    -----
    Each round is told to the logger ``rankspace`` at level INFO.

    A round costs two products of n_queries x n_items x n_features and a sort of the items for each
    query; the inner solver an eigenvalue problem of size n_features a step. Memory is O(n_items
    n_features + rounds n_features^2) beside ``max_memory``.

    References
    ----------
    B. McFee and G. Lanckriet, Metric learning to rank, ICML 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import MLR
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MLR(measure="auc").fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.95)
    True
    """

    def __init__(
        self,
        C: float = 1000.0,
        *,
        measure: str = "map",
        tol: float = 0.01,
        max_iter: int = 200,
        constraint: str = "psd",
        regularizer: str = "trace",
        prior: Any = None,
        batch_size: int | None = None,
        n_components: int | None = None,
        solver: str = "admm",
        max_memory: int = 512,
        checkpoint: PathLike | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.measure = measure
        self.tol = tol
        self.max_iter = max_iter
        self.constraint = constraint
        self.regularizer = regularizer
        self.prior = prior
        self.batch_size = batch_size
        self.n_components = n_components
        self.solver = solver
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        self._check_params()
        if (
            self.measure.startswith("ndcg")
            and np.unique(relevance.positive_grades[1]).size > 1
        ):
            logger.warning(
                "%s optimises the binary form of %s: grades from %g up are all alike to it.",
                type(self).__name__,
                self.measure,
                relevance.min_relevant_grade,
            )
        taught = np.arange(relevance.n_queries)
        data = Scaled(*scaled_rows(X, relevance, queries))
        loss = RankingLoss(
            data.X, data.Q, relevance, self.measure, taught, self.max_memory
        )
        # Waking threads costs more than they bring to the small products of the inner solver.
        with threadpool_limits(1 if X.shape[1] <= 512 else None, "blas"):
            result = self._solve(loss, data)
        self._warn(result)
        self.scale_ = data.scale
        return self._store(result, X.dtype)

    def _check_params(self) -> None:
        check_scalar(self.C, "C", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.tol, "tol", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        for name in ("batch_size", "n_components", "max_memory"):
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_oracle(self.measure)
        check_choice(self.constraint, "constraint", ("psd", "diagonal"))
        check_choice(self.regularizer, "regularizer", ("trace", "frobenius"))
        check_choice(self.solver, "solver", ("admm", "subgradient"))
        if self.solver == "subgradient" and self.batch_size is not None:
            raise ValueError(
                "batch_size needs solver='admm': the reference takes all queries."
            )
        if self.checkpoint is not None and self.solver == "subgradient":
            raise ValueError(
                "checkpoint needs solver='admm': the reference keeps none."
            )
        if self.batch_size is not None and self.checkpoint is not None:
            check_scalar(self.random_state, "random_state, with batch_size", Integral)
        if self.prior is not None and self.regularizer != "frobenius":
            raise ValueError(
                "prior needs regularizer='frobenius': the trace pulls towards zero."
            )

    # ------------------------------------------------------------------ solving

    def _solve(self, loss: RankingLoss, data: Scaled) -> SolverResult:
        self._cone = (PSDCone if self.constraint == "psd" else DiagonalCone)(
            data.X.shape[1]
        )
        regularizer = self._regularizer(loss, data.scale)
        start = self._first_point(regularizer)
        if self.solver == "subgradient":
            problem = PlaneProblem(self._cone, regularizer, self.C)
            return projected_subgradient(
                self._plane(loss), problem, start, tol=self.tol, max_iter=self.max_iter
            )
        return self._cut(loss, PlaneProblem(self._cone, regularizer, self.C), start)

    def _first_point(self, regularizer: Any) -> np.ndarray:
        if self.regularizer == "frobenius":
            return self._cone.project(regularizer.prior)
        return 0 * self._cone.identity

    def _cut(
        self, loss: RankingLoss, problem: PlaneProblem, start: np.ndarray
    ) -> SolverResult:
        if self.checkpoint is None:
            return self._rounds(loss, problem, start, None)
        checkpoint = Checkpoint(self.checkpoint, self._fingerprint(loss))
        with checkpoint.named_in_errors():
            return self._rounds(loss, problem, start, checkpoint)

    def _rounds(
        self,
        loss: RankingLoss,
        problem: PlaneProblem,
        start: np.ndarray,
        checkpoint: Checkpoint | None,
    ) -> SolverResult:
        if self.batch_size is None or self.batch_size >= loss.queries.size:
            return cutting_plane(
                self._plane(loss),
                problem,
                start,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=_log_round,
                checkpoint=checkpoint,
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        weighed = loss.queries[loss.relevance.weights[loss.queries] > 0]
        size = min(self.batch_size, weighed.size)

        def sampled_plane(W: np.ndarray, number: int) -> Plane:
            random = np.random.default_rng([seed, number])
            sample = random.choice(weighed, size, replace=False)
            return loss.plane(self._cone.components(W), np.sort(sample))

        return sampled_cutting_plane(
            sampled_plane,
            problem,
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            checkpoint=checkpoint,
        )

    def _fingerprint(self, loss: RankingLoss) -> str:
        """A digest of all that decides the rounds but how many there are."""
        parameters = {
            k: v for k, v in sorted(self.get_params().items()) if k not in UNHASHED
        }
        relevance, X = loss.relevance, loss.X
        rules = (relevance.background, relevance.unjudged, relevance.min_relevant_grade)
        return digest(
            parameters,
            rules,
            X.shape,
            X.scale,
            X.mean,
            loss.Q.shape,
            loss.Q[:1],
            relevance.rows,
            relevance.indptr,
            relevance.items,
            relevance.grades,
            relevance.query_items,
            relevance.weights,
        )

    def _plane(self, loss: RankingLoss) -> Callable[[np.ndarray], Plane]:
        return lambda W: loss.plane(self._cone.components(W))

    def _regularizer(self, loss: RankingLoss, scale: float) -> Any:
        if self.regularizer == "trace":
            return Trace(self._cone)
        return Frobenius(self._cone, self._prior_matrix(loss, scale))

    def _prior_matrix(self, loss: RankingLoss, scale: float) -> np.ndarray:
        identity = self._cone.identity
        if self.prior is None:
            return 0 * identity
        if isinstance(self.prior, str):
            check_choice(self.prior, "prior", ("identity",))
            return best_multiple(self._plane(loss), self._cone) * identity
        return (
            self._cone.restrict(_mahalanobis_matrix(self.prior, len(identity)))
            * scale**2
        )

    # ------------------------------------------------------------------ the answer

    def _warn(self, result: SolverResult) -> None:
        if not result.converged and np.isfinite(result.history[-1]["upper"]):
            warnings.warn(
                f"{type(self).__name__} stopped after {result.n_iter} rounds with a gap of "
                f"{result.gap:.3g}, above tol={self.tol}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if not result.W.any():
            what = (
                "the best metric"
                if result.converged
                else "the best metric found so far"
            )
            warnings.warn(
                f"{what} at C={self.C} is zero, under which all items are equally near. Use a "
                "larger C, or a prior.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _store(self, result: SolverResult, dtype: Any) -> LinearMetric:
        self.objective_ = result.objective
        self.gap_ = result.gap
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        components = self._cone.components(result.W)[: self.n_components] / self.scale_
        parameters = {
            "method": type(self).__name__,
            "measure": self.measure,
            "C": float(self.C),
        }
        return LinearMetric(components.astype(dtype), parameters=parameters)


def _log_round(row: dict[str, float]) -> None:
    logger.info(
        "gap %.4f after %.1f s, %d constraints",
        row["gap"],
        row["seconds"],
        row["n_constraints"],
    )


def _mahalanobis_matrix(prior: Any, d: int) -> np.ndarray:
    """A prior as an array, or the error that says what is wrong with it."""
    W = np.asarray(prior, dtype=float)
    if W.shape != (d, d):
        raise ValueError(
            f"prior must be a matrix of size {d} x {d}: got shape {W.shape}."
        )
    if not np.isfinite(W).all() or not np.allclose(W, W.T):
        raise ValueError("prior must be finite and symmetric: pass (W + W.T) / 2.")
    least, largest = np.linalg.eigvalsh(W)[[0, -1]]
    if least < -1e-8 * max(largest, 0):
        raise ValueError(
            f"prior must be positive semi-definite: its smallest eigenvalue is {least:.3g}. Pass "
            "its projection, or get_mahalanobis_matrix() of a fitted estimator."
        )
    return W


def check_oracle(measure: str) -> None:
    """Raise unless there is an oracle for a measure."""
    parse_measure(measure)
    check_choice(measure.split("@")[0], "measure", ORACLE_MEASURES)


def best_multiple(find_plane: Callable[[np.ndarray], Plane], cone: Any) -> float:
    """The multiple of the identity with the smallest violation, which is convex in it."""
    from scipy.optimize import minimize_scalar

    def violation(log_c: float) -> float:
        W = np.exp(log_c) * cone.identity
        plane = find_plane(W)
        return plane.delta - float(np.sum(cone.restrict(plane.psi) * W))

    found = minimize_scalar(
        violation, bounds=(-5, 12), method="bounded", options={"maxiter": 25}
    )
    return float(np.exp(found.x))
