"""What was learned: a distance, ready to transform, rank and be stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from .._engine.files import replacing
from .._engine.text import PathLike
from ..search.index import Index
from ..search.ranking import Ranking

if TYPE_CHECKING:
    from .local import LocalMetric

FORMAT_VERSION = 1


class _Stored:
    """A metric that is a few matrices and a mapping of parameters."""

    kind: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]]
    parameters: dict[str, Any]

    def save(self, path: PathLike) -> None:
        """Write one safetensors file, with version and parameters in its header.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced once the new one is complete.
        """
        from safetensors.numpy import save

        header = {
            "rankspace_format": str(FORMAT_VERSION),
            "kind": self.kind,
            "parameters": json.dumps(self.parameters),
        }
        content = save({name: getattr(self, name) for name in self.arrays}, header)
        with replacing(path) as stream:
            stream.write(content)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a metric of this kind; see `load_metric`.

        Parameters
        ----------
        path : path
            A file written by `save`.
        """
        metric = load_metric(path)
        if not isinstance(metric, cls):
            raise ValueError(f"{path} must hold a {cls.__name__}: got {metric!r}.")
        return metric

    @classmethod
    def _restore(cls, arrays: Mapping[str, np.ndarray], parameters: dict[str, Any]) -> Self:
        return cls(**arrays, parameters=parameters)  # type: ignore[call-arg]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {getattr(self, name).shape}" for name in self.arrays)
        return f"{type(self).__name__}({shapes})"


class _Embedding(_Stored):
    """A metric that maps queries and items to vectors, which an index can hold."""

    inner: bool  # whether minus their inner product is the distance
    alike: bool  # whether both are mapped in the same way
    left: Any  # the maps of queries and of items, and what is added to mapped queries
    right: Any
    offset: Any

    def embed_items(self, X: Any) -> np.ndarray:
        """Vectors of items for an index."""
        return _product(X, self.right)

    def embed_queries(self, Q: Any) -> np.ndarray:
        """Vectors of queries for an index."""
        mapped = _product(Q, self.left)
        return mapped if self.alike else mapped + self.offset.astype(mapped.dtype, copy=False)

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
        if self.inner:
            return -(queries @ items.T)
        return cdist(queries, items).astype(np.result_type(queries, items), copy=False)

    def rank(self, Q: Any, X: Any, k: int | None = None) -> Ranking:
        """List the nearest rows of ``X`` for each query; see `Index.rank`."""
        return Index(X, self).rank(Q, k)


class LinearMetric(_Embedding):
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
    inner = False
    alike = True

    def __init__(self, components: Any, *, parameters: Mapping[str, Any] | None = None) -> None:
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
                raise ValueError(f"transformer must be an affine map: {transformer!r} is not.")
        return cls(components, parameters={"method": type(transformer).__name__})

    @property
    def n_features(self) -> int:
        """Number of features it takes."""
        return self.components.shape[1]

    @property
    def left(self) -> np.ndarray:
        """The map of queries, L; `right`, that of items, is the same."""
        return self.components

    right = left

    @property
    def offset(self) -> np.ndarray:
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


class BilinearMetric(_Embedding):
    """Minus a similarity of mapped queries and items: ``d(q, x) = -(A q + a)'(B x)``.

    Smaller is nearer, as everywhere; it is no distance in the strict sense and may be negative.

    Parameters
    ----------
    left : array-like of shape (n_components, n_query_features)
        The map ``A`` of queries.
    right : array-like of shape (n_components, n_features)
        The map ``B`` of items.
    offset : array-like of shape (n_components,), optional
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
    arrays = ("left", "right", "offset")
    inner = True
    alike = False

    def __init__(
        self,
        left: Any,
        right: Any,
        *,
        offset: Any = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.left = _matrix(left, "left")
        self.right = _matrix(right, "right")
        zero = np.zeros(len(self.left), dtype=self.left.dtype)
        self.offset = _vector(zero if offset is None else offset, len(self.left), "offset")
        self.parameters = dict(parameters or {})
        if len(self.left) != len(self.right):
            raise ValueError(
                f"left and right must have the same number of rows: got {len(self.left)} and "
                f"{len(self.right)}."
            )

    @property
    def n_features(self) -> int:
        """Number of features of an item."""
        return self.right.shape[1]


# Those that map points to vectors, which an index can hold.
EmbeddingMetric = LinearMetric | BilinearMetric
Metric: TypeAlias = "LinearMetric | BilinearMetric | LocalMetric"


def load_metric(path: PathLike) -> Metric:
    """Read a metric that was saved.

    The file holds numbers and text only; reading it never runs anything.

    Parameters
    ----------
    path : path
        A file written by ``metric.save``.

    Returns
    -------
    LinearMetric, BilinearMetric, TwoMapMetric or LocalMetric

    Examples
    --------
    >>> import tempfile, os
    >>> from rankspace import LinearMetric, load_metric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "metric.safetensors")
    ...     LinearMetric([[1.0, 2.0]]).save(path)
    ...     load_metric(path)
    LinearMetric(components (1, 2))
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as stored:
            header = stored.metadata() or {}
            kind = _check_header(path, header)
            missing = set(kind.arrays) - set(stored.keys())
            if missing:
                raise ValueError(f"{path} lacks the matrix {sorted(missing)[0]!r}: save it again.")
            arrays = {name: stored.get_tensor(name) for name in kind.arrays}
    except (SafetensorError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} is no metric file, or is damaged or cut short ({error}). Save it again."
        ) from error
    try:
        return kind._restore(arrays, json.loads(header.get("parameters", "{}")))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} holds no valid metric: {error}") from error


def _check_header(path: PathLike, header: Mapping[str, str]) -> type[Metric]:
    version = header.get("rankspace_format")
    if version is None or not version.isdigit():
        raise ValueError(f"{path} was not written by rankspace: its header names no format.")
    if int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {version}, and this version of rankspace reads up to "
            f"{FORMAT_VERSION}: upgrade rankspace."
        )
    from .local import LocalMetric
    from .two_map import TwoMapMetric

    kinds: dict[str, type[Metric]] = {
        kind.kind: kind for kind in (LinearMetric, BilinearMetric, TwoMapMetric, LocalMetric)
    }
    if header.get("kind") not in kinds:
        raise ValueError(
            f"{path} must hold a metric of kind {' or '.join(kinds)}: got {header.get('kind')!r}."
        )
    return kinds[header["kind"]]


def _matrix(values: Any, name: str) -> np.ndarray:
    matrix = np.array(values, order="C")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must be a non-empty matrix: got shape {matrix.shape}.")
    return _frozen(matrix, name)


def _vector(values: Any, size: int, name: str) -> np.ndarray:
    vector = np.array(values)
    if vector.shape != (size,):
        raise ValueError(f"{name} must be a vector of {size} entries: got shape {vector.shape}.")
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
        raise ValueError(f"X must have {components.shape[1]} features: got {X.shape[1]}.")
    return np.asarray(X @ components.T.astype(X.dtype, copy=False))
