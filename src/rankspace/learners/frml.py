"""FRML: fixed-rank metric learning by Riemannian SGD on the WARP loss (Lim and Lanckriet, 2014)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_choice, check_components
from .._engine.files import PathLike
from ..evaluation.measures import parse_measure
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.splits import Split, hold_out, split_queries
from .base import logger
from .callbacks import CallbackFit
from .fit_data import ValidatedFit, validation_fields, validation_split
from .linear import LinearRanker
from .solvers.checkpoint import Checkpoint
from .solvers.graph import mutual_neighbors
from .solvers.points import Points, scaled_points
from .solvers.scaling import Scaling
from .solvers.warp.descent import Descent, Options, Progress, no_edges
from .solvers.warp.early_stopping import Schedule, TrainingState, Validator, descend
from .solvers.warp.paper import PaperDescent
from .solvers.warp.sampling import (
    Sampling,
    check_weights,
    nearest_positives,
    sampling_of,
)
from .solvers.warp.sharded import ShardedDescent
from .solvers.warp.starts import STARTS, start_factor
from .standardising import chosen_scaling, scaling_card

MAX_HELD_OUT = 500
DEFAULT_COMPONENTS = 30
PAPER = {
    "solver": "paper",
    "step": 0.1,
    "batch_size": 5,
    "init": "normal",
    "scaling": None,
    "validation_fraction": 0.0,
}
COUNTS = (
    "patience",
    "check_every",
    "n_triplets",
    "batch_size",
    "max_memory",
    "n_shards",
    "n_neighbors",
)


class FRML(CallbackFit, ValidatedFit, LinearRanker):
    """Fixed-rank metric learning to rank by Riemannian stochastic gradient descent (SGD).

    Draws triplets of a query, a relevant item and an irrelevant one that is too near (WARP),
    weights them by the rank estimated from the number of draws, and moves a metric ``W = L'L`` of
    fixed rank against the gradient. A step is a second-order retraction along the manifold, damped
    in the directions in which W is small against the step. The learning rate needs no tuning: it
    adapts to the distance that W has moved, decreases when the validation score stops improving,
    and does not depend on the scale of the data.

    Parameters
    ----------
    n_components : int, optional
        The largest rank m. By default 30, or all features if there are fewer or
        ``init="identity"``. Directions that do not help shrink towards zero.
    rank_weights : str, default="reciprocal"
        Cost of an irrelevant item at rank i that is too near: "reciprocal", 1/i, as in the paper;
        "reciprocal@k", 1/i up to rank k; "precision@k", 1 up to rank k; "ndcg", the drop of the
        discount to the next rank; "uniform", the same at all ranks (FRML-AUC), which needs only
        one draw per triplet.
    gamma : float, default=1
        At most n / gamma of the n irrelevant items are drawn for a triplet. Larger values are
        faster, but put less weight on the top of the rankings.
    reg : float, default=0.01
        Weight of the regulariser in the loss, in [0, 1); the triplets have weight ``1 - reg``.
    regularizer : {"pairs", "frobenius"}, default="pairs"
        Squared distances of queries from relevant items, as in the paper, or ``|W|_F^2 / 2``.
    graph_reg : float, default=0
        Weight of a graph-Laplacian regulariser, the mean squared distance over the edges of the
        graph of mutual nearest neighbours: neighbours stay near each other. Each triplet brings
        one random edge. Items without a label take part: pass
        ``Relevance.from_labels(y, unlabelled=-1, unjudged="ignore")``.
    n_neighbors : int, default=5
        Two items are joined if each is among so many nearest neighbours of the other, by Euclidean
        distance.
    init : {"pca", "random", "normal", "identity"} or array-like (n_components, n_features)
        Initial components: the leading principal components (default), Gaussian directions, the
        same at the paper's scale (numbers of variance 1), the identity (of standardised features if
        they are standardised), for embeddings that already perform well, or an array.
    scaling : {"auto", "standard"} or None, default="auto"
        Whether features are standardised before learning; see `MLR`.
    n_targets : int, optional
        Number of target neighbours: only the relevant items nearest to a query before training are
        used. By default all relevant items are.
    measure : str, default="map"
        Measure for early stopping on held-out queries; any name that `evaluate` accepts.
    validation_fraction : float, default=0.1
        Fraction of the queries to hold out for validation, at most 500 queries. With 0 there is no
        early stopping: all triplets are drawn, and the last metric is returned. If `fit` gets a
        validation set (``X_val``), none are held out.
    patience : int, default=2
        Number of checks without improvement before the learning rate is reduced. Training stops
        early after the third reduction.
    check_every : int, default=10000
        Number of triplets between two validation checks.
    n_triplets : int, default=300000
        Maximum number of triplets.
    batch_size : int, default=32
        Number of triplets in a step.
    step : float, default=2.0
        Factor of the learning rate; with the solvers of the paper the learning rate itself.
    solver : {"adaptive", "paper", "printed"}, default="adaptive"
        How steps are taken: with a learning rate that adapts and damped steps; or as in the paper,
        with a constant learning rate and Algorithm 1, corrected ("paper") or as it is printed,
        which is of first order only. See `FRML.paper`.
    n_shards : int, default=1
        Number of shards of the queries. Shards train in parallel, in threads or on a cluster, and
        their metrics are averaged every few thousand triplets. The result depends on the number of
        shards, but not on where they run.
    warm_start : bool, default=False
        Whether to start from the metric of the last `fit`.
    callback : callable, optional
        Called with each new row of ``history_``. If it returns True, training stops; a later `fit`
        with the same checkpoint resumes it. With scikit-learn 1.9, ``set_callbacks`` takes its
        callbacks too.
    checkpoint : path, optional
        File to which the state is saved at each check. If it exists, `fit` on the same data with
        the same parameters resumes from it, and gives the same metric as an uninterrupted run,
        also if the run had finished.
    max_memory : int, default=512
        Memory for all inner products of the points in MiB; they are only stored if they fit.
    random_state : int, RandomState or None, default=None
        Seed of triplets, held-out queries and random starts.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_components, n_features)
        L with ``W = L'L``, for unscaled data.
    history_ : list of dict
        For each check: number of triplets so far, score, mean weight of the triplets, fraction with
        a violator, draws per triplet, last learning rate and its multiplier, strategy by which
        points were embedded, and seconds.
    best_score_ : float
        Best validation score, larger is better; NaN without validation.
    n_iter_ : int
        Number of triplets drawn.
    scale_ : float or ndarray of shape (n_features,)
        What the data were divided by: the root mean squared distance of two items, or one number
        for each feature if features were standardised.
    scaling_ : {"standard", "none"}
        Whether features were standardised.

    Notes
    -----
    A triplet costs O(draws m) to find a violator, or O(n m) for a search of all n items, and O(d m)
    to update L. Dense points are embedded in full only from time to time:
    violators are drawn by distances ``|L(x - z)|`` that err by at most ``0.1 |L| |x - z|``
    (Frobenius norm of L), and those that do not violate the margin by exact distances are left out.
    If all inner products of the points fit in ``max_memory`` and features are many, steps use them
    instead, O(n m) a triplet, and sparse points are embedded when they are drawn. Sparse ``X`` is
    never made dense. With a fixed seed, the metric does not depend on the number of threads.

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
        graph_reg: float = 0.0,
        n_neighbors: int = 5,
        init: Any = "pca",
        scaling: str | None = "auto",
        n_targets: int | None = None,
        measure: str = "map",
        validation_fraction: float = 0.1,
        patience: int = 2,
        check_every: int = 10_000,
        n_triplets: int = 300_000,
        batch_size: int = 32,
        step: float = 2.0,
        solver: str = "adaptive",
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
        self.graph_reg = graph_reg
        self.n_neighbors = n_neighbors
        self.init = init
        self.scaling = scaling
        self.n_targets = n_targets
        self.measure = measure
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.check_every = check_every
        self.n_triplets = n_triplets
        self.batch_size = batch_size
        self.step = step
        self.solver = solver
        self.n_shards = n_shards
        self.warm_start = warm_start
        self.callback = callback
        self.checkpoint = checkpoint
        self.max_memory = max_memory
        self.random_state = random_state

    @classmethod
    def paper(cls, n_components: int | None = None, **changes: Any) -> Self:
        """FRML as in the paper: constant learning rate, batches of 5, a start from N(0, 1).

        The learning rate is ``step``, here 0.1, and has to be tuned; it counts on data divided by
        ``scale_``. There is no early stopping, and ``reg`` is 0.01: the paper's lambda is
        ``L(n) reg / (1 - reg)``. Pass ``solver="printed"`` for Algorithm 1 as it is printed.

        Parameters
        ----------
        n_components : int, optional
            The rank m.
        **changes
            Any other parameter.

        Returns
        -------
        FRML

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.preprocessing import scale
        >>> from rankspace import FRML
        >>> X, y = load_wine(return_X_y=True)
        >>> model = FRML.paper(3, n_triplets=20_000, random_state=0).fit(scale(X), y)
        >>> bool(model.score(scale(X), y) > 0.9)
        True
        """
        return cls(n_components, **{**PAPER, **changes})

    # ------------------------------------------------------------------ learning

    def _fit_metric(
        self, X: Any, relevance: Relevance, queries: Any, **validation: Any
    ) -> LinearMetric:
        self._check_params(X.shape[1])
        given = validation_split(self, (X, relevance, queries), **validation)
        checkpoint = self._checkpoint_of(X, relevance, queries, given)
        schedule = Schedule(self.n_triplets, self.check_every, self.patience)
        shape = (X.shape[1], self._rank(X.shape[1]))
        stored = checkpoint.load(
            partial(TrainingState.check, shape=shape, schedule=schedule)
        )
        state = None if stored is None else TrainingState.from_dict(stored)
        seed = self._seed() if state is None else state.seed
        split = given or self._split(X, relevance, queries, seed)
        scaling = chosen_scaling(self, split.X, rounded=True)
        points = scaled_points(split.X, split.relevance, split.queries, scaling)
        if state is None:
            state = self._first_state(points.items, scaling.divisor, seed)
        descent = self._descent(points, split.relevance, seed)
        validator = _validator(split, scaling, points, self.measure)
        at_check = partial(self._at_check, checkpoint, scaling.divisor, X.dtype)
        with checkpoint.named_in_errors():
            descend(state, descent, schedule, validator, at_check)
        return self._store(state, scaling, X.dtype)

    def _checkpoint_of(
        self, X: Any, relevance: Relevance, queries: Any, given: Split | None
    ) -> Checkpoint:
        start = None
        if self.warm_start and hasattr(self, "components_"):
            start = self.components_
        others = {"components_": start, **validation_fields(given)}
        return Checkpoint.of(self, X, relevance, queries, **others)

    def _first_state(self, X: Any, scale: Any, seed: int) -> TrainingState:
        F = self._start(X, scale, seed)
        return TrainingState(Progress(F, F, multiplier=self.step), seed, F)

    def _descent(self, points: Points, relevance: Relevance, seed: int) -> Any:
        options = self._options()
        if self.n_shards == 1:
            return self._one_descent(points, self._sampling(relevance, points, seed))
        samplings = (self.rank_weights, self.gamma, seed, self._edges(points))
        return ShardedDescent.of(points, relevance, self.n_shards, options, *samplings)

    def _one_descent(self, points: Points, sampling: Sampling) -> Descent:
        problem = (points, sampling, self._options(), self._edges(points))
        if self.solver == "adaptive":
            return Descent(*problem)
        return PaperDescent(*problem, printed=self.solver == "printed")

    def _edges(self, points: Points) -> np.ndarray:
        """The graph over the items that are trained on, if it has any weight."""
        if self.graph_reg == 0:
            return no_edges()
        return mutual_neighbors(points.items, self.n_neighbors)

    def partial_fit(self, X: Any, y: Any, *, queries: Any = None) -> Self:
        """Continue training with one triplet for each query, without validation.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,) or Relevance
            Class labels, or the relevance of items to queries.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are not rows of ``X``.

        Returns
        -------
        self
        """
        first = not hasattr(self, "metric_")
        X, relevance, queries = self._training_data(X, y, queries, reset=first)
        self._check_params(X.shape[1])
        if first:
            self._scaling = chosen_scaling(self, X, rounded=True)
            scaled = self._scaling.apply(X)
            self._state = self._first_state(scaled, self._scaling.divisor, self._seed())
        state = self._state
        points = scaled_points(X, relevance, queries, self._scaling)
        sampling = self._sampling(relevance, points, state.seed)
        descent = self._one_descent(points, sampling)
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
            MAX_HELD_OUT,
        )
        split = hold_out(X, relevance, queries, *chosen)
        trainable = split.relevance.trainable
        if not (trainable.any() and split.judged.trainable.any()):
            logger.warning(
                "there are too few queries to hold some out: training without validation."
            )
            return everything
        if trainable.all():
            return split
        train_queries = split.queries
        if train_queries is not None:
            train_queries = train_queries[trainable]
        train_relevance = split.relevance.take_queries(trainable)
        return split._replace(relevance=train_relevance, queries=train_queries)

    def _start(self, X: Any, scale: Any, seed: int) -> np.ndarray:
        """The transposed initial components, for scaled data."""
        init = self.init
        if self.warm_start and hasattr(self, "components_"):
            init = self.components_
        return start_factor(X, self._rank(X.shape[1]), init, scale, seed)

    def _rank(self, n_features: int) -> int:
        if self.n_components is not None:
            return int(self.n_components)
        if not isinstance(self.init, str):
            return len(self.init)
        if self.init == "identity":
            return n_features
        return min(DEFAULT_COMPONENTS, n_features)

    def _sampling(self, relevance: Relevance, points: Points, seed: int) -> Sampling:
        targets = None
        if self.n_targets is not None:
            targets = nearest_positives(relevance, points, int(self.n_targets))
        return sampling_of(relevance, self.rank_weights, self.gamma, seed, targets)

    def _options(self) -> Options:
        steps = (self.batch_size, self.max_memory)
        return Options(self.reg, self.regularizer, *steps, self.graph_reg)

    def _most_rounds(self) -> int | None:
        counts: Any = (self.n_triplets, self.check_every)
        # Not checked yet: callbacks are told of a fit before it starts.
        if not all(isinstance(count, Integral) for count in counts) or min(counts) < 1:
            return None
        return -(-self.n_triplets // self.check_every)

    def _at_check(
        self, checkpoint: Checkpoint, scale: Any, dtype: Any, state: TrainingState
    ) -> bool:
        """Log and save a checkpoint; returns whether a callback requests a stop."""
        row = state.history[-1]
        logger.info(
            "%s %.4f after %d triplets, %.1f draws each",
            self.measure,
            row["score"],
            row["n_triplets"],
            row["draws"],
        )
        stop = self.callback is not None and bool(self.callback(dict(row)))
        stop |= self._rounds.report(partial(self._attributes, state, scale, dtype))
        checkpoint.save(state.as_dict(), now=stop or state.done)
        return stop

    def _store(
        self, state: TrainingState, scaling: Scaling, dtype: Any
    ) -> LinearMetric:
        self._state = state
        self._scaling = scaling
        state.progress.F = state.best
        self.scale_ = scaling.divisor
        self.history_ = state.history
        self.best_score_ = float("nan")
        if np.isfinite(state.best_score):
            self.best_score_ = state.best_score
        self.n_iter_ = state.progress.n_triplets
        return self._metric_of(state, scaling.divisor, dtype)

    def _metric_of(self, state: TrainingState, scale: Any, dtype: Any) -> LinearMetric:
        components = (state.best.T / scale).astype(dtype)
        parameters = {
            "method": "FRML",
            "rank_weights": self.rank_weights,
            "measure": self.measure,
            **scaling_card(self),
        }
        return LinearMetric(components, parameters=parameters)

    def _attributes(
        self, state: TrainingState, scale: Any, dtype: Any
    ) -> dict[str, Any]:
        """What a fit that ended at this check would have learned."""
        metric = self._metric_of(state, scale, dtype)
        return {
            "metric_": metric,
            "components_": metric.components,
            "_n_features_out": len(metric.components),
        }

    # ------------------------------------------------------------------ checks

    def _check_params(self, n_features: int) -> None:
        for name in COUNTS:
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        if self.n_targets is not None:
            check_scalar(self.n_targets, "n_targets", Integral, min_val=1)
        check_components(self.n_components, n_features)
        check_scalar(self.gamma, "gamma", Real, min_val=1)
        check_scalar(self.step, "step", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.graph_reg, "graph_reg", Real, min_val=0)
        for name in ("reg", "validation_fraction"):
            value = getattr(self, name)
            check_scalar(
                value, name, Real, min_val=0, max_val=1, include_boundaries="left"
            )
        check_weights(self.rank_weights)
        check_choice(self.regularizer, "regularizer", ("pairs", "frobenius"))
        parse_measure(self.measure)
        if isinstance(self.init, str):
            check_choice(self.init, "init", STARTS)
        if self.n_targets is not None and self.n_shards > 1:
            raise ValueError(f"n_targets requires n_shards=1: got {self.n_shards}.")
        check_choice(self.solver, "solver", ("adaptive", "paper", "printed"))
        if self.solver != "adaptive":
            self._check_paper()

    def _check_paper(self) -> None:
        if self.n_shards > 1 or self.regularizer != "pairs":
            raise ValueError(
                f"solver={self.solver!r} requires n_shards=1 and regularizer='pairs': got "
                f"n_shards={self.n_shards} and regularizer={self.regularizer!r}."
            )


def _validator(
    split: Split, scaling: Scaling, points: Points, measure: str
) -> Validator | None:
    if split.points is None:
        return None
    held_out = scaling.apply(split.points)
    corpus = points.items
    if split.corpus is not None:
        corpus = scaling.apply(split.corpus)
    return Validator(corpus, held_out, split.judged, measure)
