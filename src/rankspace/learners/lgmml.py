"""Local geometric-mean metrics for ranking (Su, King and Lyu, 2017), with additions."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .._engine.checks import check_choice
from ..metrics.feature_scaling import FeatureScaling, check_scaling
from ..metrics.local import (
    KERNELS,
    AnchoredMetrics,
    LocalMetric,
    kernel_values,
    list_profile,
)
from ..metrics.local_index import LocalIndex
from ..relevance.relevance import Relevance
from ..search.ranking import Ranking
from .base import FLOATS, BaseRanker, logger, read_rows
from .fit_data import WeightedFit
from .solvers.geometric.lists import Lists, with_high
from .solvers.geometric.local_metrics import LocalMetrics, LocalOptions, list_metrics
from .solvers.geometric.metric_weights import (
    WarpOptions,
    logistic_weights,
    per_list_warp,
    shared_warp,
)
from .solvers.geometric.query_metrics import judged_rows, pair_squares, query_metrics
from .solvers.points import ScaledRows

NEW_QUERY_WEIGHTS = ("shared", "mean", "nearest", "ones")
LIST_COMPONENTS = 4
LIST_DIRECTIONS = 64
MAX_SCALED = 200_000  # rows from which the scaling of features is learned
PAPER = {
    "scaling": "l2",
    "kernel": "paper",
    "loss": "warp",
    "pooling": 0.0,
    "features": False,
    "n_components": 0,
}


def _scores_documents(model: LGMML) -> bool:
    metric = getattr(model, "metric_", None)
    return metric is None or metric.has_anchors


class Weights(NamedTuple):
    """Weights of metrics (n_profiles or 1, m), of features, and the reference profiles."""

    metrics: np.ndarray
    features: np.ndarray | None = None
    reference_profiles: np.ndarray | None = None


class Learned(NamedTuple):
    """Local metrics, their weights, and the anchors (m, d), if they are documents."""

    local: LocalMetrics
    weights: Weights
    anchors: np.ndarray | None = None


class LGMML(WeightedFit, BaseRanker):
    """Learning to rank by local metrics, each the geometric mean of one training query.

    For candidate lists (``qid``), each metric is learned from a list. Its anchor is the document of
    the highest grade that ranks the rest of the list best, and a document scores by how near it is
    to all anchors. Queries with vectors are the anchors themselves.

    Parameters
    ----------
    n_metrics : int, default=50
        Number of lists, or queries, with a metric each; at most all. One metric for queries with
        vectors is that of `GMML`.
    t : float, default=0.5
        Position on the geodesic from the inverse of S to D; see `GMML`.
    reg : float, default=0.01
        Share of the identity that is added to both scatter matrices, relative to their traces.
    pooling : float, default=0.5
        Share of the scatter of all lists in that of each; 0 as in the paper.
    n_components : int, optional
        Number of directions kept of each metric, 0 for all. By default 4 for lists, and all for
        queries with vectors.
    n_directions : int, optional
        Number of leading directions of the metric of all lists, or queries, in which each metric is
        made, 0 for all; a metric costs their cube. By default 64, and all if `n_components` is 0,
        or for queries with vectors.
    kernel : {"rbf", "paper", "distance"}, default="rbf"
        Kernel of the distance d under a metric: ``1 - exp(-d^2/2)``, ``d exp(-d)`` or ``d``.
    scaling : {"auto", "joined", "rank-gauss", "standard", "l2"} or None, default="auto"
        Feature scaling: normal scores of ranks ("rank-gauss"), standard scores, both side by side
        ("joined"), or division by the norm as in the paper. "auto" is "joined" for lists, and None
        for queries with vectors.
    loss : {"logistic", "warp"}, default="logistic"
        How weights are learned: by minimising the logistic loss of all pairs, weighted by gain, or
        by the paper's WARP steps, which keep them non-negative.
    features : bool, default=True
        Whether the scaled features get weights too, beside the distances. For lists only, and for
        the logistic loss.
    weight_reg : float, default=0.2
        Weight of ``|w|^2 / 2`` in the logistic loss, on columns of variance 1.
    new_query_weights : {"shared", "mean", "nearest", "ones"}, default="shared"
        Weights of metrics for a new query: those learned over all queries; the mean of those of
        each; the mean of those of the training queries with the most similar candidates, or vectors
        (then `predict` needs ``qid``); or equal weights. "mean" and "nearest" need ``loss="warp"``.
    n_neighbors : int, default=10
        Number of training queries for "nearest".
    k : int, default=10
        Cut-off of the NDCG that chooses anchors and weighs pairs.
    high : {"upper", "highest"} or float, default="upper"
        Which documents of a list are alike, D+ in the paper: those with the upper half of its
        grades, those with its highest, or those of at least this grade. For lists only.
    init_weight : float, default=1.0
        Weight that WARP starts from, Phi(1) in the paper.
    margin : float, default=0.1
        The margin of WARP.
    step : float, default=0.5
        First learning rate of WARP.
    n_steps : int, default=200
        WARP steps for each query.
    max_iter : int, default=200
        Maximum number of L-BFGS steps.
    max_memory : int, default=1024
        MiB for the distances of training documents; if not all fit, weights are learned from as
        many lists as fit. Feature scaling is learned from at most 200,000 rows.
    random_state : int, RandomState or None, default=None
        Seed of the random lists, and of WARP.

    Attributes
    ----------
    metric_ : LocalMetric
        The learned metric, with the scaling of features.
    anchor_rows_ : ndarray of shape (n_metrics,)
        Rows of ``X`` that are anchors; -1 for queries with vectors.
    n_metrics_ : int
        Number of metrics.

    Notes
    -----
    Metrics cost O(n d^2 + d^3 + m b^3) for n documents of d features and b directions, scores
    O(m r d) a document. Given a seed, results do not depend on the number of threads.

    References
    ----------
    Y. Su, I. King and M. Lyu, Learning to rank using localized geometric mean metrics, SIGIR 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LGMML
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(400, 5)), np.repeat(np.arange(20), 20)
    >>> grades = (np.abs(X[:, 0] - 1) < 0.5) * 1 + (np.abs(X[:, 0] - 1) < 0.2) * 1
    >>> model = LGMML(20, weight_reg=0.01, random_state=0).fit(X[:200], grades[:200], qid=qid[:200])
    >>> bool(model.score(X[200:], grades[200:], qid=qid[200:]) > 0.85)
    True
    """

    _accepts_lists = True
    _accepts_nan = True
    __metadata_request__predict: ClassVar = {"qid": True}

    def __init__(
        self,
        n_metrics: int = 50,
        *,
        t: float = 0.5,
        reg: float = 0.01,
        pooling: float = 0.5,
        n_components: int | None = None,
        n_directions: int | None = None,
        kernel: str = "rbf",
        scaling: str | None = "auto",
        loss: str = "logistic",
        features: bool = True,
        weight_reg: float = 0.2,
        new_query_weights: str = "shared",
        n_neighbors: int = 10,
        k: int = 10,
        high: str | float = "upper",
        init_weight: float = 1.0,
        margin: float = 0.1,
        step: float = 0.5,
        n_steps: int = 200,
        max_iter: int = 200,
        max_memory: int = 1024,
        random_state: Any = None,
    ) -> None:
        self.n_metrics = n_metrics
        self.t = t
        self.reg = reg
        self.pooling = pooling
        self.n_components = n_components
        self.n_directions = n_directions
        self.kernel = kernel
        self.scaling = scaling
        self.loss = loss
        self.features = features
        self.weight_reg = weight_reg
        self.new_query_weights = new_query_weights
        self.n_neighbors = n_neighbors
        self.k = k
        self.high = high
        self.init_weight = init_weight
        self.margin = margin
        self.step = step
        self.n_steps = n_steps
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.random_state = random_state

    @classmethod
    def paper(cls, n_metrics: int = 500, **changes: Any) -> Self:
        """LGMML as in the paper, with defaults for what it leaves open.

        Features divided by their norms, full metrics of single lists, ``d exp(-d)`` with distances
        of at most 1 in the list of each metric, and WARP. What the paper leaves open or tries
        several values of are ``init_weight``, the first weight Phi(1) (it tried 0.1 to 10),
        ``margin`` (0.01 to 1), and ``high``, the documents of D+.

        Parameters
        ----------
        n_metrics : int, default=500
            Number of local metrics.
        **changes
            Any other parameter.

        Returns
        -------
        LGMML
        """
        return cls(n_metrics, **{**PAPER, **changes})

    # ------------------------------------------------------------------ learning

    def _fit_metric(self, X: Any, relevance: Relevance, queries: Any) -> LocalMetric:
        self._check_params()
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scaling = self._feature_scaling(X, relevance.has_candidate_lists, seed)
        if relevance.has_candidate_lists:
            learned = self._learn_lists(ScaledRows(X, scaling), relevance, seed)
        else:
            Z = scaling.apply(X)
            points = (
                Z[relevance.query_items] if queries is None else scaling.apply(queries)
            )
            learned = self._learn_queries(Z, relevance, points, seed)
        weights = learned.weights
        self.anchor_rows_ = learned.local.anchors
        self.n_metrics_ = len(learned.local.factors)
        return LocalMetric(
            learned.local.factors.astype(X.dtype),
            weights.metrics.astype(X.dtype),
            anchors=learned.anchors,
            linear=weights.features,
            kernel=self.kernel,
            scaling=scaling,
            reference_profiles=weights.reference_profiles,
            n_neighbors=self.n_neighbors,
            parameters={"method": "LGMML", "new_query_weights": self.new_query_weights},
        )

    def _feature_scaling(self, X: Any, has_lists: bool, seed: int) -> FeatureScaling:
        kind = self.scaling
        if kind == "auto":
            kind = "joined" if has_lists else None
        if len(X) > MAX_SCALED:
            X = X[np.random.default_rng(seed).permutation(len(X))[:MAX_SCALED]]
        return FeatureScaling.of(X, check_scaling(kind))

    def _local_options(self, default_components: int) -> LocalOptions:
        n_components = self.n_components
        if n_components is None:
            n_components = default_components
        n_directions = self.n_directions
        if n_directions is None:
            n_directions = LIST_DIRECTIONS if n_components else 0
        if n_directions:
            n_directions = max(int(n_components), int(n_directions))
        return LocalOptions(
            t=float(self.t),
            reg=float(self.reg),
            pooling=float(self.pooling),
            n_components=int(n_components),
            k=int(self.k),
            largest=self.kernel == "paper",
            n_directions=n_directions,
        )

    def _learn_lists(self, Z: ScaledRows, relevance: Relevance, seed: int) -> Learned:
        lists = with_high(Lists.of(relevance), self.high)
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(lists))[: self.n_metrics])
        local = list_metrics(Z, lists, chosen, self._local_options(LIST_COMPONENTS))
        logger.info("%d local metrics of %d lists", len(chosen), len(lists))
        anchors = Z[local.anchors]
        width = len(chosen) + Z.shape[1]
        known = lists.take(self._lists_in_memory(np.diff(lists.indptr), width, rng))
        documents = Z[known.rows]
        stacked = AnchoredMetrics.of(local.factors, anchors, Z.dtype)
        H = kernel_values(stacked, documents, self.kernel)
        return Learned(local, self._weights(H, known, documents, seed), anchors)

    def _learn_queries(
        self, Z: np.ndarray, relevance: Relevance, points: np.ndarray, seed: int
    ) -> Learned:
        rng = np.random.default_rng(seed)
        n_metrics = min(self.n_metrics, relevance.n_queries)
        options = self._local_options(0)
        local = query_metrics(Z, relevance, points, n_metrics, options, rng)
        if len(local.factors) == 1:
            return Learned(local, Weights(np.ones((1, 1))))
        lists, owner = judged_rows(relevance, rng)
        squares = pair_squares(Z, lists.rows, points, owner, local.factors)
        weights = self._weights(KERNELS[self.kernel](squares), lists, None, seed)
        if weights.reference_profiles is not None:
            profiles = points[owner[lists.indptr[:-1]]]
            weights = weights._replace(reference_profiles=profiles)
        return Learned(local, weights)

    def _lists_in_memory(
        self, sizes: np.ndarray, width: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Numbers of random lists whose distances fit the memory."""
        n_documents = self.max_memory * 2**20 // (16 * width)
        order = rng.permutation(sizes.size)
        n_lists = int(np.searchsorted(np.cumsum(sizes[order]), n_documents))
        chosen = order[: max(1, n_lists)]
        if chosen.size < sizes.size:
            logger.info(
                "weights are learned from %d of %d lists", chosen.size, sizes.size
            )
        return np.sort(chosen)

    def _weights(
        self, H: np.ndarray, lists: Lists, documents: np.ndarray | None, seed: int
    ) -> Weights:
        """Weights of metrics, given their kernel values H (n_documents, n_metrics)."""
        if self.new_query_weights == "ones":
            return Weights(np.ones((1, H.shape[1])))
        if self.loss == "logistic":
            return self._logistic(H, lists, documents)
        options = WarpOptions(
            float(self.margin),
            float(self.step),
            int(self.n_steps),
            seed,
            float(self.init_weight),
        )
        if self.new_query_weights == "shared":
            return Weights(shared_warp(H, lists, options)[None])
        each = per_list_warp(H, lists, options)
        if self.new_query_weights == "mean":
            return Weights(each.mean(axis=0, keepdims=True))
        if documents is None:
            # Queries with vectors: `_learn_queries` puts these in their place.
            return Weights(each, reference_profiles=np.zeros((len(each), 1)))
        profiles = [list_profile(documents[lists.rows_of(q)]) for q in range(len(each))]
        return Weights(each, reference_profiles=np.stack(profiles))

    def _logistic(
        self, H: np.ndarray, lists: Lists, documents: np.ndarray | None
    ) -> Weights:
        # A mean taken off a column changes no difference of two scores.
        spread = H.std(axis=0, dtype=np.float64)
        spread[spread == 0] = np.inf
        columns = (H.mean(axis=0) - H) / spread.astype(H.dtype)
        if documents is not None and self.features:
            columns = np.hstack([columns, documents])
        w = logistic_weights(
            columns,
            lists,
            weight_reg=float(self.weight_reg),
            k=int(self.k),
            non_negative=documents is None,  # they are weights of distances
            max_iter=int(self.max_iter),
        )
        n_metrics = H.shape[1]
        features = w[n_metrics:] if len(w) > n_metrics else None
        return Weights((w[:n_metrics] / spread)[None], features)

    # ------------------------------------------------------------------ use

    @available_if(_scores_documents)
    def predict(self, X: Any, *, qid: Any = None) -> np.ndarray:
        """Score candidate rows; within a query, a larger score is better.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Candidates.
        qid : array-like of shape (n,), optional
            The query of each row; needed with ``new_query_weights="nearest"``.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            read_rows(self, X),
            reset=False,
            dtype=FLOATS,
            ensure_all_finite="allow-nan",
        )
        return self.metric_.scores(X, qid)

    def rank(
        self, Q: Any = None, X: Any = None, k: int | None = None, *, qid: Any = None
    ) -> Any:
        """List the rows of ``X`` for each query, best first.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features), optional
            Queries; None after learning from candidate lists.
        X : array-like of shape (n_items, n_features)
            Items, or candidates.
        k : int, optional
            Number of items of a list; all by default.
        qid : array-like of shape (n_items,), optional
            The query of each candidate, after learning from candidate lists.

        Returns
        -------
        Ranking
        """
        check_is_fitted(self)
        if not self.metric_.has_anchors:
            return super().rank(Q, X, k)
        if Q is not None or X is None or qid is None:
            raise ValueError(
                "this model was learned from candidate lists, whose queries have no vectors: call "
                "rank(X=X, qid=qid)."
            )
        ranking = Ranking.from_groups(-self.predict(X, qid=qid), qid)
        if k is not None:
            ranking = ranking.top(k)
        return ranking

    def _score_lists(self, X: np.ndarray, lists: np.ndarray) -> np.ndarray:
        return self.metric_.scores(X, lists)

    def _searchable(self, X: Any, Q: Any) -> tuple[Any, Any]:
        return LocalIndex(X, self.metric_), Q

    # ------------------------------------------------------------------ checks

    def _check_params(self) -> None:
        counts = ("n_metrics", "n_neighbors", "k", "n_steps", "max_iter", "max_memory")
        for name in counts:
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        for name in ("n_components", "n_directions"):
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=0)
        for name in ("t", "pooling"):
            check_scalar(getattr(self, name), name, Real, min_val=0, max_val=1)
        for name in ("reg", "weight_reg", "margin"):
            check_scalar(getattr(self, name), name, Real, min_val=0)
        check_scalar(self.step, "step", Real, min_val=0, include_boundaries="neither")
        start = self.init_weight
        check_scalar(
            start, "init_weight", Real, min_val=0, include_boundaries="neither"
        )
        if isinstance(self.high, str):
            check_choice(self.high, "high", ("upper", "highest"))
        check_choice(self.kernel, "kernel", KERNELS)
        check_choice(self.loss, "loss", ("logistic", "warp"))
        check_choice(self.new_query_weights, "new_query_weights", NEW_QUERY_WEIGHTS)
        if self.new_query_weights in ("mean", "nearest") and self.loss != "warp":
            raise ValueError(
                f"new_query_weights={self.new_query_weights!r} needs weights of each query: pass "
                f"loss='warp' with it."
            )
