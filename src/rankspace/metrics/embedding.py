"""Metrics that map queries and items to vectors: linear, bilinear and asymmetric."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from .._engine.checks import SIMILARITIES, check_choice
from .._engine.rows import check_n_features, float_rows, ready_vector
from .._engine.similarity import unit_rows
from .._engine.vectors import check_no_overflow, power_of_two
from .explanation import (
    Explanation,
    ScoreForm,
    explain_form,
    explain_with_other,
    has_same_form,
    one_row,
)
from .reduction import (
    check_width,
    principal_directions,
    reducing_map,
    sample_items,
)
from .storage import StoredMetric, read_only_array

if TYPE_CHECKING:
    from ..search.index import Index


class EmbeddingMetric(StoredMetric):
    """A metric that maps queries and items to vectors, which a vector index can store.

    Attributes
    ----------
    similarity : {"cosine", "dot", "euclidean"}
        What unmapped vectors are compared by. With "cosine", queries and items are brought to unit
        length before they are mapped; a zero vector is an error. Otherwise they are mapped as they
        are.
    inner_product : bool
        How mapped vectors are compared: by inner product, or else by Euclidean distance.
    """

    inner_product: bool
    symmetric: bool  # queries and items are mapped alike
    similarity: str
    similarities: ClassVar[tuple[str, ...]]  # those that the class can have
    query_map: np.ndarray  # (n_components, n_query_features)
    item_map: np.ndarray  # (n_components, n_features)
    query_offset: np.ndarray  # (n_components,), added to mapped queries

    @property
    def n_features(self) -> int:
        """Number of features of an item."""
        return self.item_map.shape[1]

    def embed_items(self, X: Any) -> np.ndarray:
        """Map items to the vectors to store in an index; one vector gives one vector."""
        return self._map_vectors(X, "item_map", "X")

    def embed_queries(self, Q: Any) -> np.ndarray:
        """Map queries to the vectors to search an index for; one vector gives one vector."""
        if self.symmetric:
            return self._map_vectors(Q, "item_map", "Q")
        mapped = self._map_vectors(Q, "query_map", "Q")
        return mapped + self._in_precision("query_offset", mapped.dtype)

    def distances(self, Q: Any, X: Any) -> np.ndarray:
        from scipy.spatial.distance import cdist

        queries = self.embed_queries(Q)
        items = self.embed_items(X)
        if self.inner_product:
            products = queries @ items.T
            check_no_overflow(products, "inner products")
            return -products
        # A power of two rounds nothing, and keeps squares from underflow and overflow.
        unit = max(power_of_two(queries), power_of_two(items))
        distances = cdist(queries / unit, items / unit) * unit
        return distances.astype(np.result_type(queries, items), copy=False)

    def reduce(self, X: Any, n_components: int) -> Self:
        """Reduce the dimension of mapped vectors, for a smaller index.

        The maps are followed by a projection on the first principal components of the mapped
        items, which keeps as much of their variance as so few dimensions can. They are turned by
        iterative quantization, so that signs alone say much (`QuantisedMetric`). At full width no
        ranking changes. Both sides are mapped then: items have to be embedded anew.

        Parameters
        ----------
        X : path or array-like of shape (n_items, n_features)
            The items to search, or a large sample of them.
        n_components : int
            Number of dimensions to keep.

        Returns
        -------
        LinearMetric, BilinearMetric or AsymmetricMetric
            A metric of the same kind.

        Examples
        --------
        >>> import numpy as np
        >>> from rankspace import BilinearMetric
        >>> X = np.array([[3.0, 0.1], [-1.0, 0.0], [-2.0, -0.1]])
        >>> metric = BilinearMetric(np.eye(2), np.eye(2)).reduce(X, 1)
        >>> metric.embed_items(X).round(1).ravel()
        array([ 3., -1., -2.])
        """
        from .._engine.parallel.threads import single_threaded_blas
        from ..search.exact import as_vectors

        n_components = check_width(n_components, len(self.item_map))
        X = as_vectors(X, "X")
        check_n_features(X, self.n_features, "X")
        with single_threaded_blas():
            directions = principal_directions(self, X)
            sample = sample_items(self, X)
            return self.project(reducing_map(directions, n_components, sample))

    def project(self, directions: Any) -> Self:
        """The metric with mapped vectors projected on some directions.

        Parameters
        ----------
        directions : array-like of shape (n_directions, n_components)
            Orthonormal rows.

        Returns
        -------
        LinearMetric, BilinearMetric or AsymmetricMetric
            A metric of the same kind.
        """
        directions = np.asarray(directions)
        arrays = {}
        for name in self.arrays:
            array = getattr(self, name)
            projected = directions @ array.astype(float)
            arrays[name] = projected.astype(array.dtype, copy=False)
        parameters = {**self.parameters, "n_components": len(directions)}
        return self._restore(arrays, parameters, {"similarity": self.similarity})

    def _explain(self, q: Any, x: Any, baseline: Any, training: Any) -> Explanation:
        q = one_row(q, "q", self.query_map.shape[1])
        x = one_row(x, "x", self.n_features)
        if has_same_form(self, baseline):
            return explain_form(self._form(baseline), q, x, training)
        explained = explain_form(self._form(None), q, x, training)
        return explain_with_other(explained, baseline, q, x)

    def _form(self, baseline: Any) -> ScoreForm:
        """The difference of scores from a baseline; the last one is kept, as it takes long."""
        last: ScoreForm | None = vars(self).get("_last_form")
        if last is None or last.baseline is not baseline:
            last = self._last_form = ScoreForm(self, baseline)
        return last

    def _map_vectors(self, X: Any, side: str, name: str) -> np.ndarray:
        """Mapped rows, or one mapped vector."""
        if np.ndim(X) != 1:
            return self._map_rows(X, side, name)
        vector = np.asarray(X)
        ready = ready_vector(vector, unit=self.similarity == "cosine")
        if ready is None or ready.size != getattr(self, side).shape[1]:
            return self._map_rows(vector[None], side, name)[0]
        return self._product(ready, side)

    def _map_rows(self, X: Any, side: str, name: str) -> np.ndarray:
        """Rows under a map, brought to unit length first for the cosine."""
        X = _checked_rows(X, getattr(self, side).shape[1], name)
        if self.similarity == "cosine":
            X = unit_rows(X, name)
        return self._product(X, side)

    def _product(self, X: Any, side: str) -> np.ndarray:
        """Rows, or one vector, under a map in their own precision."""
        mapped = np.asarray(X.dot(self._in_precision(side, X.dtype).T))
        check_no_overflow(mapped, "vectors under the metric")
        return mapped

    def _in_precision(self, name: str, dtype: Any) -> np.ndarray:
        """A stored array in another precision, kept: converting a map takes longer than using it.

        Threads may convert it at the same time, to the same numbers.
        """
        array: np.ndarray = getattr(self, name)
        if array.dtype == dtype:
            return array
        converted = self._converted.get((name, dtype))
        if converted is None:
            converted = array.astype(dtype)
            self._converted[name, dtype] = converted
        return converted

    @cached_property
    def _converted(self) -> dict[tuple[str, Any], np.ndarray]:
        """Arrays in a precision other than the stored one."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_converted", "_last_form")
        return {name: v for name, v in vars(self).items() if name not in kept}

    def _index(self, X: Any) -> Index:
        from ..search.index import Index

        return Index(X, self)

    def _set_similarity(self, similarity: str) -> None:
        check_choice(similarity, "similarity", self.similarities)
        self.similarity = similarity

    def _header(self) -> dict[str, str]:
        return {**super()._header(), "similarity": self.similarity}

    @classmethod
    def _restore(
        cls,
        arrays: Mapping[str, np.ndarray],
        parameters: dict[str, Any],
        header: Mapping[str, str],
    ) -> Self:
        similarity = header.get("similarity", cls.similarities[0])
        return cls(**arrays, similarity=similarity, parameters=parameters)  # type: ignore[call-arg]

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, similarity={self.similarity!r})"


class LinearMetric(EmbeddingMetric):
    """Euclidean distance after a linear map: ``d(q, x) = |L q - L x|``.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        The map ``L``; the Mahalanobis matrix is ``W = L'L``.
    similarity : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", vectors are brought to unit length before they are mapped.
    parameters : mapping, optional
        How the metric was learned, as JSON values; saved with it.

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
    similarities = ("euclidean", "cosine")

    def __init__(
        self,
        components: Any,
        *,
        similarity: str = "euclidean",
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_similarity(similarity)
        self.components = _matrix(components, "components")
        self.query_map = self.components
        self.item_map = self.components
        self.query_offset = np.zeros(len(self.components), self.components.dtype)
        self.parameters = dict(parameters or {})

    @classmethod
    def identity(cls, n_features: int) -> LinearMetric:
        """The Euclidean distance of unmapped vectors."""
        return cls(np.eye(n_features), parameters={"method": "euclidean"})

    @classmethod
    def from_transformer(cls, transformer: Any) -> LinearMetric:
        """The metric of a fitted scikit-learn transformer that is an affine map.

        PCA, LDA, NCA, scalers and pipelines of these are affine. The map is found by transforming
        the unit vectors, so only the public ``transform`` is used.

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
        LinearMetric(components (2, 4), similarity='euclidean')
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(transformer)
        d = transformer.n_features_in_
        origin = np.asarray(transformer.transform(np.zeros((1, d))), dtype=float)
        axes = np.asarray(transformer.transform(np.eye(d)), dtype=float)
        components = (axes - origin).T
        # Several scales: a kernel or a clipped scaler may be flat near the origin.
        for scale in (1.0, 1e2, 1e4, 1e6):
            probe = scale * np.random.default_rng(0).standard_normal((3, d))
            images = np.asarray(transformer.transform(probe), dtype=float)
            error = np.abs(probe @ components.T + origin - images).max()
            if not error <= 1e-6 * np.abs(images - origin).max():
                raise ValueError(
                    f"transformer must be an affine map: {transformer!r} is not."
                )
        return cls(components, parameters={"method": type(transformer).__name__})

    @property
    def matrix(self) -> np.ndarray:
        """The Mahalanobis matrix ``W = L'L``."""
        return self.components.T @ self.components

    @property
    def spectrum(self) -> np.ndarray:
        """Eigenvalues of ``W``, largest first, without those that the rank makes zero."""
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
        return self._map_rows(X, "item_map", "X")

    def pair_distances(self, U: Any, V: Any) -> np.ndarray:
        """Distance of each row of one matrix from the same row of another.

        Parameters
        ----------
        U, V : array-like of shape (n, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n,)
        """
        n_features = self.n_features
        U, V = _checked_rows(U, n_features, "U"), _checked_rows(V, n_features, "V")
        if self.similarity == "cosine":
            U, V = unit_rows(U, "U"), unit_rows(V, "V")
        # Differences are mapped, not points, which may lie far from the origin.
        mapped = (U - V) @ self.components.T.astype(U.dtype, copy=False)
        # A power of two rounds nothing, and keeps squares from underflow and overflow.
        unit = power_of_two(mapped)
        return np.linalg.norm(mapped / unit, axis=1) * mapped.dtype.type(unit)


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
        similarity: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_similarity(similarity or self.similarities[0])
        self.query_map = _matrix(query_map, "query_map")
        self.item_map = _matrix(item_map, "item_map")
        if query_offset is None:
            query_offset = np.zeros(len(self.query_map), dtype=self.query_map.dtype)
        self.query_offset = read_only_array(query_offset, "query_offset", 1)
        self.parameters = dict(parameters or {})
        lengths = [len(getattr(self, name)) for name in self.arrays]
        if len(set(lengths)) > 1:
            raise ValueError(
                "query_map, item_map and query_offset must have the same number of rows: "
                f"got {lengths}."
            )


class BilinearMetric(_SeparateMaps):
    """A bilinear similarity, negated so that smaller is nearer: ``d(q, x) = -(A q + a)'(B x)``.

    Distances may be negative.

    Parameters
    ----------
    query_map : array-like of shape (n_components, n_query_features)
        The map ``A`` of queries.
    item_map : array-like of shape (n_components, n_features)
        The map ``B`` of items.
    query_offset : array-like of shape (n_components,), optional
        The vector ``a`` added to every mapped query; zero by default.
    similarity : {"dot", "cosine"}, default="dot"
        With "cosine", vectors are brought to unit length before they are mapped.
    parameters : mapping, optional
        How the metric was learned, as JSON values; saved with it.

    Examples
    --------
    >>> from rankspace import BilinearMetric
    >>> metric = BilinearMetric([[1.0, 0.0]], [[0.0, 1.0]])
    >>> metric.distances([[2.0, 0.0]], [[0.0, 3.0], [5.0, 1.0]])
    array([[-6., -2.]])
    """

    kind = "bilinear"
    inner_product = True
    similarities = ("dot", "cosine")


class AsymmetricMetric(_SeparateMaps):
    """Euclidean distance with separate maps of queries and items: ``d(q, x) = |A q + a - B x|``.

    Parameters
    ----------
    query_map : array-like of shape (n_components, n_query_features)
        The map ``A`` of queries.
    item_map : array-like of shape (n_components, n_features)
        The map ``B`` of items.
    query_offset : array-like of shape (n_components,), optional
        The vector ``a`` added to every mapped query; zero by default.
    similarity : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", vectors are brought to unit length before they are mapped.
    parameters : mapping, optional
        How the metric was learned, as JSON values; saved with it.

    Examples
    --------
    >>> from rankspace import AsymmetricMetric
    >>> metric = AsymmetricMetric([[1.0, 0.0]], [[0.0, 1.0]])
    >>> metric.distances([[2.0, 0.0]], [[0.0, 3.0], [5.0, 1.5]])
    array([[1. , 0.5]])
    """

    kind = "asymmetric"
    inner_product = False
    similarities = ("euclidean", "cosine")


def unchanged_metric(
    n_features: int, similarity: str, dtype: Any = np.float64
) -> EmbeddingMetric:
    """The similarity of unmapped vectors as a metric, the baseline without learning.

    Parameters
    ----------
    n_features : int
        Number of features.
    similarity : {"cosine", "dot", "euclidean"}
        Inner product at unit length, inner product, or Euclidean distance.
    dtype : dtype, default=float64
        Precision of the maps.

    Returns
    -------
    LinearMetric or BilinearMetric
        With identity maps.

    Examples
    --------
    >>> from rankspace.metrics import unchanged_metric
    >>> unchanged_metric(2, "cosine").distances([[3.0, 0.0]], [[0.0, 9.0], [5.0, 0.0]])
    array([[-0., -1.]])
    """
    check_choice(similarity, "similarity", SIMILARITIES)
    identity = np.eye(n_features, dtype=dtype)
    if similarity == "euclidean":
        return LinearMetric(identity, parameters={"method": "euclidean"})
    return BilinearMetric(
        identity, identity, similarity=similarity, parameters={"method": similarity}
    )


def _matrix(values: Any, name: str) -> np.ndarray:
    matrix = read_only_array(values, name, 2)
    if not matrix.size:
        raise ValueError(f"{name} must not be empty: got shape {matrix.shape}.")
    return matrix


def _checked_rows(X: Any, n_features: int, name: str) -> Any:
    """Finite rows of floats with so many features, dense or sparse."""
    X = float_rows(X, name, accept_sparse=("csr", "csc"))
    check_n_features(X, n_features, name)
    return X
