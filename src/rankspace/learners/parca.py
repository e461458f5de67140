"""Pairwise ranking component analysis (Pessiot, Kim and Fujibuchi, 2013)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_choice
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split
from .base import logger
from .linear import LinearRanker
from .solvers.points import Scaling, scaled_points
from .solvers.smooth.components import (
    Descent,
    Loss,
    MapLoss,
    RidgedLoss,
    descend,
    multi_start,
    start_of,
)
from .solvers.smooth.minibatch import descend_in_batches, some_queries
from .solvers.smooth.validation import Trial, folds, try_setting
from .solvers.warp.starts import given_start

STARTS = ("lda", "pca", "random")
SOLVERS = ("auto", "lbfgs", "minibatch")
MOST_FOR_ALL_PAIRS = 20_000
RIDGES = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003, 0.00001)
USUAL_RIDGE = 0.003
WORSE_IN_A_ROW = 2  # ridges after which the search for the best one ends
TRIAL_STEPS = 100
FLAT = -1e-3  # the loss of a map to zero is 0


class ComponentLearner(LinearRanker):
    """What PARCA and its logistic form share: solvers, trials on held-out queries, the record."""

    _accepts_sparse = "csr"
    _unit = 1.0  # of the scaled data, in root mean squared distances of two items

    n_components: int
    solver: str
    tol: float
    max_iter: int
    batch_size: int
    random_state: Any

    def _problem(
        self, X: Any, relevance: Relevance, queries: Any
    ) -> tuple[MapLoss, float]:
        """The loss of scaled data, and their scale."""
        mean, distance = Scaling.of(X)
        scaling = Scaling(mean, distance * self._unit)
        points = scaled_points(X, relevance, queries, scaling)
        return MapLoss(points, relevance), scaling.scale

    def _in_batches(self, n_queries: int) -> bool:
        """Whether steps take some of the queries only."""
        return self.solver == "minibatch" or (
            self.solver == "auto" and n_queries > MOST_FOR_ALL_PAIRS
        )

    def _descend(
        self, loss: Loss, start: np.ndarray, n_queries: int, max_iter: int
    ) -> Descent:
        if not self._in_batches(n_queries):
            return descend(loss, start, tol=self.tol, max_iter=max_iter)
        return descend_in_batches(
            loss,
            start,
            n_queries,
            batch_size=self.batch_size,
            max_iter=max_iter,
            seed=self._seed,
        )

    def _trials(
        self, splits: list[Split], learn: Callable[[MapLoss, float], np.ndarray]
    ) -> Callable[[float], Trial]:
        """A function that tries a setting, given how components of scaled data are learned."""
        problems = [
            self._problem(split.X, split.relevance, split.queries) for split in splits
        ]

        def on_split(number: int, setting: float) -> np.ndarray:
            loss, scale = problems[number]
            return learn(loss, setting) / scale

        def trial(setting: float) -> Trial:
            found = try_setting(setting, splits, on_split)
            logger.info(
                "%s: ranking error %.4f at %g",
                type(self).__name__,
                found.error,
                setting,
            )
            return found

        return trial

    def _record(self, start: str, found: Descent, scale: float, n_queries: int) -> None:
        if not found.converged and not self._in_batches(n_queries):
            warnings.warn(
                f"{type(self).__name__} stopped after {self.max_iter} steps while its loss still "
                f"fell by more than tol={self.tol}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.start_, self.scale_ = start, scale
        self.loss_, self.history_, self.n_iter_ = (
            found.loss,
            found.losses,
            found.n_steps,
        )

    def _check_shared(self, n_features: int) -> None:
        check_scalar(self.n_components, "n_components", Integral, min_val=1)
        if self.n_components > n_features:
            raise ValueError(
                f"n_components must be at most the number of features, {n_features}: got "
                f"{self.n_components}."
            )
        check_choice(self.solver, "solver", SOLVERS)
        check_scalar(self.tol, "tol", Real, min_val=0)
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        check_scalar(self.batch_size, "batch_size", Integral, min_val=1)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))


class PARCA(ComponentLearner):
    """Pairwise ranking component analysis: few directions that rank, fit to be looked at.

    Minimises the log of ``F``, the mean over queries, relevant items j and irrelevant items k of
    ``exp(d_j - d_k)``, where d are squared distances after a linear map A to a few dimensions. Two
    of them make a picture in which near means relevant.

    Parameters
    ----------
    n_components : int, default=2
        Number of dimensions K.
    reg : float or "auto", default="auto"
        Weight of ``|A|_F^2``, on data divided by the root mean squared distance of two items.
        "auto" tries 0.1 down to 0.00001 on held-out queries and takes that of the least ranking
        error.
    init : {"auto", "lda", "pca", "random"} or array-like of shape (n_components, n_features)
        Where to start. "auto" (default) starts from all three and keeps the best.
    solver : {"auto", "lbfgs", "minibatch"}, default="auto"
        L-BFGS over all pairs, or stochastic steps over some of the queries and all items. "auto"
        takes the latter beyond 20,000 queries.
    tol : float, default=1e-6
        L-BFGS stops when a step lowers the loss by less than this, relative to it if it is above 1.
    max_iter : int, default=500
        Steps at most.
    batch_size : int, default=512
        Queries of a stochastic step.
    random_state : int, RandomState or None, default=None
        Seed of random starts, held-out queries and stochastic steps.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_components, n_features)
        The map A, on the data as given.
    reg_ : float
        The ridge used.
    path_ : list of Trial
        For ``reg="auto"`` each ridge tried, with the mean ranking error of held-out queries and
        its standard error.
    start_ : str
        The start that was best.
    loss_ : float
        The loss at the end, the ridge included; an estimate with stochastic steps.
    history_ : list of float
        The loss after each step, or a running mean of it after every tenth stochastic step.
    n_iter_ : int
        Steps.
    scale_ : float
        Root mean squared distance of two items.

    Notes
    -----
    A step costs O(n_queries n_items K) for the pairs, in blocks of bounded memory, and two
    products with ``X``, which may be sparse and is never made dense. The paper's F has no minimum
    where classes can be collapsed, as always if there are fewer items than features; nor has log F
    with a ridge, if it is small. So ``log (F + 1e-6)`` is minimised.

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
        self.reg_, self.path_ = self._choose_ridge(X, relevance, queries)
        loss, scale = self._problem(X, relevance, queries)
        ridged = RidgedLoss(loss, self.reg_)
        start, found = multi_start(
            self._starts(ridged, scale),
            lambda start, max_iter: self._descend(
                ridged, start, relevance.n_queries, max_iter
            ),
            self.max_iter,
        )
        self._record(start, found, scale, relevance.n_queries)
        if found.loss > FLAT:
            warnings.warn(
                f"PARCA found nothing better than mapping all points to one: its loss is "
                f"{found.loss:.2g}, that of the zero map 0. Lower reg={self.reg_:g}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        components = (found.parameters / scale).astype(X.dtype)
        return LinearMetric(
            components, parameters={"method": "PARCA", "reg": self.reg_}
        )

    def _starts(self, ridged: RidgedLoss, scale: float) -> dict[str, np.ndarray]:
        """Maps to start from, by name."""
        loss, m = ridged.loss, self.n_components
        if not isinstance(self.init, str):
            return {
                "given": given_start(self.init, m, loss.points.matrix.shape[1]) * scale
            }
        names = STARTS if self.init == "auto" else (self.init,)
        starts = {
            name: start_of(name, loss.points, loss.relevance, m, self._seed)
            for name in names
        }
        return {
            name: self._at_best_length(ridged, start) for name, start in starts.items()
        }

    def _at_best_length(self, ridged: RidgedLoss, directions: np.ndarray) -> np.ndarray:
        """The length of a start; with stochastic steps some of the queries choose it."""
        n, queries = ridged.loss.relevance.n_queries, None
        if self._in_batches(n):
            queries = some_queries(n, np.random.default_rng(self._seed))
        return ridged.at_best_length(directions, queries)

    def _choose_ridge(
        self, X: Any, relevance: Relevance, queries: Any
    ) -> tuple[float, list[Trial]]:
        """The ridge given, or that of the least ranking error of held-out queries."""
        if not isinstance(self.reg, str):
            return float(self.reg), []
        splits = folds(X, relevance, queries, self._seed)
        if not splits:
            logger.warning("reg=%g: too few queries to hold any out.", USUAL_RIDGE)
            return USUAL_RIDGE, []
        trial, path = self._trials(splits, self._try_ridge), []
        for ridge in RIDGES:
            path.append(trial(ridge))
            best = min(path, key=lambda found: found.error)
            if (
                np.isfinite(best.error)
                and len(path) - 1 - path.index(best) >= WORSE_IN_A_ROW
            ):
                break
        return best.setting, path

    def _try_ridge(self, loss: MapLoss, ridge: float) -> np.ndarray:
        ridged = RidgedLoss(loss, ridge)
        directions = start_of(
            "pca", loss.points, loss.relevance, self.n_components, self._seed
        )
        start, n = self._at_best_length(ridged, directions), loss.relevance.n_queries
        found = self._descend(ridged, start, n, min(TRIAL_STEPS, self.max_iter))
        return np.zeros_like(start) if found.loss > FLAT else found.parameters

    def _check_params(self, n_features: int) -> None:
        self._check_shared(n_features)
        if isinstance(self.reg, str):
            check_choice(self.reg, "reg", ("auto",))
        else:
            check_scalar(self.reg, "reg", Real, min_val=0)
        if isinstance(self.init, str):
            check_choice(self.init, "init", ("auto", *STARTS))
