"""Metrics that map queries and items to vectors: linear, bilinear and asymmetric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..search.index import Index
from ..search.ranking import Ranking
from .storage import StoredMetric


class EmbeddingMetric(StoredMetric):
    """A metric that maps queries and items to vectors, which an index can hold."""

    inner_product: bool  # whether minus their inner product is the distance
    symmetric: bool  # whether both are mapped in the same way
    query_map: (
        Any  # the maps of queries and of items, and what is added to mapped queries
    )
    item_map: Any
    query_offset: Any

    def embed_items(self, X: Any) -> np.ndarray:
        """Vectors of items for an index."""
        return _product(X, self.item_map)

    def embed_queries(self, Q: Any) -> np.ndarray:
        """Vectors of queries for an index."""
        mapped = _product(Q, self.query_map)
        return (
            mapped
            if self.symmetric
            else mapped + self.query_offset.astype(mapped.dtype, copy=False)
        )

    def distances(self, Q: Any, X: Any) -> np.ndarray:
        """Distances of each query from each item; minus their similarity if it ranks by one.

        Parameters
        ----------
        Q, X : array-like of shape (n_queries, n_query_features) and (n_items, n_features)
            Queries and items.

        Returns
        -------
        ndarray of shape (n_queries, n_items)
        """
        from scipy.spatial.distance import cdist

        queries, items = self.embed_queries(Q), self.embed_items(X)
        if self.inner_product:
            return -(queries @ items.T)
        return cdist(queries, items).astype(np.result_type(queries, items), copy=False)

    def rank(self, Q: Any, X: Any, k: int | None = None) -> Ranking:
        """List the nearest rows of ``X`` for each query; see `Index.rank`."""
        return Index(X, self).rank(Q, k)


class LinearMetric(EmbeddingMetric):
    """Euclidean distance after a linear map: ``d(q, x) = |L q - L x|``.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        The map ``L``; the Mahalanobis matrix is ``W = L'L``.
    parameters : mapping, optional
        How it was learned, as JSON can hold it; stored with the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> metric = LinearMetric([[1.0, 0.0]])
    >>> metric.distances([[0.0, 9.0]], [[2.0, 0.0], [1.0, 5.0]])
    array([[2., 1.]])
    """

    kind = "linear"
    arrays = ("components",)
    inner_product = False
    symmetric = True

    def __init__(
        self, components: Any, *, parameters: Mapping[str, Any] | None = None
    ) -> None:
        self.components = _matrix(components, "components")
        self.parameters = dict(parameters or {})

    @classmethod
    def identity(cls, n_features: int) -> LinearMetric:
        """Plain Euclidean distance."""
        return cls(np.eye(n_features), parameters={"method": "euclidean"})

    @classmethod
    def from_transformer(cls, transformer: Any) -> LinearMetric:
        """The metric of a fitted scikit-learn transformer that is an affine map.

        PCA, LDA, NCA, scalers and pipelines of them are; the map is read off by transforming the
        axes, so nothing of their insides is used.

        Parameters
        ----------
        transformer : fitted transformer
            Must have ``n_features_in_`` and ``transform``.

        Returns
        -------
        LinearMetric

        Examples
        --------
        >>> from sklearn.decomposition import PCA
        >>> from sklearn.datasets import load_iris
        >>> from rankspace import LinearMetric
        >>> pca = PCA(n_components=2).fit(load_iris().data)
        >>> LinearMetric.from_transformer(pca)
        LinearMetric(components (2, 4))
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(transformer)
        d = transformer.n_features_in_
        origin, axes = (
            np.asarray(transformer.transform(points), dtype=float)
            for points in (np.zeros((1, d)), np.eye(d))
        )
        components = (axes - origin).T
        for size in (1.0, 1e2, 1e4, 1e6):
            probe = size * np.random.default_rng(0).standard_normal((3, d))
            images = np.asarray(transformer.transform(probe), dtype=float)
            error = np.abs(probe @ components.T + origin - images).max()
            if not error <= 1e-6 * np.abs(images - origin).max():
                raise ValueError(
                    f"transformer must be an affine map: {transformer!r} is not."
                )
        return cls(components, parameters={"method": type(transformer).__name__})

    @property
    def n_features(self) -> int:
        """Number of features it takes."""
        return self.components.shape[1]

    @property
    def query_map(self) -> np.ndarray:
        """The map of queries, L; `item_map`, that of items, is the same."""
        return self.components

    item_map = query_map

    @property
    def query_offset(self) -> np.ndarray:
        """What is added to mapped queries: nothing."""
        return np.zeros(len(self.components), dtype=self.components.dtype)

    @property
    def matrix(self) -> np.ndarray:
        """The Mahalanobis matrix ``W = L'L``."""
        return self.components.T @ self.components

    @property
    def spectrum(self) -> np.ndarray:
        """Eigenvalues of ``W`` that may differ from zero, largest first."""
        return np.linalg.svd(self.components, compute_uv=False) ** 2

    def transform(self, X: Any) -> np.ndarray:
        """Map points into the space where the metric is Euclidean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Points; float32 gives float32.

        Returns
        -------
        ndarray of shape (n, n_components)
        """
        return _product(X, self.components)


class _SeparateMaps(EmbeddingMetric):
    """One map for queries and another for items."""

    arrays = ("query_map", "item_map", "query_offset")
    symmetric = False

    def __init__(
        self,
        query_map: Any,
        item_map: Any,
        *,
        query_offset: Any = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.query_map = _matrix(query_map, "query_map")
        self.item_map = _matrix(item_map, "item_map")
        if len(self.query_map) != len(self.item_map):
            raise ValueError(
                "query_map and item_map must have the same number of rows: got "
                f"{len(self.query_map)} and {len(self.item_map)}."
            )
        if query_offset is None:
            query_offset = np.zeros(len(self.query_map), dtype=self.query_map.dtype)
        self.query_offset = _vector(query_offset, len(self.query_map), "query_offset")
        self.parameters = dict(parameters or {})

    @property
    def n_features(self) -> int:
        """Number of features of an item."""
        return self.item_map.shape[1]


class BilinearMetric(_SeparateMaps):
    """Minus a similarity of mapped queries and items: ``d(q, x) = -(A q + a)'(B x)``.

    Smaller is nearer, as everywhere; it is no distance in the strict sense and may be negative.

    Parameters
    ----------
    query_map : array-like of shape (n_components, n_query_features)
        The map ``A`` of queries.
    item_map : array-like of shape (n_components, n_features)
        The map ``B`` of items.
    query_offset : array-like of shape (n_components,), optional
        What is added to every mapped query, ``a``; zero by default.
    parameters : mapping, optional
        How it was learned, as JSON can hold it; stored with the metric.

    Examples
    --------
    >>> from rankspace import BilinearMetric
    >>> metric = BilinearMetric([[1.0, 0.0]], [[0.0, 1.0]])
    >>> metric.distances([[2.0, 0.0]], [[0.0, 3.0], [5.0, 1.0]])
    array([[-6., -2.]])
    """

    kind = "bilinear"
    inner_product = True


class AsymmetricMetric(_SeparateMaps):
    """Euclidean distance of mapped queries from mapped items: ``d(q, x) = |A q + a - B x|``.

    Parameters
    ----------
    query_map : array-like of shape (n_components, n_query_features)
        The map ``A`` of queries.
    item_map : array-like of shape (n_components, n_features)
        The map ``B`` of items.
    query_offset : array-like of shape (n_components,), optional
        What is added to every mapped query, ``a``; zero by default.
    parameters : mapping, optional
        How it was learned, as JSON can hold it; stored with the metric.

    Examples
    --------
    >>> from rankspace import AsymmetricMetric
    >>> metric = AsymmetricMetric([[1.0, 0.0]], [[0.0, 1.0]])
    >>> metric.distances([[2.0, 0.0]], [[0.0, 3.0], [5.0, 1.5]])
    array([[1. , 0.5]])
    """

    kind = "asymmetric"
    inner_product = False


def _matrix(values: Any, name: str) -> np.ndarray:
    matrix = np.array(values, order="C")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"{name} must be a non-empty matrix: got shape {matrix.shape}."
        )
    return _frozen(matrix, name)


def _vector(values: Any, size: int, name: str) -> np.ndarray:
    vector = np.array(values)
    if vector.shape != (size,):
        raise ValueError(
            f"{name} must be a vector of {size} entries: got shape {vector.shape}."
        )
    return _frozen(vector, name)


def _frozen(array: np.ndarray, name: str) -> np.ndarray:
    """As finite floats that cannot be changed."""
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: got NaN or infinity.")
    array.flags.writeable = False
    return array


def _product(X: Any, components: np.ndarray) -> np.ndarray:
    """``X @ components.T`` in the precision of ``X``."""
    from sklearn.utils import check_array

    if getattr(X, "dtype", None) == np.float16:
        X = X.astype(np.float32)
    X = check_array(X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
    if X.shape[1] != components.shape[1]:
        raise ValueError(
            f"X must have {components.shape[1]} features: got {X.shape[1]}."
        )
    return np.asarray(X @ components.T.astype(X.dtype, copy=False))
