"""MLR over a path of C, chosen on held-out queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..evaluation.measures import evaluate, parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import hold_out, split_queries
from ..search.index import Index
from .linear import LinearRanker
from .mlr import MLR
from .solvers.cutting_plane.admm import PlaneProblem
from .solvers.cutting_plane.cones import PSDCone
from .solvers.cutting_plane.ranking_loss import RankingLoss
from .solvers.cutting_plane.solver import cutting_plane
from .solvers.scaling import scale_data


class MLRCV(LinearRanker):
    """MLR whose C is chosen by a measure on held-out queries, along one warm-started path.

    A part of the queries is held out; rows that are held-out queries are no items either while the
    path is walked. Planes do not depend on C, so each step of the path starts with all planes of
    the one before. The best C, the smaller of equal ones, is then fitted on everything.

    Parameters
    ----------
    Cs : sequence of float, default=(10, 100, 1000, 10000, 100000)
        The path.
    measure : str, default="map"
        What is optimised; see `MLR`.
    scoring : str, optional
        What C is chosen by, any measure; ``measure`` by default.
    validation_fraction : float, default=0.2
        Share of the queries that is held out.
    regularizer, prior
        See `MLR`; the prior is regularised towards along the whole path.
    tol, max_iter, max_memory
        See `MLR`.
    random_state : int, RandomState or None, default=None
        Seed of the split.

    Attributes
    ----------
    C_ : float
        The chosen one.
    Cs_ : ndarray of shape (n_Cs,)
        The path, ascending.
    scores_ : ndarray of shape (n_Cs,)
        Value of ``scoring`` at each of ``Cs_``.
    metric_, components_, n_iter_
        As for `MLR`, of the model fitted on everything.
    model_ : MLR
        That model.

    Notes
    -----
    Costs about as much as `MLR` at the largest C, twice.

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
        measure: str = "map",
        scoring: str | None = None,
        validation_fraction: float = 0.2,
        regularizer: str = "trace",
        prior: Any = None,
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
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.random_state = random_state

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        self.Cs_ = self._path()
        self.model_ = self._model(self.Cs_[0])
        self.model_._check_params()
        larger_is_better = parse_measure(self.scoring or self.measure)[
            0
        ].larger_is_better
        self.scores_ = self._walk(X, relevance, queries)
        best = np.nanargmax(self.scores_ if larger_is_better else -self.scores_)
        self.C_ = float(self.Cs_[best])
        self.model_ = self._model(self.C_)
        metric = self.model_._fit_metric(X, relevance, queries)
        self.n_iter_ = self.model_.n_iter_
        return metric

    def _path(self) -> np.ndarray:
        Cs = np.asarray(self.Cs, dtype=float)
        if (
            Cs.ndim != 1
            or not Cs.size
            or not (Cs > 0).all()
            or not np.isfinite(Cs).all()
        ):
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
            max_memory=self.max_memory,
        )

    def _walk(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> np.ndarray:
        """Score of each C on the held-out queries."""
        split = hold_out(X, relevance, queries, *self._split(relevance))
        data = scale_data(split.X, split.relevance, split.queries)
        usable = np.flatnonzero(split.relevance.trainable)
        loss = RankingLoss(
            data.X, data.Q, split.relevance, self.measure, usable, self.max_memory
        )
        return self._score_path(loss, data.scale, split.X, split.points, split.judged)

    def _score_path(
        self,
        loss: RankingLoss,
        scale: float,
        items: np.ndarray,
        points: np.ndarray,
        judged: Relevance,
    ) -> np.ndarray:
        scoring, model = self.scoring or self.measure, self.model_
        cone = model._cone = PSDCone(items.shape[1])
        regularizer = model._regularizer(loss, scale)
        W, scores = model._first_point(regularizer), []
        problem = PlaneProblem(cone, regularizer, self.Cs_[0])
        for C in self.Cs_:
            problem.raise_cap(C)
            W = cutting_plane(
                model._plane(loss), problem, W, tol=self.tol, max_iter=self.max_iter
            ).W
            blocks = Index(items, LinearMetric(cone.components(W) / scale)).blocks(
                points
            )
            scores.append(evaluate(blocks, judged, scoring).means[scoring])
        return np.array(scores)

    def _split(self, relevance: Relevance) -> tuple[np.ndarray, np.ndarray]:
        random = check_random_state(self.random_state)
        return split_queries(relevance.n_queries, self.validation_fraction, random)
