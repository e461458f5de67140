"""Local geometric-mean metrics for ranking (Su, King and Lyu, 2017), and what we add to them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .._engine.checks import check_choice
from ..metrics.feature_scaling import FeatureScaling, ScaledRows, check_scaling
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
from .base import FLOATS, BaseRanker, logger
from .solvers.geometric.lists import Lists
from .solvers.geometric.local_metrics import Recipe, list_metrics
from .solvers.geometric.metric_weights import (
    Descent,
    each_warp,
    logistic_weights,
    shared_warp,
)
from .solvers.geometric.query_metrics import judged_rows, pair_squares, query_metrics

NEW_QUERY_WEIGHTS = ("shared", "mean", "nearest", "ones")
LIST_COMPONENTS = 4
LIST_DIRECTIONS = 64
MOST_SCALED = 200_000  # rows that the scaling of features is learned from
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


class LGMML(BaseRanker):
    """Ranking by many local metrics, each the geometric mean of one training query.

    For candidate lists (``qid``), each metric comes from a list, with the document of its highest
    grade that ranks the rest of the list best as its anchor: a document scores by how near it is to
    all anchors. Queries with vectors are the anchors themselves.

    Parameters
    ----------
    n_metrics : int, default=50
        Lists, or queries, that a metric is learned from; at most all. One metric for queries with
        vectors is that of `GMML`.
    t : float, default=0.5
        Where on the geodesic from the inverse of S to D; see `GMML`.
    reg : float, default=0.01
        Share of the identity that is added to both scatter matrices, relative to their traces.
    pooling : float, default=0.5
        Share of the scatter of all lists in that of each; 0 as in the paper.
    n_components : int, optional
        Directions kept of each metric, 0 for all. By default 4 for lists, and all for queries with
        vectors.
    n_directions : int, optional
        Leading directions of the metric of all lists, or queries, in which that of each is made, 0
        for all; a metric costs their cube. By default 64, and all if `n_components` is 0, or
        for queries with vectors.
    kernel : {"rbf", "paper", "distance"}, default="rbf"
        How a metric counts with distance: ``1 - exp(-d^2/2)``, ``d exp(-d)`` or ``d``.
    scaling : {"auto", "joined", "rank-gauss", "standard", "l2"} or None, default="auto"
        What is done to features first: normal scores of their ranks, standard scores, both side by
        side, or division by their norms as in the paper. "auto" is "joined" for lists, and None for
        queries with vectors.
    loss : {"logistic", "warp"}, default="logistic"
        How weights are learned: by the logistic loss of all pairs, weighed by gain, to its minimum,
        or by the paper's WARP steps, which keep them from falling below 0.
    features : bool, default=True
        Whether the scaled features get weights too, beside the distances. For lists only, and for
        the logistic loss.
    weight_reg : float, default=0.2
        Weight of ``|w|^2 / 2`` in the logistic loss, on columns of variance 1.
    new_query_weights : {"shared", "mean", "nearest", "ones"}, default="shared"
        What weights a new query gets: those learned over all queries; the mean of those of each;
        the mean of those of the training queries whose candidates, or vectors, look most alike
        (then `predict` needs ``qid``); or all the same. "mean" and "nearest" need ``loss="warp"``.
    n_neighbors : int, default=10
        How many training queries "nearest" takes.
    k : int, default=10
        Where NDCG is cut that chooses anchors and weighs pairs.
    margin : float, default=0.1
        The margin of WARP.
    step : float, default=0.5
        Length of the first WARP step.
    n_steps : int, default=200
        WARP steps for each query.
    max_iter : int, default=200
        Steps of L-BFGS at most.
    max_memory : int, default=1024
        MiB for the distances of training documents; if all do not fit, weights are learned from as
        many lists as do. The scaling of features is learned from 200,000 rows at most.
    random_state : int, RandomState or None, default=None
        Seed of the lists drawn, and of WARP.

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
        self.margin = margin
        self.step = step
        self.n_steps = n_steps
        self.max_iter = max_iter
        self.max_memory = max_memory
        self.random_state = random_state

    @classmethod
    def paper(cls, n_metrics: int = 500, **changes: Any) -> Self:
        """The method as published, with what it leaves open settled.

        Features divided by their norms, full metrics of single lists, ``d exp(-d)`` with distances
        of at most 1 in the list of each metric, and WARP.

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
        kind = self.scaling
        if kind == "auto":
            kind = "joined" if relevance.has_candidate_lists else None
        some = np.random.default_rng(seed).permutation(len(X))[:MOST_SCALED]
        scaling = FeatureScaling.of(
            X if some.size == len(X) else X[some], check_scaling(kind)
        )
        if relevance.has_candidate_lists:
            documents, lists = ScaledRows(X, scaling), Lists.of(relevance)
            local, weights, anchors = self._learn_lists(documents, lists, seed)
        else:
            Z = scaling.apply(X)
            points = (
                Z[relevance.query_items] if queries is None else scaling.apply(queries)
            )
            local, weights, anchors = self._learn_queries(Z, relevance, points, seed)
        self.anchor_rows_, self.n_metrics_ = local.anchors, len(local.factors)
        return LocalMetric(
            local.factors.astype(X.dtype),
            weights.metrics.astype(X.dtype),
            anchors=anchors,
            linear=weights.features,
            kernel=self.kernel,
            scaling=scaling,
            reference_profiles=weights.reference_profiles,
            n_neighbors=self.n_neighbors,
            parameters={"method": "LGMML", "new_query_weights": self.new_query_weights},
        )

    def _recipe(self, default: int) -> Recipe:
        r = default if self.n_components is None else int(self.n_components)
        largest = self.kernel == "paper"
        directions = self.n_directions
        if directions is None:
            directions = LIST_DIRECTIONS if r else 0
        return Recipe(
            float(self.t),
            float(self.reg),
            float(self.pooling),
            r,
            int(self.k),
            largest,
            max(r, int(directions)) if directions else 0,
        )

    def _learn_lists(self, Z: ScaledRows, lists: Lists, seed: int) -> tuple[Any, ...]:
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.permutation(len(lists))[: self.n_metrics])
        local = list_metrics(Z, lists, chosen, self._recipe(LIST_COMPONENTS))
        logger.info("%d local metrics of %d lists", len(chosen), len(lists))
        anchors = Z[local.anchors]
        width = len(chosen) + Z.shape[1]
        known = lists.take(self._fitting(np.diff(lists.indptr), width, rng))
        documents = Z[known.rows]
        stacked = AnchoredMetrics.of(local.factors, anchors, Z.dtype)
        H = kernel_values(stacked, documents, self.kernel)
        return local, self._weights(H, known, documents, seed), anchors

    def _learn_queries(
        self, Z: np.ndarray, relevance: Relevance, points: np.ndarray, seed: int
    ) -> tuple[Any, ...]:
        rng = np.random.default_rng(seed)
        local = query_metrics(
            Z,
            relevance,
            points,
            min(self.n_metrics, relevance.n_queries),
            self._recipe(0),
            rng,
        )
        if len(local.factors) == 1:
            return local, Weights(np.ones((1, 1))), None
        lists, owner = judged_rows(relevance, rng)
        H = KERNELS[self.kernel](
            pair_squares(Z, lists.rows, points, owner, local.factors)
        )
        weights = self._weights(H, lists, None, seed)
        if weights.reference_profiles is not None:
            profiles = points[owner[lists.indptr[:-1]]]
            weights = weights._replace(reference_profiles=profiles)
        return local, weights, None

    def _fitting(
        self, sizes: np.ndarray, width: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Numbers of the lists whose distances fit the memory."""
        most = self.max_memory * 2**20 // (16 * width)
        order = rng.permutation(sizes.size)
        kept = order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), most)))]
        if kept.size < sizes.size:
            logger.info(
                "weights are learned from %d of %d lists", kept.size, sizes.size
            )
        return np.sort(kept)

    def _weights(
        self, H: np.ndarray, lists: Lists, documents: np.ndarray | None, seed: int
    ) -> Weights:
        if self.new_query_weights == "ones":
            return Weights(np.ones((1, H.shape[1])))
        if self.loss == "logistic":
            return self._logistic(H, lists, documents)
        descent = Descent(float(self.margin), float(self.step), int(self.n_steps), seed)
        if self.new_query_weights == "shared":
            return Weights(shared_warp(H, lists, descent)[None])
        each = each_warp(H, lists, descent)
        if self.new_query_weights == "mean":
            return Weights(each.mean(axis=0, keepdims=True))
        if documents is None:
            # Queries with vectors: `_learn_queries` puts these in their place.
            return Weights(each, reference_profiles=np.zeros((len(each), 1)))
        profiles = [list_profile(documents[lists.part(q)]) for q in range(len(lists))]
        return Weights(each, reference_profiles=np.stack(profiles))

    def _logistic(
        self, H: np.ndarray, lists: Lists, documents: np.ndarray | None
    ) -> Weights:
        # A mean taken off a column changes no difference of two scores.
        spread = H.std(axis=0, dtype=np.float64)
        spread[spread == 0] = np.inf
        m, own = H.shape[1], documents is None
        columns = (H.mean(axis=0) - H) / spread.astype(H.dtype)
        if documents is not None and self.features:
            columns = np.hstack([columns, documents])
        w = logistic_weights(
            columns,
            lists,
            weight_reg=float(self.weight_reg),
            k=int(self.k),
            positive=m if own else 0,
            max_iter=int(self.max_iter),
        )
        return Weights((w[:m] / spread)[None], w[m:] if columns.shape[1] > m else None)

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
            self, X, reset=False, dtype=FLOATS, ensure_all_finite="allow-nan"
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
            Length of the lists; all items by default.
        qid : array-like of shape (n_items,), optional
            The query of each candidate, after learning from candidate lists.

        Returns
        -------
        Ranking
        """
        check_is_fitted(self)
        if not self.metric_.has_anchors:
            return self.metric_.rank(Q, X, k)
        if Q is not None or X is None or qid is None:
            raise ValueError(
                "this model was learned from candidate lists, whose queries have no vectors: call "
                "rank(X=X, qid=qid)."
            )
        ranking = Ranking.from_groups(-self.predict(X, qid=qid), qid)
        return ranking if k is None else ranking.top(k)

    def _score_lists(self, X: np.ndarray, lists: np.ndarray) -> np.ndarray:
        return self.metric_.scores(X, lists)

    def _searchable(self, X: Any, Q: Any) -> tuple[Any, Any]:
        return LocalIndex(X, self.metric_), Q

    # ------------------------------------------------------------------ checks

    def _check_params(self) -> None:
        for name in (
            "n_metrics",
            "n_neighbors",
            "k",
            "n_steps",
            "max_iter",
            "max_memory",
        ):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        for name in ("n_components", "n_directions"):
            if getattr(self, name) is not None:
                check_scalar(getattr(self, name), name, Integral, min_val=0)
        for name in ("t", "pooling"):
            check_scalar(getattr(self, name), name, Real, min_val=0, max_val=1)
        for name in ("reg", "weight_reg", "margin"):
            check_scalar(getattr(self, name), name, Real, min_val=0)
        check_scalar(self.step, "step", Real, min_val=0, include_boundaries="neither")
        check_choice(self.kernel, "kernel", KERNELS)
        check_choice(self.loss, "loss", ("logistic", "warp"))
        check_choice(self.new_query_weights, "new_query_weights", NEW_QUERY_WEIGHTS)
        if self.new_query_weights in ("mean", "nearest") and self.loss != "warp":
            raise ValueError(
                f"new_query_weights={self.new_query_weights!r} needs weights of each query: pass loss='warp' with it."
            )
