"""Pairwise ranking component analysis (Pessiot, Kim and Fujibuchi, 2013)."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_choice, check_components
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split, cross_validation_splits
from .base import logger
from .fit_data import WeightedFit
from .linear import LinearRanker
from .solvers.points import scaled_points
from .solvers.scaling import Scaling
from .solvers.smooth.components import (
    Loss,
    MapLoss,
    RegularizedLoss,
    multi_start,
    start_of,
)
from .solvers.smooth.cross_validation import CrossValidated, ranking_errors
from .solvers.smooth.lbfgs import Minimum, minimize_lbfgs
from .solvers.smooth.minibatch import minimize_adam, sample_queries
from .solvers.warp.starts import given_start

STARTS = ("lda", "pca", "random")
SOLVERS = ("auto", "lbfgs", "minibatch")
MAX_FULL_BATCH = 20_000  # queries, beyond which "auto" takes batches
LBFGS_MEMORY = 20
REGS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003, 0.00001)
DEFAULT_REG = 0.003
PATIENCE = 2  # worse regs in a row that end the search for the best one
MAX_TRIAL_STEPS = 100  # of a setting that is cross-validated
# Tolerance of trials, and of the first steps from several starts: closer ones find the same regs.
TRIAL_TOL = 3e-3
ZERO_LOSS = -1e-3  # losses above this are no better than that of the zero map, 0


class TrialFold:
    """A fold of the cross-validation of a setting.

    Parameters
    ----------
    split : Split
        Training and held-out queries.
    loss : MapLoss
        The loss of the scaled training data.
    scale : float
        Their scale.
    """

    def __init__(self, split: Split, loss: MapLoss, scale: float) -> None:
        self.split = split
        self.loss = loss
        self.scale = scale
        self.directions: np.ndarray | None = None  # of the start, found once
        self.last: Minimum | None = None  # where the next search starts


def _minimize_closely(
    function: Any, start: np.ndarray, tol: float, **options: Any
) -> Minimum:
    """L-BFGS with a tenth of the tolerance: a backtracking step gains less than one of SciPy's."""
    return minimize_lbfgs(function, start, tol=tol / 10, **options)


class ComponentLearner(WeightedFit, LinearRanker):
    """Base class of PARCA and LogisticPARCA: solvers and cross-validation of a setting."""

    _accepts_sparse = "csr"
    _minimizer: Any = staticmethod(_minimize_closely)
    _loose_tol = 0.0  # of the first steps from several starts
    _unit = 1.0  # of the scaled data, in root mean squared distances of two items

    n_components: int
    solver: str
    tol: float
    max_iter: int
    batch_size: int
    random_state: Any

    def _scaled_loss(
        self, X: Any, relevance: Relevance, queries: Any
    ) -> tuple[MapLoss, float]:
        """The loss of scaled data, and their scale."""
        scaling = Scaling.of(X, rounded=True)
        scaling = scaling._replace(scale=scaling.scale * self._unit)
        points = scaled_points(X, relevance, queries, scaling)
        return MapLoss(points, relevance), scaling.scale

    def _uses_batches(self, n_queries: int) -> bool:
        if self.solver == "auto":
            return n_queries > MAX_FULL_BATCH
        return self.solver == "minibatch"

    def _minimize(
        self,
        loss: Loss,
        start: np.ndarray,
        n_queries: int,
        max_iter: int,
        **options: Any,
    ) -> Minimum:
        if self._uses_batches(n_queries):
            return minimize_adam(
                loss,
                start,
                n_queries,
                batch_size=self.batch_size,
                max_iter=max_iter,
                seed=self._seed,
            )
        options = {"tol": self.tol, "memory": LBFGS_MEMORY, **options}
        return self._minimizer(
            loss.value_and_gradient, start, max_iter=max_iter, **options
        )

    def _multi_start(
        self, loss: Loss, starts: dict[str, np.ndarray], n_queries: int
    ) -> Minimum:
        """Minimise from several starts, and record how it went."""

        def run(start: np.ndarray, max_iter: int, **options: Any) -> Minimum:
            return self._minimize(loss, start, n_queries, max_iter, **options)

        first_tol = max(self.tol, self._loose_tol)
        self.start_, minimum = multi_start(starts, run, self.max_iter, first_tol)
        self.loss_ = minimum.loss
        self.history_ = minimum.losses
        self.n_iter_ = minimum.n_steps
        if not minimum.converged and not self._uses_batches(n_queries):
            warnings.warn(
                f"{type(self).__name__} stopped after {self.max_iter} steps while its loss still "
                f"fell by more than tol={self.tol}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return minimum

    def _folds(self, X: Any, relevance: Relevance, queries: Any) -> list[TrialFold]:
        """Folds for cross-validation with their losses; none if there are too few queries."""
        folds = []
        for split in cross_validation_splits(X, relevance, queries, self._seed):
            problem = self._scaled_loss(split.X, split.relevance, split.queries)
            folds.append(TrialFold(split, *problem))
        return folds

    def _cross_validate(self, setting: float, folds: list[TrialFold]) -> CrossValidated:
        """Cross-validated ranking error of a setting."""
        errors = []
        for fold in folds:
            components = self._trial_components(fold, setting) / fold.scale
            errors.append(ranking_errors(fold.split, components))
            # One fold without a map rules a setting out.
            if not np.isfinite(errors[-1]).all():
                break
        result = CrossValidated.from_errors(setting, errors)
        name = type(self).__name__
        logger.info("%s: ranking error %.4f at %g", name, result.error, setting)
        return result

    def _trial_components(self, fold: TrialFold, setting: float) -> np.ndarray:
        """Components of scaled data learned with a setting, in few steps."""
        raise NotImplementedError

    def _check_shared(self, n_features: int) -> None:
        check_components(self.n_components, n_features)
        check_choice(self.solver, "solver", SOLVERS)
        check_scalar(self.tol, "tol", Real, min_val=0)
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.batch_size, "batch_size", Integral, min_val=1)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))


class PARCA(ComponentLearner):
    """Pairwise ranking component analysis: dimensionality reduction for ranking.

    Minimises the log of ``F``, the mean over queries, relevant items j and irrelevant items k of
    ``exp(d_j - d_k)``, where d are squared distances after a linear map A to a few dimensions. With
    two dimensions, it draws a picture in which near means relevant.

    Parameters
    ----------
    n_components : int, default=2
        Number of dimensions K.
    reg : float or "auto", default="auto"
        Weight of ``|A|_F^2``, on data divided by the root mean squared distance of two items.
        "auto" tries 0.1 down to 0.00001 and takes that of the lowest cross-validated ranking error.
    init : {"auto", "lda", "pca", "random"} or array-like of shape (n_components, n_features)
        Initial map. "auto" (default) starts from all three and keeps the best.
    solver : {"auto", "lbfgs", "minibatch"}, default="auto"
        L-BFGS over all pairs, or stochastic steps over some of the queries and all items. "auto"
        takes the latter beyond 20,000 queries.
    tol : float, default=1e-6
        L-BFGS stops when two steps in a row lower the loss by less than this, relative to the loss
        if that is above 1.
    max_iter : int, default=500
        Maximum number of steps.
    batch_size : int, default=512
        Queries of a stochastic step.
    random_state : int, RandomState or None, default=None
        Seed of random starts, held-out queries and stochastic steps.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_components, n_features)
        The map A, for unscaled data.
    reg_ : float
        The regularisation used.
    path_ : list of CrossValidated
        For ``reg="auto"`` each ``setting`` tried, with the mean ranking ``error`` of held-out
        queries and its ``standard_error``.
    start_ : str
        The best start.
    loss_ : float
        The final loss, regularisation included; an estimate with stochastic steps.
    history_ : list of float
        The loss after each step, or a running mean of it after every tenth stochastic step.
    n_iter_ : int
        Number of steps.
    scale_ : float
        Root mean squared distance of two items.

    Notes
    -----
    A step costs O(n_queries n_items K) for the pairs, in blocks of bounded memory, and two
    products with ``X``, which may be sparse and is never made dense. The paper's F has no minimum
    where classes can be collapsed, as always if there are fewer items than features; nor has log F
    with little regularisation. So ``log (F + 1e-6)`` is minimised.

    References
    ----------
    J.-F. Pessiot, H. Kim and W. Fujibuchi, Pairwise ranking component analysis, Knowledge and
    Information Systems, 2013.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import PARCA
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PARCA(2, random_state=0).fit(scale(X), y)
    >>> model.transform(scale(X)).shape, bool(model.score(scale(X), y) > 0.96)
    ((178, 2), True)
    """

    _loose_tol = TRIAL_TOL

    def __init__(
        self,
        n_components: int = 2,
        *,
        reg: float | str = "auto",
        init: Any = "auto",
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        batch_size: int = 512,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.reg = reg
        self.init = init
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.random_state = random_state

    def _fit_metric(self, X: Any, relevance: Relevance, queries: Any) -> LinearMetric:
        self._check_params(X.shape[1])
        self.reg_ = self._choose_reg(X, relevance, queries)
        loss, self.scale_ = self._scaled_loss(X, relevance, queries)
        regularized = RegularizedLoss(loss, self.reg_)
        starts = self._starts(regularized)
        minimum = self._multi_start(regularized, starts, relevance.n_queries)
        if minimum.loss > ZERO_LOSS:
            warnings.warn(
                f"PARCA found nothing better than mapping all points to one: its loss is "
                f"{minimum.loss:.2g}, that of the zero map 0. Lower reg={self.reg_:g}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        components = (minimum.parameters / self.scale_).astype(X.dtype)
        parameters = {"method": "PARCA", "reg": self.reg_}
        return LinearMetric(components, parameters=parameters)

    def _starts(self, loss: RegularizedLoss) -> dict[str, np.ndarray]:
        """Maps to start from, by name."""
        if not isinstance(self.init, str):
            n_features = loss.loss.points.matrix.shape[1]
            start = given_start(self.init, self.n_components, n_features)
            return {"given": start * self.scale_}
        names = STARTS if self.init == "auto" else (self.init,)
        return {name: self._start(name, loss) for name in names}

    def _start(self, name: str, loss: RegularizedLoss) -> np.ndarray:
        """A start at the length of the lowest loss."""
        return self._rescale(self._directions(name, loss.loss), loss)

    def _directions(self, name: str, loss: MapLoss) -> np.ndarray:
        """Directions of a start."""
        return start_of(
            name, loss.points, loss.relevance, self.n_components, self._seed
        )

    def _rescale(self, directions: np.ndarray, loss: RegularizedLoss) -> np.ndarray:
        """Directions at the length of the lowest loss; with batches, of a sample of the queries."""
        n_queries = loss.loss.relevance.n_queries
        queries = None
        if self._uses_batches(n_queries):
            random = np.random.default_rng(self._seed)
            queries = sample_queries(n_queries, random)
        return loss.rescale_start(directions, queries)

    def _choose_reg(self, X: Any, relevance: Relevance, queries: Any) -> float:
        """The given reg, or that of the lowest cross-validated ranking error."""
        self.path_: list[CrossValidated] = []
        if not isinstance(self.reg, str):
            return float(self.reg)
        folds = self._folds(X, relevance, queries)
        if not folds:
            logger.warning("reg=%g: too few queries to hold any out.", DEFAULT_REG)
            return DEFAULT_REG
        for reg in REGS:
            self.path_.append(self._cross_validate(reg, folds))
            errors = [result.error for result in self.path_]
            best = int(np.argmin(errors))
            n_worse = len(errors) - 1 - best
            if np.isfinite(errors[best]) and n_worse >= PATIENCE:
                break
        return self.path_[best].setting

    def _trial_components(self, fold: TrialFold, setting: float) -> np.ndarray:
        """Components at a reg, searched for from those at the last, larger one."""
        loss = RegularizedLoss(fold.loss, setting)
        if fold.directions is None:
            fold.directions = self._directions("pca", fold.loss)
        last = fold.last
        if last is None:
            last = Minimum(self._rescale(fold.directions, loss), 0.0, [], False, 0)
        max_iter = min(MAX_TRIAL_STEPS, self.max_iter)
        n_queries = fold.loss.relevance.n_queries
        options = {"tol": max(self.tol, TRIAL_TOL), "history": last.history}
        minimum = self._minimize(loss, last.parameters, n_queries, max_iter, **options)
        fold.last = minimum
        # From the zero map no search finds a way out.
        if minimum.loss > ZERO_LOSS:
            fold.last = None
            return np.zeros_like(minimum.parameters)
        return minimum.parameters

    def _check_params(self, n_features: int) -> None:
        self._check_shared(n_features)
        if isinstance(self.reg, str):
            check_choice(self.reg, "reg", ("auto",))
        else:
            check_scalar(self.reg, "reg", Real, min_val=0)
        if isinstance(self.init, str):
            check_choice(self.init, "init", ("auto", *STARTS))
