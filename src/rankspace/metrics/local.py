"""Distances that are measured by many metrics at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from .._engine.checks import check_choice
from .._engine.parallel.threads import thread_map
from ..search.ranking import Ranking
from .embedding import EmbeddingMetric, _frozen
from .feature_scaling import FeatureScaling
from .local_distances import BLOCK, KERNELS, Anchored, list_profile
from .local_index import LocalIndex
from .storage import StoredMetric

SCALING_ARRAYS = ("fill", "offset", "scale", "knots", "values")


class Reason(NamedTuple):
    """What one metric, or one feature, adds to the score of a row beyond that of the others."""

    name: str
    contribution: float


class LocalMetric(StoredMetric):
    """A weighted sum of what several metrics see: ``f(x) = sum_r w_r h(|L_r (x - p_r)|)``.

    With anchors p_r it measures how far a document is from ideal ones, whatever the query, and may
    add a linear function of the features; without, each query is the anchor of all metrics. The
    weights may be those of the training queries most like the one at hand. Smaller is nearer;
    scores are minus these distances.

    Parameters
    ----------
    factors : array-like of shape (n_metrics, n_components, n_scaled)
        The maps L_r, of scaled features.
    weights : array-like of shape (n_metrics,) or (n_sites, n_metrics)
        The weights w_r, or those of each site.
    anchors : array-like of shape (n_metrics, n_scaled), optional
        The points p_r. By default the query itself.
    linear : array-like of shape (n_scaled,), optional
        What a unit of each feature adds to the score of a document.
    kernel : {"rbf", "paper", "distance"}, default="rbf"
        The function h: ``1 - exp(-d^2/2)``, ``d exp(-d)`` or ``d``.
    scaling : FeatureScaling, optional
        What is done to features first; nothing by default.
    sites : array-like of shape (n_sites, n_profile), optional
        Where weights were learned: vectors of queries, or means and standard deviations of lists.
    n_neighbors : int, default=10
        How many sites the weights are averaged over.
    parameters : mapping, optional
        How it was learned, as JSON can hold it; stored with the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LocalMetric
    >>> metric = LocalMetric(np.ones((1, 1, 1)), [1.0], anchors=[[3.0]], kernel="distance")
    >>> metric.scores(np.array([[1.0], [2.5]]))
    array([-2. , -0.5])
    """

    kind = "local"
    arrays = ("factors", "weights", "anchors", "linear", "sites", *SCALING_ARRAYS)

    def __init__(
        self,
        factors: Any,
        weights: Any,
        *,
        anchors: Any = None,
        linear: Any = None,
        kernel: str = "rbf",
        scaling: FeatureScaling | None = None,
        sites: Any = None,
        n_neighbors: int = 10,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        check_choice(kernel, "kernel", KERNELS)
        self.factors = _array(factors, "factors", 3)
        m, _, d = self.factors.shape
        none = np.zeros((0, d))
        self.weights = _array(np.atleast_2d(weights), "weights", 2)
        self.anchors = _array(none if anchors is None else anchors, "anchors", 2)
        self.linear = _array(np.zeros(0) if linear is None else linear, "linear", 1)
        self.sites = _array(none if sites is None else sites, "sites", 2)
        self.scaling = scaling if scaling is not None else _no_scaling(d)
        for name in SCALING_ARRAYS:
            setattr(self, name, getattr(self.scaling, name))
        self.kernel = kernel
        self._stacks: dict[str, Anchored] = {}
        self.n_neighbors = int(n_neighbors)
        own = {
            "kernel": kernel,
            "scaling": self.scaling.kind,
            "n_neighbors": self.n_neighbors,
        }
        self.parameters = {**(parameters or {}), **own}
        self._check_shapes(m, d)

    def _check_shapes(self, m: int, d: int) -> None:
        rows = len(self.weights)
        wrong = (
            self.weights.shape != (rows, m)
            or rows != max(1, len(self.sites))
            or self.anchors.shape not in ((0, d), (m, d))
            or self.linear.size not in (0, d)
            or self.scaling.n_scaled != d
        )
        if wrong:
            raise ValueError(
                f"{m} metrics of {d} scaled features need as many weights for each site, as many "
                f"anchors or none, and features scaled to {d}: got weights {self.weights.shape}, "
                f"sites {self.sites.shape}, anchors {self.anchors.shape}, linear "
                f"{self.linear.shape}, and {self.scaling.n_scaled} features after scaling."
            )

    @classmethod
    def _restore(
        cls, arrays: Mapping[str, np.ndarray], parameters: dict[str, Any]
    ) -> Self:
        own = {key: parameters.pop(key) for key in ("kernel", "scaling", "n_neighbors")}
        scaling = FeatureScaling(
            own["scaling"], *(arrays[name] for name in SCALING_ARRAYS)
        )
        optional = {
            name: arrays[name] if arrays[name].size else None
            for name in ("anchors", "linear", "sites")
        }
        return cls(
            arrays["factors"],
            arrays["weights"],
            **optional,
            kernel=own["kernel"],
            scaling=scaling,
            n_neighbors=own["n_neighbors"],
            parameters=parameters,
        )

    @property
    def n_features(self) -> int:
        """Number of features it takes."""
        return self.fill.size  # type: ignore[attr-defined]

    @property
    def n_metrics(self) -> int:
        """Number of metrics."""
        return len(self.factors)

    @property
    def has_anchors(self) -> bool:
        """Whether it measures from documents of its own, and not from queries."""
        return len(self.anchors) > 0

    # ------------------------------------------------------------------ candidate lists

    def scores(self, X: Any, qid: Any = None) -> np.ndarray:
        """Scores of candidate documents; within a query, larger is better.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Documents.
        qid : array-like of shape (n,), optional
            The query of each document; needed if weights are those of alike queries.

        Returns
        -------
        ndarray of shape (n,)
        """
        X = self._documents(X)
        if not len(self.sites):
            return self._sum(X, self.weights[0])
        if qid is None:
            raise ValueError(
                "weights are those of the most alike queries: pass qid=...."
            )
        names, owner = np.unique(np.asarray(qid), return_inverse=True)
        scores = np.empty(len(X), dtype=X.dtype)
        for q in range(names.size):
            rows = np.flatnonzero(owner == q)
            weights = self.weights_at(list_profile(self.scaling.apply(X[rows]))[None])[
                0
            ]
            scores[rows] = self._sum(X[rows], weights)
        return scores

    def _sum(self, X: np.ndarray, weights: np.ndarray) -> np.ndarray:
        weights = weights.astype(X.dtype)
        scores = np.empty(len(X), dtype=X.dtype)
        step = max(16, BLOCK // self.factors[:, :, 0].size)

        def work(start: int) -> None:
            Z = self.scaling.apply(X[start : start + step])
            found = self._heights(Z) @ -weights
            scores[start : start + step] = found + Z @ self._linear(X.dtype)

        for _ in thread_map(work, range(0, len(X), step), depth=4):
            pass
        return scores

    def _linear(self, dtype: Any) -> np.ndarray:
        if not self.linear.size:
            return np.zeros(self.factors.shape[2], dtype=dtype)
        return self.linear.astype(dtype)

    def _heights(self, Z: np.ndarray) -> np.ndarray:
        if Z.dtype.name not in self._stacks:
            self._stacks[Z.dtype.name] = Anchored.of(
                self.factors, self.anchors, Z.dtype
            )
        return KERNELS[self.kernel](self._stacks[Z.dtype.name].squares(Z))

    def weights_at(self, profiles: np.ndarray) -> np.ndarray:
        """Weights of metrics for queries: those of the nearest sites on average, or of all.

        Parameters
        ----------
        profiles : ndarray of shape (n_queries, n_profile)
            Scaled vectors of queries, or profiles of lists.

        Returns
        -------
        ndarray of shape (n_queries, n_metrics)
        """
        if not len(self.sites):
            return np.broadcast_to(self.weights, (len(profiles), self.n_metrics))
        from scipy.spatial.distance import cdist

        order = np.argsort(cdist(profiles, self.sites), axis=1, kind="stable")
        return self.weights[order[:, : self.n_neighbors]].mean(axis=1)

    def contributions(self, X: Any) -> np.ndarray:
        """What each metric, then each scaled feature, adds to the score of documents.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Documents.

        Returns
        -------
        ndarray of shape (n, n_metrics + n_scaled)
            Rows add up to the scores, if weights do not depend on the query.
        """
        Z = self.scaling.apply(self._documents(X))
        weights = self.weights.mean(axis=0)
        return np.hstack([self._heights(Z) * -weights, Z * self._linear(Z.dtype)])

    def explain(self, X: Any, top: int = 3) -> list[list[Reason]]:
        """Which anchors and features set each document of a list apart from the others.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            The documents of one list.
        top : int, default=3
            How many reasons for each.

        Returns
        -------
        list of list of Reason
            For each document, the largest differences from the mean of the list first.
        """
        parts = self.contributions(X)
        parts = parts - parts.mean(axis=0)
        order = np.argsort(-np.abs(parts), axis=1, kind="stable")[:, :top]
        return [
            [Reason(self._name(j), float(row[j])) for j in best]
            for row, best in zip(parts, order.tolist(), strict=True)
        ]

    def _name(self, column: int) -> str:
        m = self.n_metrics
        return (
            f"anchor {column}"
            if column < m
            else f"feature {(column - m) % self.n_features}"
        )

    def _documents(self, X: Any) -> np.ndarray:
        if not self.has_anchors:
            raise ValueError(
                "this metric measures from queries: use rank, rerank or distances."
            )
        return self._checked(X, "X")

    # ------------------------------------------------------------------ queries with vectors

    def distances(self, Q: Any, X: Any) -> np.ndarray:
        """Distances of each query from each item.

        Parameters
        ----------
        Q, X : array-like of shape (n_queries, n_features) and (n_items, n_features)
            Queries and items.

        Returns
        -------
        ndarray of shape (n_queries, n_items)
        """
        return LocalIndex(X, self).distances(Q)

    def rank(self, Q: Any, X: Any, k: int | None = None) -> Ranking:
        """List the nearest rows of ``X`` for each query.

        Parameters
        ----------
        Q, X : array-like of shape (n_queries, n_features) and (n_items, n_features)
            Queries and items.
        k : int, optional
            Length of the lists; all items by default.

        Returns
        -------
        Ranking
        """
        return LocalIndex(X, self).rank(Q, k)

    def rerank(self, Q: Any, X: Any, candidates: Ranking | Sequence[Any]) -> Ranking:
        """Sort a shortlist of each query, as any index proposes it.

        Local metrics are no distance of two vectors, so no index finds the nearest items by itself.

        Parameters
        ----------
        Q, X : array-like of shape (n_queries, n_features) and (n_items, n_features)
            Queries and items.
        candidates : Ranking or sequence of array-like of int
            Rows of ``X`` for each query.

        Returns
        -------
        Ranking
        """
        return LocalIndex(X, self).rerank(Q, candidates)

    def _checked(self, X: Any, name: str) -> np.ndarray:
        from sklearn.utils import check_array

        X = check_array(
            X,
            dtype=(np.float64, np.float32),
            input_name=name,
            ensure_all_finite="allow-nan",
        )
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"{name} must have {self.n_features} features: got {X.shape[1]}."
            )
        return X


def _no_scaling(d: int) -> FeatureScaling:
    none = np.zeros((d, 0))
    return FeatureScaling("none", np.zeros(d), np.zeros(d), np.ones(d), none, none)


def _array(values: Any, name: str, n_dims: int) -> np.ndarray:
    array = np.array(values, order="C")
    if array.ndim != n_dims:
        raise ValueError(
            f"{name} must have {n_dims} dimensions: got shape {array.shape}."
        )
    return _frozen(array, name)


Metric = EmbeddingMetric | LocalMetric
