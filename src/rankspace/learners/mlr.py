"""Metric learning to rank: structural SVMs over rankings (McFee and Lanckriet, 2010)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_choice, check_components
from .._engine.files import PathLike
from .._engine.parallel.threads import single_threaded_blas
from ..evaluation.measures import parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from .base import logger
from .c_path import AUTO, choose_C
from .callbacks import CallbackFit
from .fit_data import WeightedFit
from .linear import LinearRanker
from .solvers.checkpoint import Checkpoint
from .solvers.cutting_plane.additive import AdditiveMeasure
from .solvers.cutting_plane.admm import Frobenius, PlaneProblem, Trace
from .solvers.cutting_plane.cones import BlockCone, DiagonalCone, PSDCone
from .solvers.cutting_plane.ranking_loss import Plane, RankingLoss, oracle_measures
from .solvers.cutting_plane.solver import (
    Callback,
    SolverResult,
    cutting_plane,
    sampled_cutting_plane,
)
from .solvers.cutting_plane.vote_loss import is_vote, loss_for
from .solvers.points import lazy_points
from .solvers.scaling import Scaling
from .standardising import chosen_scaling, scaling_card

CONES: dict[str, Any] = {
    "psd": PSDCone,
    "diagonal": DiagonalCone,
    "blocks": BlockCone,
}
# Parameters that a checkpoint may differ in: they change no round, only where the rounds end and
# how much of the solution is kept.
RESUMABLE = ("max_iter", "n_components")


class MLR(CallbackFit, WeightedFit, LinearRanker):
    """Metric learning to rank by a structural SVM over rankings.

    Learns the positive semi-definite matrix W that minimises ``tr(W) + C xi``. The slack xi is the
    mean over queries of the largest margin violation by any ranking, where the margin of a ranking
    is its loss under the chosen measure. A separation oracle finds the most violated rankings
    exactly, so the solution has a certificate: its objective is within ``C tol`` of the optimum.

    Parameters
    ----------
    C : float or "auto", default=1000.0
        Weight of the violations, as in the paper, on data divided by the root mean squared distance
        of two items. If it is too small, the optimum is the zero metric, and a warning is issued.
        "auto" chooses a power of ten, from 10 to 10^6, by the measure on held-out queries in 3-fold
        cross-validation, on 1,000 random items if there are more; with fewer than 10 queries to
        learn from it is 1000.
    measure : str or callable, default="map"
        Measure to optimise: ``auc``, ``p@k``, ``knn@k``, ``map``, ``mrr``, ``ndcg``, ``ndcg@k``,
        ``ndcg-mlr`` or ``ndcg-mlr@k``. NDCG is optimised in its binary form. A function gives any
        measure that is a sum over the relevant items: it takes the numbers P of relevant and N of
        irrelevant items of a list, and returns an array of shape (P, N + 1), where entry (i, g) is
        what the i-th relevant item adds with g irrelevant items above it. For class labels also
        ``knn-vote@k``: whether the class of the query has more of the first k items than any other.
    tol : float, default=0.01
        Stopping tolerance: stop when (upper bound - lower bound) / C is at most ``tol``.
    max_iter : int, default=200
        Maximum number of cutting-plane rounds. If the solver has not converged by then, a warning
        reports the gap.
    constraint : {"psd", "diagonal", "blocks"}, default="psd"
        All positive semi-definite matrices, one weight per feature, or one weight for each of
        several blocks of features, such as kernels or texts of different fields.
    blocks : array-like of shape (n_features,), optional
        Name or number of the block of each feature, with ``constraint="blocks"``.
    regularizer : {"trace", "frobenius"}, default="trace"
        tr(W), or half the squared Frobenius distance from the prior (from zero without one).
    prior : None, "identity" or array-like of shape (n_features, n_features), default=None
        Matrix to regularise towards, with ``regularizer="frobenius"``. "identity" is the identity
        times a factor fitted to the training queries; an array is a Mahalanobis matrix on the
        unscaled data.
    scaling : {"auto", "standard"} or None, default="auto"
        Whether features are standardised before learning. "auto" does so for dense ``X`` if the
        largest standard deviation of a feature is more than 100 times the median one. The metric
        is one for ``X`` as it is, in any case.
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
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_components, n_features)
        L with ``W = L'L``, for unscaled data.
    C_ : float
        The C used.
    C_scores_ : dict of float
        With ``C="auto"``, the held-out score of each value tried.
    objective_ : float
        Objective of the solution on scaled data, before it is reduced to ``n_components``; with
        ``batch_size``, the objective on the last batch.
    gap_ : float
        (Upper - lower bound) / C; with ``batch_size``, violation minus slack of the last batch.
    n_iter_ : int
        Number of rounds.
    history_ : list of dict
        For each round: bounds, violation, slack, number of constraints, inner iterations, seconds.
    scale_ : float or ndarray of shape (n_features,)
        What the data were divided by: a number, or one for each feature if standardised.
    scaling_ : {"standard", "none"}
        Whether features were standardised.
    block_weights_ : dict
        Weight of each block in squared distances, on unscaled data; with ``constraint="blocks"``.

    Notes
    -----
    Each round is logged to the logger ``rankspace`` at level INFO, and reported to the callbacks of
    scikit-learn 1.9 (``set_callbacks``), which may stop the fit; then there is no warning of a gap.

    A round costs two products of n_queries x n_items x n_features and a sort of the items for each
    query; each inner iteration costs an eigenvalue decomposition of size n_features. Memory is
    O(n_items n_features + rounds n_features^2) in addition to ``max_memory``. Above 512
    features the last digits depend on the number of BLAS threads.

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

    # With many features, eigenvalue decompositions take most of the time.
    _takes_blas_threads = True

    def __init__(
        self,
        C: float | str = 1000.0,
        *,
        measure: str | AdditiveMeasure = "map",
        tol: float = 0.01,
        max_iter: int = 200,
        constraint: str = "psd",
        blocks: Any = None,
        regularizer: str = "trace",
        prior: Any = None,
        scaling: str | None = "auto",
        batch_size: int | None = None,
        n_components: int | None = None,
        max_memory: int = 512,
        checkpoint: PathLike | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.measure = measure
        self.tol = tol
        self.max_iter = max_iter
        self.constraint = constraint
        self.blocks = blocks
        self.regularizer = regularizer
        self.prior = prior
        self.scaling = scaling
        self.batch_size = batch_size
        self.n_components = n_components
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        self._check_params()
        check_components(self.n_components, X.shape[1])
        self._warn_of_grades(relevance)
        checkpoint = Checkpoint.of(self, X, relevance, queries, ignored=RESUMABLE)
        scaling = self._scaling(X)
        points = lazy_points(X, relevance, queries, scaling)
        all_queries = np.arange(relevance.n_queries)
        loss = loss_for(points, relevance, self.measure, all_queries, self.max_memory)
        # For the small products of the inner solver, starting threads costs more than it saves.
        limit = single_threaded_blas() if X.shape[1] <= 512 else nullcontext()
        with limit, checkpoint.named_in_errors():
            start = self._choose_C(scaling.kind, X, relevance, queries)
            problem = self._metric_problem(loss, scaling.divisor)
            if start is not None:
                problem.start = start
            result = self._solve(
                problem,
                checkpoint,
                self._callback(problem.cone, scaling.divisor, X.dtype),
            )
        self._warn(result)
        self.scale_ = scaling.divisor
        return self._store(result, problem.cone, X.dtype)

    def _scaling(self, X: np.ndarray) -> Scaling:
        """The scaling of items; features of a block share a weight, so they keep their units."""
        fixed = "with constraint='blocks'" if self.constraint == "blocks" else None
        return chosen_scaling(self, X, fixed=fixed)

    def _warn_of_grades(self, relevance: Relevance) -> None:
        """Warn if grades differ under NDCG, which is optimised in its binary form."""
        n_grades = np.unique(relevance.positive_grades[1]).size
        if str(self.measure).startswith("ndcg") and n_grades > 1:
            logger.warning(
                "%s optimises the binary form of %s: all grades of at least %g count the same.",
                type(self).__name__,
                self.measure,
                relevance.min_relevant_grade,
            )

    def _choose_C(
        self, kind: str, X: np.ndarray, relevance: Relevance, queries: Any
    ) -> np.ndarray | None:
        """Set ``C_``: what is given, or what ranks held-out queries best; returns a start then."""
        if not isinstance(self.C, str):
            self.C_ = float(self.C)
            return None
        choice = choose_C(self, kind, X, relevance, queries)
        self.C_ = choice.C
        self.C_scores_ = choice.scores
        return choice.start

    def _check_params(self) -> None:
        if isinstance(self.C, str):
            check_choice(self.C, "C", (AUTO,))
        else:
            check_scalar(self.C, "C", Real, min_val=0, include_boundaries="neither")
        check_solver_params(self)
        if self.C == AUTO and (callable(self.measure) or is_vote(self.measure)):
            raise ValueError(
                f"C='auto' needs a measure of rankings by name: got measure={self.measure!r}. Use "
                "MLRCV(scoring='map'), or pass a number."
            )
        if self.batch_size is not None:
            check_scalar(self.batch_size, "batch_size", Integral, min_val=1)
        check_choice(self.constraint, "constraint", CONES)

    # ------------------------------------------------------------------ solving

    def _metric_problem(self, loss: RankingLoss, scale: Any) -> MetricProblem:
        cone = self._cone(loss.X.shape[1])
        return MetricProblem(loss, scale, cone, self.regularizer, self.prior)

    def _cone(self, n_features: int) -> Any:
        if self.constraint == "blocks":
            return BlockCone(_block_numbers(self.blocks, n_features)[1])
        if self.blocks is not None:
            raise ValueError(
                f"blocks needs constraint='blocks': got constraint={self.constraint!r}."
            )
        return CONES[self.constraint](n_features)

    def _plane_problem(self, problem: MetricProblem, C: float) -> PlaneProblem:
        return PlaneProblem(problem.cone, problem.regularizer, C)

    def _most_rounds(self) -> int | None:
        most: Any = self.max_iter
        return int(most) if isinstance(most, Integral) else None

    def _callback(self, cone: Any, scale: Any, dtype: Any) -> Callback:
        """Log each round, and report it to the callbacks of scikit-learn."""

        def at_round(row: dict[str, float], W: np.ndarray) -> bool:
            logger.info(
                "gap %(gap).4f after %(seconds).1f s, %(n_constraints)d constraints",
                row,
            )
            return self._rounds.report(lambda: self._attributes(W, cone, scale, dtype))

        return at_round

    def _attributes(
        self, W: np.ndarray, cone: Any, scale: Any, dtype: Any
    ) -> dict[str, Any]:
        """What a fit that ended at W would have learned."""
        components = cone.components(W)[: self.n_components] / scale
        metric = LinearMetric(components.astype(dtype), parameters=self._card())
        return {
            "metric_": metric,
            "components_": metric.components,
            "_n_features_out": len(metric.components),
        }

    def _card(self) -> dict[str, Any]:
        return {
            "method": type(self).__name__,
            "measure": getattr(self.measure, "__name__", str(self.measure)),
            "C": self.C_,
            **scaling_card(self),
        }

    def _solve(
        self, problem: MetricProblem, checkpoint: Checkpoint, callback: Callback
    ) -> SolverResult:
        planes = self._plane_problem(problem, self.C_)
        options: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "checkpoint": checkpoint,
            "callback": callback,
        }
        if self.batch_size is None or self.batch_size >= problem.loss.queries.size:
            return cutting_plane(problem.plane, planes, problem.start, **options)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        batches = _Batches(problem, self.batch_size)
        return sampled_cutting_plane(
            batches.plane, planes, problem.start, seed=seed, **options
        )

    # ------------------------------------------------------------------ the solution

    def _warn(self, result: SolverResult) -> None:
        has_gap = np.isfinite(result.history[-1]["upper"])
        if not result.converged and has_gap and not self._rounds.stopped:
            warnings.warn(
                f"{type(self).__name__} stopped after {result.n_iter} rounds with a gap of "
                f"{result.gap:.3g}, above tol={self.tol}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if not result.W.any():
            metric = "the best metric"
            if not result.converged:
                metric = "the best metric found so far"
            warnings.warn(
                f"{metric} at C={self.C_} is zero, so all items have the same distance. Use a "
                "larger C, or a prior.",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _store(self, result: SolverResult, cone: Any, dtype: Any) -> LinearMetric:
        self.objective_ = result.objective
        self.gap_ = result.gap
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        if self.constraint == "blocks":
            names, _ = _block_numbers(self.blocks, len(cone.blocks))
            with np.errstate(over="ignore"):
                # Of very small numbers they are infinite; the metric itself is not.
                weights = cone.weights(result.W) / self.scale_ / self.scale_
            self.block_weights_ = dict(
                zip(names.tolist(), weights.tolist(), strict=True)
            )
        components = cone.components(result.W)[: self.n_components] / self.scale_
        return LinearMetric(components.astype(dtype), parameters=self._card())


class MetricProblem:
    """The convex problem of MLR on scaled data: cone, regulariser, start and separation oracle."""

    def __init__(
        self,
        loss: RankingLoss,
        scale: Any,
        cone: Any = None,
        regularizer: str = "trace",
        prior: Any = None,
    ) -> None:
        self.loss = loss
        self.cone = PSDCone(loss.X.shape[1]) if cone is None else cone
        self.regularizer: Any = Trace(self.cone)
        self.start = 0 * self.cone.identity
        if regularizer == "frobenius":
            matrix = self._prior_matrix(prior, scale)
            self.regularizer = Frobenius(self.cone, matrix)
            self.start = self.cone.project(matrix)

    def plane(self, W: np.ndarray, queries: np.ndarray | None = None) -> Plane:
        """The plane of the most violated rankings at W."""
        return self.loss.plane(self.cone.components(W), queries)

    def _prior_matrix(self, prior: Any, scale: Any) -> np.ndarray:
        identity = self.cone.identity
        if prior is None:
            return 0 * identity
        if isinstance(prior, str):
            check_choice(prior, "prior", ("identity",))
            return best_multiple(self.plane, self.cone) * identity
        matrix = _mahalanobis_matrix(prior, self.loss.X.shape[1])
        return self.cone.restrict(matrix * np.multiply.outer(scale, scale))


class _Batches:
    """Planes of random mini-batches of queries."""

    def __init__(self, problem: MetricProblem, size: int) -> None:
        self.problem = problem
        queries = problem.loss.queries
        self.queries = queries[problem.loss.relevance.weights[queries] > 0]
        self.size = min(size, self.queries.size)

    def plane(self, W: np.ndarray, random: np.random.Generator) -> Plane:
        """The plane at W of a random batch."""
        sample = random.choice(self.queries, self.size, replace=False)
        return self.problem.plane(W, np.sort(sample))


def _mahalanobis_matrix(prior: Any, d: int) -> np.ndarray:
    """Validate a prior: a finite, symmetric, positive semi-definite matrix."""
    W = np.asarray(prior, dtype=float)
    if W.shape != (d, d):
        raise ValueError(
            f"prior must be a matrix of shape ({d}, {d}): got shape {W.shape}."
        )
    if not np.isfinite(W).all() or not np.allclose(W, W.T):
        raise ValueError("prior must be finite and symmetric. Pass (W + W.T) / 2.")
    least, largest = np.linalg.eigvalsh(W)[[0, -1]]
    if least < -1e-8 * max(largest, 0):
        raise ValueError(
            f"prior must be positive semi-definite: its smallest eigenvalue is {least:.3g}. Pass "
            "its projection, or get_mahalanobis_matrix() of a fitted estimator."
        )
    return W


def _block_numbers(blocks: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The names of blocks, and the number of the block of each feature."""
    names = np.asarray(blocks)
    if blocks is None or names.shape != (n_features,):
        shape = "none" if blocks is None else f"shape {names.shape}"
        raise ValueError(
            f"constraint='blocks' needs blocks, the block of each of {n_features} features: got "
            f"{shape}."
        )
    return np.unique(names, return_inverse=True)


def check_solver_params(estimator: Any) -> None:
    """Raise an error unless the parameters that `MLR` and `MLRCV` share are valid."""
    check_scalar(estimator.tol, "tol", Real, min_val=0, include_boundaries="neither")
    for name in ("max_iter", "max_memory"):
        check_scalar(getattr(estimator, name), name, Integral, min_val=1)
    check_oracle(estimator.measure)
    check_choice(estimator.regularizer, "regularizer", ("trace", "frobenius"))
    if estimator.prior is not None and estimator.regularizer != "frobenius":
        raise ValueError(
            "prior requires regularizer='frobenius': got regularizer='trace'."
        )


def check_oracle(measure: Any) -> None:
    """Raise an error unless there is a separation oracle for a measure."""
    if not callable(measure) and not is_vote(measure):
        parse_measure(measure)
        check_choice(measure.split("@")[0], "measure", oracle_measures())


def best_multiple(find_plane: Callable[[np.ndarray], Plane], cone: Any) -> float:
    """The factor of the identity with the smallest violation, a convex function of the factor."""
    from scipy.optimize import minimize_scalar

    def violation(log_c: float) -> float:
        W = np.exp(log_c) * cone.identity
        plane = find_plane(W)
        return plane.delta - float(np.sum(cone.restrict(plane.psi) * W))

    result = minimize_scalar(
        violation, bounds=(-5, 12), method="bounded", options={"maxiter": 25}
    )
    return float(np.exp(result.x))
