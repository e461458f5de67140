"""Kernel MLR: metric learning to rank in the feature space of one or several kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state, check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from .._engine.checks import check_choice
from .._engine.vectors import check_squares
from ..metrics.embedding import LinearMetric
from ..metrics.kernel import Kernel, KernelMetric, kernel_values
from ..relevance.relevance import Relevance
from .base import FLOATS, read_rows
from .callbacks import CallbackFit, Rounds
from .fit_data import WeightedFit
from .mlr import MLR

MOST_EXACT = 2000  # rows; the exact form costs their cube
# Directions of a smaller share of the largest eigenvalue are rounding errors.
LEAST_SHARE = 1e-8
# Kernel matrices of rounded numbers may have eigenvalues this much below zero.
INDEFINITE = 1e-6


class KernelMLR(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackFit, WeightedFit
):
    """Metric learning to rank with kernels: `MLR` in the feature space of a kernel.

    Learns W in ``d(q, x)^2 = (k(q) - k(x))' W (k(q) - k(x))``, where k(x) are kernel values with
    all training rows, with the regulariser tr(W K). This is linear MLR on all kernel principal
    components, so its certificate holds. With ``n_landmarks``, k(x) are values with some rows only
    (Nystroem's approximation).

    Parameters
    ----------
    C : float or "auto", default=1000.0
        Weight of the violations, on kernel features divided by their root mean squared distance;
        "auto" as for `MLR`.
    kernel : {"rbf", "poly", "linear", "precomputed"} or sequence of mappings, default="rbf"
        The kernel, with ``gamma``, ``degree`` and ``coef0``; or several, each a mapping such as
        ``{"name": "rbf", "gamma": 0.1}``. With "precomputed", ``X`` holds kernel values with the
        training rows.
    gamma : float, optional
        Factor in "rbf" and "poly"; by default one over the sum of the variances of the features.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant in "poly".
    n_landmarks : int, optional
        Number of random training rows to take kernel values with. By default all, up to 2,000.
    constraint : {"psd", "diagonal", "blocks"}, default="psd"
        All positive semi-definite W, for one kernel; one weight for each landmark and kernel, with
        the regulariser ``sum_p w_p . diag(K_p)``; or one weight for each kernel.
    measure : str, default="map"
        Measure to optimise; see `MLR`.
    tol, max_iter, n_components, max_memory
        See `MLR`.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks.

    Attributes
    ----------
    metric_ : KernelMetric
        The learned metric, with its landmarks.
    model_ : MLR
        The linear model of the kernel features.
    gamma_ : float
        The factor that was used where none is given.
    objective_, gap_, n_iter_, history_
        As for `MLR`; W' of the kernel features is in the place of W.

    Notes
    -----
    A fit computes an eigenvalue decomposition of size n_landmarks, or of all rows, and then fits
    `MLR` with as many features.

    References
    ----------
    B. McFee and G. Lanckriet, Metric learning to rank, ICML 2010.
    Galleguillos, McFee, Belongie and Lanckriet, From region similarity to category
    discovery, CVPR 2011.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from rankspace import Euclidean, KernelMLR
    >>> X, y = make_circles(100, factor=0.5, noise=0.05, random_state=0)
    >>> bool(Euclidean().fit(X, y).score(X, y) < 0.7)
    True
    >>> bool(KernelMLR(measure="auc").fit(X, y).score(X, y) > 0.99)
    True
    """

    def __init__(
        self,
        C: float | str = 1000.0,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_landmarks: int | None = None,
        constraint: str = "psd",
        measure: str = "map",
        tol: float = 0.01,
        max_iter: int = 200,
        n_components: int | None = None,
        max_memory: int = 512,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.constraint = constraint
        self.measure = measure
        self.tol = tol
        self.max_iter = max_iter
        self.n_components = n_components
        self.max_memory = max_memory
        self.random_state = random_state

    def transform(self, X: Any) -> np.ndarray:
        """Map points to vectors whose Euclidean distance is the learned metric.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Points, or their kernel values with the training rows.

        Returns
        -------
        ndarray of shape (n, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, read_rows(self, X), reset=False, dtype=FLOATS)
        return self.metric_.embed_items(X)

    def _store_metric(self, metric: Any) -> None:
        super()._store_metric(metric)
        self._n_features_out = len(metric.components)

    # ------------------------------------------------------------------ learning

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> KernelMetric:
        check_squares(X, "X")
        kernels = self._kernels(X)
        landmarks = self._landmarks(X, kernels[0].name)
        maps = self._maps(kernels, X, landmarks)
        features = _mapped(kernels, X, landmarks, maps)
        if queries is not None:
            queries = _mapped(kernels, queries, landmarks, maps)
        self.model_ = self._model(maps)
        self.model_.n_features_in_ = features.shape[1]
        as_kernel = partial(self._kernel_metric, kernels, landmarks, maps)
        self.model_._rounds = _KernelRounds(self._rounds, as_kernel)
        try:
            metric = self.model_._fit_metric(features, relevance, queries)
        finally:
            del self.model_._rounds
        self.model_._store_metric(metric)
        for name in ("objective_", "gap_", "n_iter_", "history_"):
            setattr(self, name, getattr(self.model_, name))
        return as_kernel(metric)

    def _kernel_metric(
        self,
        kernels: list[Kernel],
        landmarks: np.ndarray,
        maps: list[np.ndarray],
        metric: LinearMetric,
    ) -> KernelMetric:
        """The metric of points from that of the features of MLR."""
        ends = np.cumsum([each.shape[1] for each in maps])[:-1]
        parts = np.split(metric.components, ends, axis=1)
        components = [part @ each.T for part, each in zip(parts, maps, strict=True)]
        return KernelMetric(
            landmarks,
            np.hstack(components),
            kernels=[kernel._asdict() for kernel in kernels],
            parameters={**metric.parameters, "method": type(self).__name__},
        )

    def _most_rounds(self) -> int | None:
        most: Any = self.max_iter
        return int(most) if isinstance(most, Integral) else None

    def _kernels(self, X: np.ndarray) -> list[Kernel]:
        variance = float(X.var(axis=0, dtype=np.float64).sum())
        self.gamma_ = 1 / variance if variance > 0 else 1.0
        if self.gamma is not None:
            self.gamma_ = self.gamma
        defaults = {"gamma": self.gamma_, "coef0": self.coef0, "degree": self.degree}
        given = self.kernel
        if isinstance(given, str):
            given = [{"name": given}]
        if not given or not all(isinstance(fields, Mapping) for fields in given):
            raise ValueError(
                f"kernel must be a name, or mappings with a name each: got {self.kernel!r}."
            )
        kernels = [Kernel.of({**defaults, **fields}) for fields in given]
        self._check_several(kernels)
        return kernels

    def _check_several(self, kernels: list[Kernel]) -> None:
        check_choice(self.constraint, "constraint", ("psd", "diagonal", "blocks"))
        if len(kernels) == 1:
            return
        if self.constraint == "psd":
            raise ValueError(
                "several kernels need constraint='diagonal' or constraint='blocks': got 'psd'."
            )
        if any(kernel.name == "precomputed" for kernel in kernels):
            raise ValueError(
                "a precomputed kernel must be the only one: got several. Add the matrices up, "
                "each times a weight."
            )

    def _landmarks(self, X: np.ndarray, name: str) -> np.ndarray:
        """The rows to take kernel values with; of no features if these are precomputed."""
        n = len(X)
        if self.n_landmarks is not None:
            check_scalar(
                self.n_landmarks, "n_landmarks", Integral, min_val=1, max_val=n
            )
        if name == "precomputed":
            self._check_precomputed(X)
            return np.zeros((n, 0))
        if self.n_landmarks is None:
            if n > MOST_EXACT:
                raise ValueError(
                    f"the exact form takes at most {MOST_EXACT} rows: got {n}. Pass n_landmarks, "
                    "such as n_landmarks=500, for Nystroem's approximation."
                )
            return X
        random = check_random_state(self.random_state)
        return X[np.sort(random.permutation(n)[: self.n_landmarks])]

    def _check_precomputed(self, X: np.ndarray) -> None:
        if X.shape[0] != X.shape[1] or not np.allclose(X, X.T):
            raise ValueError(
                "a precomputed kernel must be a symmetric matrix with a row and a column for each "
                f"training row: got shape {X.shape}."
            )
        if self.n_landmarks is not None:
            raise ValueError("n_landmarks needs a kernel by name: got 'precomputed'.")
        if len(X) > MOST_EXACT:
            raise ValueError(
                f"a precomputed kernel may have at most {MOST_EXACT} rows: got {len(X)}."
            )

    def _maps(
        self, kernels: list[Kernel], X: np.ndarray, landmarks: np.ndarray
    ) -> list[np.ndarray]:
        """For each kernel, the map from kernel values to features of MLR."""
        points = X if kernels[0].name == "precomputed" else landmarks
        maps = []
        for kernel in kernels:
            K = kernel_values([kernel], points, landmarks)
            if self.constraint == "diagonal":
                maps.append(_unit_diagonal(K))
            else:
                maps.append(_principal(K))
        return maps

    def _model(self, maps: list[np.ndarray]) -> MLR:
        blocks = None
        if self.constraint == "blocks":
            blocks = np.repeat(np.arange(len(maps)), [each.shape[1] for each in maps])
        return MLR(
            self.C,
            measure=self.measure,
            tol=self.tol,
            max_iter=self.max_iter,
            constraint=self.constraint,
            blocks=blocks,
            scaling=None,
            n_components=self.n_components,
            max_memory=self.max_memory,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


class _KernelRounds(Rounds):
    """Reports the rounds of the linear model, each with the kernel metric it would give."""

    def __init__(
        self, rounds: Rounds, as_kernel: Callable[[LinearMetric], KernelMetric]
    ) -> None:
        self.rounds = rounds
        self.as_kernel = as_kernel
        self.stopped = False

    def report(self, fitted: Callable[[], dict[str, Any]]) -> bool:
        def attributes() -> dict[str, Any]:
            linear = fitted()
            metric = self.as_kernel(linear["metric_"])
            return {"metric_": metric, "_n_features_out": linear["_n_features_out"]}

        self.stopped = self.rounds.report(attributes)
        return self.stopped


def _mapped(
    kernels: list[Kernel], X: np.ndarray, landmarks: np.ndarray, maps: list[np.ndarray]
) -> np.ndarray:
    """The features of MLR, kernel after kernel."""
    parts = [
        kernel_values([kernel], X, landmarks) @ each
        for kernel, each in zip(kernels, maps, strict=True)
    ]
    return np.hstack(parts)


def _principal(K: np.ndarray) -> np.ndarray:
    """``U S^(-1/2)`` for ``K = U S U'``: the map to kernel principal components."""
    values, vectors = scipy.linalg.eigh((K + K.T) / 2)
    if values[0] < -INDEFINITE * max(values[-1], 0):
        raise ValueError(
            f"a kernel must be positive semi-definite: an eigenvalue is {values[0]:.3g}, where the "
            f"largest is {values[-1]:.3g}."
        )
    large = values > LEAST_SHARE * values[-1]
    if not large.any():
        raise ValueError("a kernel must not be zero: all its values are.")
    return vectors[:, large] / np.sqrt(values[large])


def _unit_diagonal(K: np.ndarray) -> np.ndarray:
    """Kernel values over the roots of their diagonal, so that tr(W) is ``w . diag(K)``."""
    diagonal = np.diag(K)
    if diagonal.min() < 0:
        raise ValueError(
            f"a kernel must be positive semi-definite: its diagonal has {diagonal.min():.3g}."
        )
    roots = np.sqrt(diagonal)
    return np.diag(np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0))
