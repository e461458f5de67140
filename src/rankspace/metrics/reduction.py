"""Dimensionality reduction of mapped vectors: principal components of the mapped corpus."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._engine.checks import check_count

ROWS = 4096  # that are mapped at a time
TURN_ROWS = 10_000  # that a rotation is learned from
TURN_STEPS = 10


class MapsItems(Protocol):
    """Maps items to vectors."""

    def embed_items(self, X: Any) -> np.ndarray:
        """Vectors of items."""


def principal_directions(metric: MapsItems, X: Any) -> np.ndarray:
    """Principal directions of the mapped items as rows, by falling variance; all of them.

    The mean is left out: it shifts the scores of all items of a query alike.
    """
    from .._engine.parallel.threads import single_threaded_blas

    with single_threaded_blas():
        return _directions(metric, X)


def _directions(metric: MapsItems, X: Any) -> np.ndarray:
    import scipy.linalg

    first = np.asarray(metric.embed_items(X[:ROWS]), dtype=float)
    # Squares about a mean that is nearly right lose no digits.
    origin = first.mean(axis=0)
    total = np.zeros(origin.size)
    products = np.zeros((origin.size, origin.size))
    for start in range(0, len(X), ROWS):
        block = first if not start else metric.embed_items(X[start : start + ROWS])
        centred = np.asarray(block, dtype=float) - origin
        total += centred.sum(axis=0)
        products += centred.T @ centred
    scatter = products - np.outer(total, total) / len(X)
    _, vectors = scipy.linalg.eigh(scatter)
    directions = vectors[:, ::-1].T
    # The sign of an eigenvector is arbitrary: its largest entry is made positive.
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return np.ascontiguousarray(directions * signs[:, None])


def reducing_map(
    directions: np.ndarray, n_components: int, items: np.ndarray | None = None
) -> np.ndarray:
    """The first directions, turned: orthonormal rows that span the same space.

    No distance or inner product changes, but all components vary alike, so that each bit of a
    vector that is stored by its signs tells about as much: more of the nearest items are found by
    them. Without ``items``, mapped ones, the turn is random; with them it is made for their signs.
    """
    chosen = directions[:n_components]
    normal = np.random.default_rng(0).normal(size=(n_components, n_components))
    turn, _ = np.linalg.qr(normal)
    if items is not None:
        turn = quantising_turn(items, chosen, turn)
    turned: np.ndarray = turn @ chosen
    return turned


def sample_items(metric: MapsItems, X: Any) -> np.ndarray:
    """Mapped items that a turn is learned from: at most ten thousand, evenly spread."""
    from .._engine.parallel.threads import single_threaded_blas

    with single_threaded_blas():
        return metric.embed_items(X[:: max(1, -(-len(X) // TURN_ROWS))])


def quantising_turn(
    items: np.ndarray, directions: np.ndarray, turn: np.ndarray
) -> np.ndarray:
    """Iterative quantization (ITQ): a rotation that brings projected items near to their signs.

    Gong and Lazebnik, CVPR 2011: signs of the turned vectors, and the rotation that brings the
    vectors nearest to these signs (orthogonal Procrustes), by turns. In one thread of the linear
    algebra: a sign that rounding changes would change the rotation.
    """
    import scipy.linalg

    from .._engine.parallel.threads import single_threaded_blas

    with single_threaded_blas():
        vectors = items @ directions.T.astype(items.dtype)
        turn = turn.astype(vectors.dtype)
        for _ in range(TURN_STEPS):
            signs = np.where(vectors @ turn.T > 0, 1, -1).astype(vectors.dtype)
            left, _, right = scipy.linalg.svd(signs.T @ vectors, full_matrices=False)
            turn = left @ right
    return turn


def check_width(n_components: Any, width: int, name: str = "n_components") -> int:
    """The number of dimensions to keep, checked."""
    check_count(n_components, name)
    if n_components > width:
        raise ValueError(
            f"{name} must be at most {width}, the width of the mapped vectors: got {n_components}."
        )
    return int(n_components)
