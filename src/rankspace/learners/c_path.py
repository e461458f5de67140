"""Choosing C of MLR: a warm-started path of values, judged on held-out queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._engine.parallel import use_backend
from ..evaluation.measures import evaluate, parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split, choice_folds, sample_data
from ..search.index import Index
from .solvers.cutting_plane.solver import cutting_plane
from .solvers.cutting_plane.vote_loss import loss_for
from .solvers.points import scaled_points
from .solvers.scaling import Scaling

AUTO = "auto"
DEFAULT_C = 1000.0  # where nothing can be held out
CS = (1e1, 1e2, 1e3, 1e4, 1e5, 1e6)
MAX_ITEMS = 1000  # items, and queries, that C is chosen on
SEED = 0  # of the folds, so that equal data give equal metrics
# Steps of the path end at a gap so many times `tol`: their ranking is nearly that of the optimum,
# at a tenth of its cost.
LOOSE = 10.0
# A larger C must gain so much: it costs more, and means of held-out queries err by more than that.
LEAST_GAIN = 0.003


class Path(NamedTuple):
    """Values of C that were tried, the mean score of each, and its solution on one split."""

    Cs: list[float]
    scores: list[float]
    solutions: list[np.ndarray]

    def best(self, scoring: str, *, least_gain: float = 0.0) -> int:
        """Number of the smallest C whose score is within a gain of the best one."""
        signed = _sign(scoring) * np.array(self.scores)
        return int(np.flatnonzero(signed >= np.nanmax(signed) - least_gain)[0])


def follow_path(
    learner: Any,
    splits: Sequence[Split],
    kind: str,
    Cs: Sequence[float],
    scoring: str,
    *,
    least_gain: float | None = None,
) -> Path:
    """Score each C, in ascending order, on the held-out queries of some splits.

    ``learner`` is an `MLR`, and ``kind`` how its features are scaled. With ``least_gain`` the path
    ends where a larger C gains less than that, unless the metric is still zero.
    """
    steps = [_steps(learner, split, kind, Cs, scoring) for split in splits]
    path = Path([], [], [])
    for C in Cs:
        results = [next(each) for each in steps]
        score = float(np.mean([score for score, _ in results]))
        gain = np.inf
        if path.scores and path.solutions[-1].any():
            gain = _sign(scoring) * (score - path.scores[-1])
        path.Cs.append(C)
        path.scores.append(score)
        path.solutions.append(results[-1][1])
        if least_gain is not None and gain < least_gain:
            break
    return path


def _sign(scoring: str) -> int:
    return 1 if parse_measure(scoring)[0].larger_is_better else -1


def _steps(
    learner: Any, split: Split, kind: str, Cs: Sequence[float], scoring: str
) -> Iterator[tuple[float, np.ndarray]]:
    """Held-out score of each C, and the solution; each starts with all planes so far."""
    scaling = Scaling.of(split.X, kind=kind)
    points = scaled_points(split.X, split.relevance, split.queries, scaling)
    usable = np.flatnonzero(split.relevance.trainable)
    measure, memory = learner.measure, learner.max_memory
    loss = loss_for(points, split.relevance, measure, usable, memory)
    problem = learner._metric_problem(loss, scaling.divisor)
    planes = learner._plane_problem(problem, Cs[0])
    corpus = split.X if split.corpus is None else split.corpus
    rounds = {"tol": LOOSE * learner.tol, "max_iter": learner.max_iter}
    W = problem.start
    for C in Cs:
        # Planes do not depend on C.
        planes.raise_C(C)
        W = cutting_plane(problem.plane, planes, W, **rounds).W
        metric = LinearMetric(problem.cone.components(W) / scaling.divisor)
        blocks = Index(corpus, metric).blocks(split.points)
        yield evaluate(blocks, split.judged, scoring).means[scoring], W


class Choice(NamedTuple):
    """The C chosen, the scores of all that were tried, and a start for the fit; None for zero."""

    C: float
    scores: dict[float, float]
    start: np.ndarray | None


def choose_C(
    learner: Any, kind: str, X: Any, relevance: Relevance, queries: Any
) -> Choice:
    """Choose C by cross-validation, on some of the data."""
    splits = choice_folds(*sample_data(X, relevance, queries, MAX_ITEMS, SEED), SEED)
    if not splits:
        return Choice(DEFAULT_C, {}, None)
    measure = learner.measure
    # Folds are small, and workers far away.
    with use_backend("threads"):
        path = follow_path(learner, splits, kind, CS, measure, least_gain=LEAST_GAIN)
    best = path.best(measure, least_gain=LEAST_GAIN)
    scores = dict(zip(path.Cs, path.scores, strict=True))
    return Choice(path.Cs[best], scores, path.solutions[best])
