"""MLR with C chosen by validation on held-out queries, along a warm-started path."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..evaluation.measures import parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split, hold_out, split_queries
from .c_path import follow_path
from .fit_data import ValidatedFit, validation_split
from .linear import LinearRanker
from .mlr import MLR, check_solver_params
from .solvers.cutting_plane.vote_loss import is_vote
from .standardising import chosen_scaling


class MLRCV(ValidatedFit, LinearRanker):
    """MLR with C chosen by validation on held-out queries, along a warm-started path.

    A fraction of the queries is held out for validation; held-out queries that are rows of ``X``
    are not used as items either. Planes do not depend on C, so each value of C starts with all
    planes of the one before. The best C (the smallest, if tied) is then refitted on all queries.

    Parameters
    ----------
    Cs : sequence of float, default=(10, 100, 1000, 10000, 100000)
        Values of C to try.
    measure : str or callable, default="map"
        Measure to optimise; see `MLR`.
    scoring : str, optional
        Measure by which C is chosen; ``measure`` by default, and required if that is a function.
    validation_fraction : float, default=0.2
        Fraction of the queries to hold out for validation, unless `fit` gets a validation set
        (``X_val``).
    regularizer, prior
        See `MLR`; the same for all values of C.
    scaling : {"auto", "standard"} or None, default="auto"
        Whether features are standardised before learning; see `MLR`.
    tol, max_iter, max_memory
        See `MLR`.
    random_state : int, RandomState or None, default=None
        Seed of the split.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray of shape (n_Cs,)
        Values of C that were tried, ascending.
    scores_ : ndarray of shape (n_Cs,)
        Validation score for each of ``Cs_``.
    metric_, components_, n_iter_, scaling_
        As for `MLR`, from ``model_``.
    model_ : MLR
        The model refitted on all queries with ``C_``.

    Notes
    -----
    Fitting costs as much as `MLR` at the chosen C, and the path, whose steps end at ten times
    ``tol``. ``MLR(C="auto")`` follows the same path over powers of ten, in cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import MLRCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MLRCV((10, 1000), measure="auc", random_state=0).fit(scale(X), y)
    >>> model.C_
    1000.0
    """

    def __init__(
        self,
        Cs: Any = (10, 100, 1000, 10000, 100000),
        *,
        measure: Any = "map",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        regularizer: str = "trace",
        prior: Any = None,
        scaling: str | None = "auto",
        tol: float = 0.01,
        max_iter: int = 200,
        max_memory: int = 512,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.measure = measure
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.regularizer = regularizer
        self.prior = prior
        self.scaling = scaling
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.random_state = random_state

    def _fit_metric(
        self,
        X: np.ndarray,
        relevance: Relevance,
        queries: np.ndarray | None,
        **validation: Any,
    ) -> LinearMetric:
        self.Cs_ = self._path()
        check_solver_params(self)
        if self.scoring is None and (callable(self.measure) or is_vote(self.measure)):
            raise ValueError(
                f"scoring must name a measure of rankings where measure is {self.measure!r}: got "
                "None. Pass for instance scoring='map'."
            )
        scoring = self.scoring or self.measure
        parse_measure(scoring)
        split = validation_split(self, (X, relevance, queries), **validation)
        Cs = self.Cs_.tolist()
        kind = chosen_scaling(self, X).kind
        split = split or self._split(X, relevance, queries)
        model = self._model(self.Cs_[0])
        path = follow_path(model, [split], kind, Cs, scoring)
        self.scores_ = np.array(path.scores)
        self.C_ = path.Cs[path.best(scoring)]
        self.model_ = self._model(self.C_).fit(X, relevance, queries=queries)
        self.n_iter_ = self.model_.n_iter_
        return self.model_.metric_

    def _path(self) -> np.ndarray:
        Cs = np.asarray(self.Cs, dtype=float)
        positive = (Cs > 0).all() and np.isfinite(Cs).all()
        if Cs.ndim != 1 or not Cs.size or not positive:
            raise ValueError(f"Cs must be a list of positive numbers: got {self.Cs!r}.")
        return np.sort(Cs)

    def _model(self, C: float) -> MLR:
        return MLR(
            C,
            measure=self.measure,
            tol=self.tol,
            max_iter=self.max_iter,
            regularizer=self.regularizer,
            prior=self.prior,
            scaling=self.scaling_,
            max_memory=self.max_memory,
        )

    def _split(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> Split:
        random = check_random_state(self.random_state)
        chosen = split_queries(relevance.n_queries, self.validation_fraction, random)
        return hold_out(X, relevance, queries, *chosen)
