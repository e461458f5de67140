"""Kernel metrics: a linear metric of kernel values between a point and landmarks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from .._engine.checks import check_choice
from .._engine.rows import check_n_features, float_rows
from .._engine.vectors import check_no_overflow
from .embedding import LinearMetric
from .explanation import Explanation, explain_with_other, one_row
from .storage import StoredMetric, read_only_array

if TYPE_CHECKING:
    from ..search.index import Index

KERNEL_NAMES = ("rbf", "poly", "linear", "precomputed")


class Kernel(NamedTuple):
    """A kernel of two points.

    "rbf" is ``exp(-gamma |x - z|^2)``, "poly" is ``(gamma x'z + coef0)^degree``, "linear" is
    ``x'z``. "precomputed" stands for values that the user computes.
    """

    name: str
    gamma: float = 1.0
    coef0: float = 1.0
    degree: int = 3

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Kernel:
        """The kernel from its fields by name, checked."""
        unknown = set(fields) - set(cls._fields)
        if "name" not in fields or unknown:
            raise ValueError(
                f"a kernel needs a name, and may have gamma, coef0 and degree: got "
                f"{dict(fields)!r}."
            )
        check_choice(fields["name"], "the name of a kernel", KERNEL_NAMES)
        kernel = cls(**fields)
        kernel._check_numbers()
        return kernel

    def _check_numbers(self) -> None:
        for name, value in self._asdict().items():
            if name != "name" and not _is_number(value):
                raise ValueError(f"{name} of a kernel must be a number: got {value!r}.")
        whole = self.degree == int(self.degree) and self.degree >= 1
        if not (self.gamma > 0 and whole):
            raise ValueError(
                "a kernel needs gamma above 0 and degree 1, 2, 3 or so on: got "
                f"gamma={self.gamma!r} and degree={self.degree!r}."
            )
        if self.name == "poly" and self.coef0 < 0:
            raise ValueError(
                f"coef0 of a polynomial kernel must not be below 0: got {self.coef0!r}."
            )

    def __call__(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Kernel values of each row of X with each row of Z."""
        if self.name == "linear":
            return X @ Z.T
        if self.name == "poly":
            return (self.gamma * (X @ Z.T) + self.coef0) ** self.degree
        # From the mean of Z, so that products lose no digits to a common shift.
        centre = Z.mean(axis=0)
        X = X - centre
        Z = Z - centre
        squares = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2 * (X @ Z.T)
        return np.exp(-self.gamma * np.maximum(squares, 0))


def _is_number(value: Any) -> bool:
    """Whether a value is a finite number that fits into a float."""
    is_real = isinstance(value, Real) and not isinstance(value, bool)
    return is_real and abs(value) <= np.finfo(float).max


class KernelMetric(StoredMetric):
    """Euclidean distance after a linear map of kernel values: ``d(q, x) = |L k(q) - L k(x)|``.

    k(x) holds the kernel values of x with each landmark, kernel after kernel. So the metric is a
    feature map, `features`, and a linear metric, `linear`.

    Parameters
    ----------
    landmarks : array-like of shape (n_landmarks, n_features)
        The landmarks; of no features, (n_landmarks, 0), for a precomputed kernel, of which points
        are rows of kernel values with the training points.
    components : array-like of shape (n_components, n_kernels * n_landmarks)
        The map L.
    kernels : sequence of mappings
        Fields of each kernel: ``name`` ("rbf", "poly", "linear", "precomputed"), ``gamma``,
        ``coef0``, ``degree``.
    parameters : mapping, optional
        How the metric was learned, as JSON values; saved with it.

    Examples
    --------
    >>> from rankspace import KernelMetric
    >>> kernels = [{"name": "rbf", "gamma": 1.0}]
    >>> metric = KernelMetric([[0.0], [5.0]], [[1.0, 0.0]], kernels=kernels)
    >>> metric.distances([[0.0]], [[0.0], [9.0]]).round(6)
    array([[0., 1.]])
    """

    kind = "kernel"
    arrays = ("landmarks", "components")
    inner_product = False
    symmetric = True
    nonlinear = True
    similarity = "euclidean"

    def __init__(
        self,
        landmarks: Any,
        components: Any,
        *,
        kernels: Sequence[Mapping[str, Any]],
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.landmarks = read_only_array(landmarks, "landmarks", 2)
        self.components = read_only_array(components, "components", 2)
        self.kernels = tuple(Kernel.of(fields) for fields in kernels)
        self.parameters = dict(parameters or {})
        n_values = len(self.kernels) * len(self.landmarks)
        if not self.components.size or self.components.shape[1] != n_values:
            raise ValueError(
                "components must have rows, and a column for each kernel and landmark, here "
                f"{n_values}: got shape {self.components.shape}."
            )
        given = any(kernel.name == "precomputed" for kernel in self.kernels)
        is_bare = self.landmarks.shape[1] == 0
        if given != self.is_precomputed or given != is_bare:
            raise ValueError(
                "a precomputed kernel must be the only one, with landmarks of no features: got "
                f"{[kernel.name for kernel in self.kernels]} and landmarks of shape "
                f"{self.landmarks.shape}."
            )

    @property
    def is_precomputed(self) -> bool:
        """Whether points are given by their kernel values."""
        return len(self.kernels) == 1 and self.kernels[0].name == "precomputed"

    @property
    def n_features(self) -> int:
        """Number of features of a point, or of its kernel values if these are precomputed."""
        return len(self.landmarks) if self.is_precomputed else self.landmarks.shape[1]

    @cached_property
    def linear(self) -> LinearMetric:
        """The linear metric of `features`."""
        return LinearMetric(self.components, parameters=self.parameters)

    def features(self, X: Any) -> np.ndarray:
        """Kernel values of points with all landmarks, kernel after kernel.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n, n_kernels * n_landmarks)
            In double precision.
        """
        X = float_rows(X, "X")
        check_n_features(X, self.n_features, "X")
        with np.errstate(over="ignore", invalid="ignore"):
            values = kernel_values(self.kernels, X, self.landmarks)
        check_no_overflow(values, "kernel values")
        return values

    def embed_items(self, X: Any) -> np.ndarray:
        """Map points to vectors whose Euclidean distance is the metric; one gives one vector."""
        if np.ndim(X) == 1:
            return self.embed_items(np.asarray(X)[None])[0]
        X = float_rows(X, "X")
        mapped = self.features(X) @ self.components.T.astype(np.float64)
        with np.errstate(over="ignore"):
            mapped = mapped.astype(X.dtype, copy=False)
        check_no_overflow(mapped, "vectors under the metric")
        return mapped

    def embed_queries(self, Q: Any) -> np.ndarray:
        """Map queries as `embed_items` maps items."""
        return self.embed_items(Q)

    def distances(self, Q: Any, X: Any) -> np.ndarray:
        from scipy.spatial.distance import cdist

        queries = self.embed_queries(Q)
        distances = cdist(queries, self.embed_items(X))
        distances = distances.astype(queries.dtype, copy=False)
        check_no_overflow(distances, "distances")
        return distances

    def _explain(self, q: Any, x: Any, baseline: Any, training: Any) -> Explanation:
        q = one_row(q, "q", self.n_features)
        x = one_row(x, "x", self.n_features)
        if training is not None:
            training = self._training_features(training)
        other = None
        if isinstance(baseline, KernelMetric) and self._has_kernels_of(baseline):
            other = baseline.linear
        points = self.features(q), self.features(x)
        explained = self.linear.explain(*points, other, training=training)
        if baseline is None or other is not None:
            return explained
        if isinstance(baseline, str):
            baseline = LinearMetric.identity(self.n_features)
        return explain_with_other(explained, baseline, q, x)

    def _has_kernels_of(self, other: KernelMetric) -> bool:
        """Whether both have the same kernel values of a point."""
        return self.kernels == other.kernels and np.array_equal(
            self.landmarks, other.landmarks
        )

    def _training_features(self, training: Any) -> Any:
        """What the metric was learned from, as kernel values."""
        if not isinstance(training, tuple) or len(training) != 3:
            return training
        X, relevance, queries = training
        if queries is not None:
            queries = self.features(queries)
        return self.features(X), relevance, queries

    def _index(self, X: Any) -> Index:
        from ..search.index import Index

        return Index(X, self)

    def _header(self) -> dict[str, str]:
        kernels = [kernel._asdict() for kernel in self.kernels]
        return {**super()._header(), "kernels": json.dumps(kernels)}

    @classmethod
    def _restore(
        cls,
        arrays: Mapping[str, np.ndarray],
        parameters: dict[str, Any],
        header: Mapping[str, str],
    ) -> Self:
        try:
            kernels = json.loads(header.get("kernels", "[]"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"its kernels must be JSON: {error}.") from error
        if not isinstance(kernels, list) or not all(
            isinstance(fields, dict) for fields in kernels
        ):
            raise ValueError(
                f"its kernels must be a list of mappings: got {kernels!r}."
            )
        return cls(**arrays, kernels=kernels, parameters=parameters)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "linear"}


def kernel_values(
    kernels: Sequence[Kernel], X: np.ndarray, landmarks: np.ndarray
) -> np.ndarray:
    """Values of each kernel with all landmarks, side by side; precomputed ones unchanged."""
    X = np.asarray(X, dtype=np.float64)
    if kernels[0].name == "precomputed":
        return X
    landmarks = landmarks.astype(np.float64)
    return np.hstack([kernel(X, landmarks) for kernel in kernels])
