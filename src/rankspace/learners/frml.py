"""Fixed-rank metric learning by Riemannian descent of the WARP loss (Lim and Lanckriet, 2014)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_choice
from .._engine.files import PathLike
from ..evaluation.measures import parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split, hold_out, split_queries
from .base import logger
from .linear import LinearRanker
from .solvers.points import Points, Scaling, scaled_points
from .solvers.warp.descent import Descent, Options, Progress
from .solvers.warp.sampling import (
    Sampling,
    check_weights,
    nearest_positives,
    sampling_of,
)
from .solvers.warp.schedule import Schedule, TrainingState, Validator, descend
from .solvers.warp.sharded import ShardedDescent
from .solvers.warp.starts import STARTS, start_factor

MOST_HELD_OUT = 500
USUAL_COMPONENTS = 30
UNHASHED = ("callback", "checkpoint", "init", "random_state")


class FRML(LinearRanker):
    """Fixed-rank metric learning to rank by stochastic descent.

    Draws triplets of a query, a relevant item and an irrelevant one that is too near (WARP), weighs
    them by the rank that the number of draws lets expect, and moves a metric ``W = L'L`` of fixed
    rank along its manifold by a second-order retraction. Steps need no tuning: they are scaled by
    how far W has come, shortened when held-out queries stop getting better, and do not depend on
    the scale of the data.

    Parameters
    ----------
    n_components : int, optional
        The rank m. By default 30, or all features if there are fewer or ``init="identity"``.
    rank_weights : str, default="reciprocal"
        What an irrelevant item too near costs by its rank i: "reciprocal" 1/i, as in the paper;
        "reciprocal@k" the same down to rank k; "precision@k" 1 down to rank k; "ndcg" the loss of
        discount from one place to the next; "uniform" the same at any rank (FRML-AUC), for which
        one draw a triplet suffices.
    gamma : float, default=1
        At most n / gamma of the n irrelevant items are drawn for a triplet. Larger is faster, and
        looks at the very top of the lists less.
    reg : float, default=0.01
        Share of the regulariser in the loss, in [0, 1).
    regularizer : {"pairs", "frobenius"}, default="pairs"
        Squared distances of queries from relevant items, as in the paper, or ``|W|_F^2 / 2``.
    init : {"pca", "random", "identity"} or array-like of shape (n_components, n_features)
        Where to start: the leading principal directions (default), Gaussian directions, the
        identity, as is right for embeddings that are good already, or components to go on from.
    n_targets : int, optional
        Let only so many relevant items count, those nearest to the query at first.
    measure : str, default="map"
        What is watched on held-out queries; any name that `evaluate` knows.
    validation_fraction : float, default=0.1
        Part of the queries that is held out, at most 500. With 0 nothing is watched: all triplets
        are drawn, and the last metric is returned.
    patience : int, default=2
        Checks without a better score before steps are shortened. After the third time, it stops.
    check_every : int, default=10000
        Triplets between two checks.
    n_triplets : int, default=300000
        Triplets at most.
    batch_size : int, default=32
        Triplets in a step.
    step : float, default=2.0
        Multiplies the length of all steps.
    n_shards : int, default=1
        Number of shards of the queries, which train in parallel from one metric, in threads or
        on a cluster, and come together in their mean every few thousand triplets. The answer
        depends on the number of shards, not on where they run.
    warm_start : bool, default=False
        Start from the metric of the last `fit`.
    callback : callable, optional
        Called with each new row of ``history_``; if it returns True, training stops, and a later
        `fit` with the same checkpoint goes on.
    checkpoint : path, optional
        A file to keep the state in, written at each check. If it exists, `fit` on the same data
        with the same parameters goes on from it, and ends with the metric of an unbroken run.
    max_memory : int, default=512
        MiB for all inner products of the points; if they do not fit, embeddings are kept up to date
        without them.
    random_state : int, RandomState or None, default=None
        Seed of triplets, held-out queries and random starts.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_components, n_features)
        L with ``W = L'L``, on the data as given.
    history_ : list of dict
        For each check: triplets so far, score, mean weight of the triplets, share with a violator,
        draws a triplet, length of the last step, its multiplier, the way points were embedded, and
        seconds.
    best_score_ : float
        Best score of the held-out queries, the larger the better; NaN if none are.
    n_iter_ : int
        Triplets drawn.
    scale_ : float
        Root mean squared distance of two items, which the data were divided by.

    Notes
    -----
    A triplet costs O(n m) if all inner products of n points fit ``max_memory``, else O((2 + draws)
    d m) or O(n d m / batch_size), whichever is least, and O(d m) to move L. Sparse ``X`` is never
    made dense. Given a seed, the metric does not depend on the number of threads.

    References
    ----------
    D. Lim and G. Lanckriet, Efficient learning of Mahalanobis metrics for ranking, ICML 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import FRML
    >>> X, y = load_wine(return_X_y=True)
    >>> model = FRML(3, n_triplets=20_000, random_state=0).fit(scale(X), y)
    >>> model.components_.shape, bool(model.score(scale(X), y) > 0.95)
    ((3, 13), True)
    """

    _accepts_sparse = "csr"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        rank_weights: str = "reciprocal",
        gamma: float = 1,
        reg: float = 0.01,
        regularizer: str = "pairs",
        init: Any = "pca",
        n_targets: int | None = None,
        measure: str = "map",
        validation_fraction: float = 0.1,
        patience: int = 2,
        check_every: int = 10_000,
        n_triplets: int = 300_000,
        batch_size: int = 32,
        step: float = 2.0,
        n_shards: int = 1,
        warm_start: bool = False,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        checkpoint: PathLike | None = None,
        max_memory: int = 512,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.rank_weights = rank_weights
        self.gamma = gamma
        self.reg = reg
        self.regularizer = regularizer
        self.init = init
        self.n_targets = n_targets
        self.measure = measure
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.check_every = check_every
        self.n_triplets = n_triplets
        self.batch_size = batch_size
        self.step = step
        self.n_shards = n_shards
        self.warm_start = warm_start
        self.callback = callback
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.random_state = random_state

    # ------------------------------------------------------------------ learning

    def _fit_metric(self, X: Any, relevance: Relevance, queries: Any) -> LinearMetric:
        self._check_params(X.shape[1])
        self._mark = ""
        if self.checkpoint is not None:
            self._mark = self._fingerprint(X, relevance, queries)
        state = TrainingState.load_if_there(self.checkpoint, self._mark)
        seed = self._seed() if state is None else state.seed
        split = self._split(X, relevance, queries, seed)
        scaling = Scaling.of(split.X)
        points = scaled_points(split.X, split.relevance, split.queries, scaling)
        if state is None:
            state = self._first_state(points.items, scaling.scale, seed)
        descent = self._descent(points, split.relevance, seed)
        schedule = Schedule(self.n_triplets, self.check_every, self.patience)
        validator = _validator(split, scaling, points, self.measure)
        descend(state, descent, schedule, validator, self._at_check)
        return self._store(state, scaling, X.dtype)

    def _first_state(self, X: Any, scale: float, seed: int) -> TrainingState:
        F = self._start(X, scale, seed)
        return TrainingState(Progress(F, F, multiplier=self.step), seed, F)

    def _descent(self, points: Points, relevance: Relevance, seed: int) -> Any:
        options = self._options()
        if self.n_shards == 1:
            return Descent(points, self._sampling(relevance, points, seed), options)
        law = (self.rank_weights, self.gamma, seed)
        return ShardedDescent.of(points, relevance, self.n_shards, options, law)

    def partial_fit(self, X: Any, y: Any, *, queries: Any = None) -> Self:
        """Train further with one triplet for each query, without validation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,) or Relevance
            Class labels, or who is relevant to whom.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are no rows of ``X``.

        Returns
        -------
        self
        """
        first = not hasattr(self, "metric_")
        X, relevance, queries = self._training_data(X, y, queries, reset=first)
        self._check_params(X.shape[1])
        if first:
            self._scaling = Scaling.of(X)
            scaled = self._scaling.apply(X)
            self._state = self._first_state(scaled, self._scaling.scale, self._seed())
        state = self._state
        points = scaled_points(X, relevance, queries, self._scaling)
        sampling = self._sampling(relevance, points, state.seed)
        descent = Descent(points, sampling, self._options())
        descent.run(state.progress, relevance.n_queries)
        state.best = state.progress.F
        self._store_metric(self._store(state, self._scaling, X.dtype))
        return self

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _split(self, X: Any, relevance: Relevance, queries: Any, seed: int) -> Split:
        """Hold queries out for validation, unless that leaves nothing to train or validate on."""
        everything = Split(X, relevance, queries, None, relevance)
        if self.validation_fraction == 0 or relevance.n_queries < 2:
            return everything
        chosen = split_queries(
            relevance.n_queries,
            self.validation_fraction,
            check_random_state(seed),
            MOST_HELD_OUT,
        )
        split = hold_out(X, relevance, queries, *chosen)
        trainable = split.relevance.trainable
        if not (trainable.any() and split.judged.trainable.any()):
            logger.warning(
                "no queries are held out: the others could not be learned from."
            )
            return everything
        if trainable.all():
            return split
        train_queries = split.queries
        if train_queries is not None:
            train_queries = train_queries[trainable]
        train_relevance = split.relevance.take_queries(trainable)
        return split._replace(relevance=train_relevance, queries=train_queries)

    def _start(self, X: Any, scale: float, seed: int) -> np.ndarray:
        """The transposed components to start from, on scaled data."""
        given = self.init
        if self.warm_start and hasattr(self, "components_"):
            given = self.components_
        return start_factor(X, self._rank(X.shape[1]), given, scale, seed)

    def _rank(self, n_features: int) -> int:
        if self.n_components is not None:
            return int(self.n_components)
        if not isinstance(self.init, str):
            return len(self.init)
        if self.init == "identity":
            return n_features
        return min(USUAL_COMPONENTS, n_features)

    def _sampling(self, relevance: Relevance, points: Points, seed: int) -> Sampling:
        positives = None
        if self.n_targets is not None:
            queries = points.matrix[points.query_rows]
            k = int(self.n_targets)
            positives = nearest_positives(relevance, queries, points.items, k)
        return sampling_of(relevance, self.rank_weights, self.gamma, seed, positives)

    def _options(self) -> Options:
        return Options(self.reg, self.regularizer, self.batch_size, self.max_memory)

    def _at_check(self, state: TrainingState) -> bool:
        """Log and save; whether the callback asks to stop."""
        row = state.history[-1]
        logger.info(
            "%s %.4f after %d triplets, %.1f draws each",
            self.measure,
            row["score"],
            row["n_triplets"],
            row["draws"],
        )
        stop = self.callback is not None and bool(self.callback(dict(row)))
        if self.checkpoint is not None:
            state.save(self.checkpoint, self._mark)
        return stop

    def _store(
        self, state: TrainingState, scaling: Scaling, dtype: Any
    ) -> LinearMetric:
        self._state = state
        self._scaling = scaling
        state.progress.F = state.best
        self.scale_ = scaling.scale
        self.history_ = state.history
        self.best_score_ = float("nan")
        if np.isfinite(state.best_score):
            self.best_score_ = state.best_score
        self.n_iter_ = state.progress.n_triplets
        components = (state.best.T / scaling.scale).astype(dtype)
        parameters = {
            "method": "FRML",
            "rank_weights": self.rank_weights,
            "measure": self.measure,
        }
        return LinearMetric(components, parameters=parameters)

    def _fingerprint(self, X: Any, relevance: Relevance, queries: Any) -> str:
        """A digest of all that decides the answer but the seed, which is in the checkpoint."""
        digest = hashlib.blake2b(digest_size=16)
        parameters = {
            k: v for k, v in sorted(self.get_params().items()) if k not in UNHASHED
        }
        seed = self.random_state if isinstance(self.random_state, Integral) else None
        init = np.asarray(self.init)
        rules = (relevance.background, relevance.unjudged, relevance.min_relevant_grade)
        digest.update(repr((parameters, seed, init.shape, rules)).encode())
        tables = (relevance.rows, relevance.indptr, relevance.items, relevance.grades)
        shares = (relevance.query_items, relevance.weights)
        for array in (init, *_arrays(X), *_arrays(queries), *tables, *shares):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # ------------------------------------------------------------------ checks

    def _check_params(self, n_features: int) -> None:
        for name in (
            "patience",
            "check_every",
            "n_triplets",
            "batch_size",
            "max_memory",
            "n_shards",
        ):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        if self.n_targets is not None:
            check_scalar(self.n_targets, "n_targets", Integral, min_val=1)
            if self.n_shards > 1:
                raise ValueError("n_targets goes with n_shards=1 only.")
        check_scalar(self.gamma, "gamma", Real, min_val=1)
        check_scalar(self.step, "step", Real, min_val=0, include_boundaries="neither")
        check_scalar(
            self.reg, "reg", Real, min_val=0, max_val=1, include_boundaries="left"
        )
        fraction = self.validation_fraction
        check_scalar(
            fraction,
            "validation_fraction",
            Real,
            min_val=0,
            max_val=1,
            include_boundaries="left",
        )
        check_weights(self.rank_weights)
        check_choice(self.regularizer, "regularizer", ("pairs", "frobenius"))
        parse_measure(self.measure)
        if isinstance(self.init, str):
            check_choice(self.init, "init", STARTS)
        if self.n_components is not None:
            check_scalar(self.n_components, "n_components", Integral, min_val=1)
            if self.n_components > n_features:
                raise ValueError(
                    f"n_components must be at most the number of features, {n_features}: got "
                    f"{self.n_components}."
                )


def _validator(
    split: Split, scaling: Scaling, points: Points, measure: str
) -> Validator | None:
    if split.points is None:
        return None
    held_out = scaling.apply(split.points)
    return Validator(points.items, held_out, split.judged, measure)


def _arrays(X: Any) -> tuple[np.ndarray, ...]:
    if X is None:
        return ()
    if scipy.sparse.issparse(X):
        return (X.data, X.indices, X.indptr)
    return (X,)
