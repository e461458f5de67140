"""MLR with C chosen by validation on held-out queries, along a warm-started path."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..evaluation.measures import evaluate, parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split, hold_out, split_queries
from ..search.index import Index
from .fit_data import ValidatedFit, validation_split
from .linear import LinearRanker
from .mlr import MLR, MetricProblem, check_solver_params
from .solvers.cutting_plane.admm import PlaneProblem
from .solvers.cutting_plane.solver import cutting_plane
from .solvers.cutting_plane.vote_loss import is_vote, loss_for
from .solvers.points import scaled_points
from .solvers.scaling import Scaling
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
    Fitting costs about twice as much as `MLR` at the largest C.

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
        measure, _ = parse_measure(self.scoring or self.measure)
        split = validation_split(self, (X, relevance, queries), **validation)
        chosen_scaling(self, X)
        self.scores_ = self._score_path(split or self._split(X, relevance, queries))
        sign = 1 if measure.larger_is_better else -1
        best = np.nanargmax(sign * self.scores_)
        self.C_ = float(self.Cs_[best])
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

    def _score_path(self, split: Split) -> np.ndarray:
        """Validation score of each C; each solver is warm-started from the one before."""
        scaling = Scaling.of(split.X, kind=self.scaling_)
        points = scaled_points(split.X, split.relevance, split.queries, scaling)
        usable = np.flatnonzero(split.relevance.trainable)
        loss = loss_for(points, split.relevance, self.measure, usable, self.max_memory)
        problem = MetricProblem(
            loss, scaling.divisor, regularizer=self.regularizer, prior=self.prior
        )
        planes = PlaneProblem(problem.cone, problem.regularizer, self.Cs_[0])
        W = problem.start
        scores = []
        for C in self.Cs_:
            planes.raise_C(C)
            W = cutting_plane(
                problem.plane, planes, W, tol=self.tol, max_iter=self.max_iter
            ).W
            metric = LinearMetric(problem.cone.components(W) / scaling.divisor)
            scores.append(self._score_split(split, metric))
        return np.array(scores)

    def _score_split(self, split: Split, metric: LinearMetric) -> float:
        scoring = self.scoring or self.measure
        corpus = split.X if split.corpus is None else split.corpus
        blocks = Index(corpus, metric).blocks(split.points)
        return evaluate(blocks, split.judged, scoring).means[scoring]
