"""Online learning baselines of FRML: OASIS, LORETA and ITML."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from .._engine.checks import check_components
from .._engine.parallel.threads import single_threaded_blas
from ..metrics.embedding import BilinearMetric, LinearMetric
from ..relevance.relevance import Relevance
from .base import BaseRanker
from .linear import LinearRanker
from .solvers.log_det import LogDetProjections
from .solvers.points import Points, scaled_points
from .solvers.scaling import Scaling
from .solvers.warp.descent import Gradient, Progress, distance, step_length
from .solvers.warp.embeddings import draw_pairs
from .solvers.warp.factors import DenseFactor
from .solvers.warp.riemannian import lift, solve
from .solvers.warp.sampling import sampling_of

DEFAULT_COMPONENTS = 30  # as FRML has it


def draw_triplets(
    relevance: Relevance, n_triplets: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random triplets: queries in turn, a relevant item by gain, and any irrelevant item."""
    from .._engine.kernels.warp import draw_candidates

    seed = int(check_random_state(random_state).randint(2**31 - 1))
    sampling = sampling_of(relevance, "uniform", 1, seed)
    queries, pos, _, _ = draw_pairs(sampling, 0, n_triplets)
    neg = np.empty((n_triplets, 1), dtype=np.int64)
    draw_candidates(seed, 0, 0, np.arange(n_triplets), queries, sampling.negatives, neg)
    return queries, pos, neg[:, 0]


def unit_norm_points(
    X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
) -> tuple[Points, float]:
    """Items and queries divided by the root mean squared norm of an item, and that norm."""
    scaling = Scaling.of_norms(X)._replace(dtype=np.float64)
    return scaled_points(X, relevance, queries, scaling), scaling.scale


class OASIS(BaseRanker):
    """OASIS: online learning of a similarity ``q'Mx`` by passive-aggressive updates.

    For each triplet that violates the margin, M is changed by the smallest update that satisfies
    it, with a step of at most ``C``. M starts as the identity and need not be symmetric or positive
    semi-definite.

    Parameters
    ----------
    C : float, default=0.1
        Maximum step, on data divided by the root mean squared norm of an item.
    n_triplets : int, default=100000
        Number of triplets to draw.
    random_state : int, RandomState or None, default=None
        Seed of the triplets.

    Attributes
    ----------
    metric_ : BilinearMetric
        The learned similarity.
    n_violators_ : int
        Number of triplets that violated the margin.

    Notes
    -----
    A triplet costs O(n_features^2).

    References
    ----------
    G. Chechik, V. Sharma, U. Shalit and S. Bengio, Large scale online learning of image similarity
    through ranking, JMLR 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import OASIS
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OASIS(n_triplets=20_000, random_state=0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.85)
    True
    """

    def __init__(
        self, C: float = 0.1, *, n_triplets: int = 100_000, random_state: Any = None
    ) -> None:
        self.C = C
        self.n_triplets = n_triplets
        self.random_state = random_state

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> BilinearMetric:
        from .._engine.kernels.online import oasis

        check_scalar(self.C, "C", Real, min_val=0, include_boundaries="neither")
        check_scalar(self.n_triplets, "n_triplets", Integral, min_val=1)
        points, length = unit_norm_points(X, relevance, queries)
        M = np.eye(X.shape[1])
        triplets = draw_triplets(relevance, self.n_triplets, self.random_state)
        C = float(self.C)
        self.n_violators_ = int(oasis(points.queries, points.items, *triplets, C, M))
        query_map = (M.T / length).astype(X.dtype)
        item_map = (np.eye(X.shape[1]) / length).astype(X.dtype)
        parameters = {"method": "OASIS", "C": float(self.C)}
        return BilinearMetric(query_map, item_map, parameters=parameters)


class LORETA(BaseRanker):
    """LORETA: online learning of a low-rank similarity ``q'Wx`` by Riemannian SGD (PSD-1).

    Moves the positive semi-definite W against the symmetric part of the gradient of the hinge loss
    of triplets, on the manifold of its rank, with the damped steps and learning rate of `FRML`.

    Parameters
    ----------
    n_components : int, optional
        The rank. By default 30, or all features if there are fewer. There is no regulariser, so
        more directions than the data need cost some accuracy, also on the training data.
    n_triplets : int, default=100000
        Number of triplets to draw.
    batch_size : int, default=32
        Number of triplets in a step.
    step : float, default=1.0
        Factor of the learning rate.
    random_state : int, RandomState or None, default=None
        Seed of the start and of the triplets.

    Attributes
    ----------
    metric_ : BilinearMetric
        The learned similarity, with the same map for queries and items.
    n_violators_ : int
        Number of triplets that violated the margin.

    Notes
    -----
    A triplet costs O(n_features n_components).

    References
    ----------
    U. Shalit, D. Weinshall and G. Chechik, Online learning in the embedded manifold of low-rank
    matrices, JMLR 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import LORETA
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LORETA(5, n_triplets=20_000, random_state=0).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.85)
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_triplets: int = 100_000,
        batch_size: int = 32,
        step: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_triplets = n_triplets
        self.batch_size = batch_size
        self.step = step
        self.random_state = random_state

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> BilinearMetric:
        check_components(self.n_components, X.shape[1])
        for name in ("n_triplets", "batch_size"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        check_scalar(self.step, "step", Real, min_val=0, include_boundaries="neither")
        points, length = unit_norm_points(X, relevance, queries)
        m = self.n_components or min(DEFAULT_COMPONENTS, X.shape[1])
        random = check_random_state(self.random_state)
        F = random.normal(size=(X.shape[1], m)) / np.sqrt(m)
        triplets = draw_triplets(relevance, self.n_triplets, random)
        with single_threaded_blas():
            F = self._descend(points.queries, points.items, triplets, F)
        components = (F.T / length).astype(X.dtype)
        return BilinearMetric(components, components, parameters={"method": "LORETA"})

    def _descend(
        self,
        points: np.ndarray,
        items: np.ndarray,
        triplets: tuple[np.ndarray, ...],
        F: np.ndarray,
    ) -> np.ndarray:
        progress = Progress(F, F, multiplier=self.step)
        self.n_violators_ = 0
        for start in range(0, self.n_triplets, self.batch_size):
            batch = slice(start, start + self.batch_size)
            queries, pos, neg = [array[batch] for array in triplets]
            q = points[queries]
            w = items[pos] - items[neg]
            margins = np.einsum("ij,ij->i", q @ progress.F, w @ progress.F)
            violates = margins < 1
            self.n_violators_ += int(violates.sum())
            if violates.any():
                # -(q w' + w q') / 2 is a difference of two squares, and so of the form V C V'.
                q = q[violates]
                w = w[violates]
                c = np.repeat((-0.25, 0.25), len(q)) / queries.size
                move_against(progress, np.concatenate((q + w, q - w)), c)
        return progress.F


def move_against(progress: Progress, V: np.ndarray, c: np.ndarray) -> None:
    """A step of Riemannian SGD against the gradient ``V' diag(c) V``, as in `FRML`."""
    points = Points(np.concatenate((V, np.zeros_like(V[:1]))), np.zeros(0), 0)
    factor = DenseFactor(points, progress.F, progress.start)
    rows, zeros = np.arange(len(V)), np.full(len(V), len(V))
    gram = factor.gram
    lifted = lift(gram)
    A = solve(lifted, factor.embedded_differences(rows, zeros).T)
    S = c[:, None] * A.T
    moved = factor.prepare(rows, zeros, S)
    gradient = Gradient(lifted, A @ S, np.zeros(len(A)), moved)
    start_norm = float(np.linalg.norm(progress.start.T @ progress.start))
    travelled = distance(gram, factor.cross, start_norm)
    length = step_length(progress, gradient.norm, travelled, start_norm)
    factor.move(*gradient.retraction(length))
    progress.F = factor.matrix


class ITML(LinearRanker):
    """Information-theoretic metric learning (ITML).

    Finds the matrix with the smallest LogDet divergence from the identity under which relevant
    pairs are nearer than the 5th percentile of distances and irrelevant pairs farther than the
    95th, up to slack.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the slack; a larger value enforces the constraints more strictly.
    n_pairs : int, default=2000
        Number of pairs to draw, half of them relevant.
    max_iter : int, default=1000
        Maximum number of passes over the pairs.
    tol : float, default=1e-3
        Stopping tolerance: stop when the relative change of the dual variables in a pass is at
        most ``tol``.
    random_state : int, RandomState or None, default=None
        Seed of the pairs.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_features, n_features)
        L with ``W = L'L``.
    n_iter_ : int
        Number of passes over the pairs.

    Notes
    -----
    A pass costs O(n_pairs r^2), where r is the dimension of the span of the pairs: less than the
    number of items, and at most the number of features.

    References
    ----------
    J. Davis, B. Kulis, P. Jain, S. Sra and I. Dhillon, Information-theoretic metric learning, ICML
    2007.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import ITML
    >>> X, y = load_wine(return_X_y=True)
    >>> bool(ITML(0.1, random_state=0).fit(scale(X), y).score(scale(X), y) > 0.9)
    True
    """

    def __init__(
        self,
        gamma: float = 1.0,
        *,
        n_pairs: int = 2000,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.n_pairs = n_pairs
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        for name in ("gamma", "tol"):
            check_scalar(
                getattr(self, name), name, Real, min_val=0, include_boundaries="neither"
            )
        check_scalar(self.n_pairs, "n_pairs", Integral, min_val=2)
        check_scalar(self.max_iter, "max_iter", Integral, min_val=1)
        # The bounds follow the distances, so the scale does not change the matrix.
        scaling = Scaling.of(X)._replace(dtype=np.float64)
        points = scaled_points(X, relevance, queries, scaling)
        which, pos, neg = draw_triplets(relevance, self.n_pairs // 2, self.random_state)
        left = np.tile(points.query_rows[which], 2)
        V = points.differences(left, np.concatenate((pos, neg)))
        W = self._project(V, np.arange(len(V)) < which.size)
        values, vectors = np.linalg.eigh(W)
        components = np.sqrt(np.maximum(values[::-1], 0))[:, None] * vectors[:, ::-1].T
        return LinearMetric(components.astype(X.dtype), parameters={"method": "ITML"})

    def _project(self, V: np.ndarray, similar: np.ndarray) -> np.ndarray:
        """Cyclic projections on the constraints until the dual variables converge."""
        squares = np.einsum("ij,ij->i", V, V)
        differs = squares > 0
        if not differs.any():
            raise ValueError("X must have rows that differ: all are equal.")
        V = V[differs]
        similar = similar[differs]
        squares = squares[differs]
        near, far = np.percentile(squares, (5, 95))
        bounds = np.where(similar, max(near, 1e-12 * far), far)
        projections = LogDetProjections(V, similar, bounds, float(self.gamma))
        for n_iter in range(1, self.max_iter + 1):
            self.n_iter_ = n_iter
            if projections.cycle() <= self.tol * np.abs(projections.duals).sum():
                return projections.matrix
        warnings.warn(
            f"ITML stopped after {self.max_iter} passes over the pairs while its dual variables "
            f"still changed by a fraction of more than tol={self.tol}. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
        return projections.matrix
