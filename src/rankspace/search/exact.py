"""Vectors to search among: products in blocks, bounds on their rounding, exact re-scoring."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.parallel.transport import mapped_file
from .._engine.vectors import as_rows

ITEM_BLOCK = (
    1024  # with 256 queries, a block of products stays in the second-level cache
)


def as_vectors(X: Any, name: str) -> np.ndarray:
    """A finite matrix of float32 (also for float16) or float64."""
    from sklearn.utils import check_array

    X = as_rows(X)
    if getattr(X, "dtype", None) == np.float16:
        X = np.asarray(X, dtype=np.float32)
    return check_array(X, dtype=(np.float64, np.float32), order="C", input_name=name)


class Space:
    """Embedded items, by Euclidean distance or by minus the inner product.

    Squared distances are ``|q|^2 + (|x|^2 - 2 q'x)``; the bracket orders the items, and only it is
    computed for all of them. Vectors far from the origin lose its digits, so it is computed from
    the centre of the items.
    """

    def __init__(
        self, vectors: np.ndarray, *, inner_product: bool, backend: str
    ) -> None:
        self.vectors = vectors
        self.inner_product = inner_product
        self.centre = (
            np.zeros(vectors.shape[1]) if inner_product else centre_of(vectors)
        )
        streamed = self.centre.any() and mapped_file(vectors) is not None
        self.operand: Any = (
            _Shifted(vectors, self.centre) if streamed else self._centred(vectors)
        )
        squares = np.empty(len(vectors), dtype=vectors.dtype)
        for part in _slices(len(vectors)):
            block = self.operand[part]
            squares[part] = np.einsum("ij,ij->i", block, block)
        self.norms = np.zeros_like(squares) if inner_product else squares
        self.longest = float(np.sqrt(squares.max(initial=0)))
        self._faiss: Any = self._build_faiss() if backend == "faiss" else None

    @property
    def n_items(self) -> int:
        return len(self.vectors)

    def __getstate__(self) -> dict[str, Any]:
        # An index of FAISS is made anew where it is needed.
        return {**vars(self), "_faiss": self._faiss is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._faiss = self._build_faiss() if state["_faiss"] else None

    def _centred(self, vectors: np.ndarray) -> np.ndarray:
        return shifted(vectors, self.centre).astype(self.vectors.dtype, copy=False)

    def _rounding(self, queries: np.ndarray, dtype: Any) -> np.ndarray:
        """Bound on the error of a computed ``|x|^2 - 2 q'x`` for each query.

        A sum of n terms is off by at most n u times the sum of their sizes; one more u stands for
        each rounding of the centred vectors, and the factor 2 for what the first order leaves out.
        """
        unit = np.finfo(dtype).eps / 2
        lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        size = 2 * lengths * self.longest + (
            0.0 if self.inner_product else self.longest**2
        )
        return 2 * (queries.shape[1] + 4) * unit * size

    def nearest(
        self, queries: np.ndarray, own: np.ndarray, k: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The k nearest items of each query, their keys, and whether none can be missing."""
        from .._engine.kernels.topk import exact_distances

        centred = self._centred(queries)
        n_kept = min(k + 10 + k // 8, self.n_items)
        propose = self._propose if self._faiss is None else self._propose_faiss
        items, bound = propose(centred, own, n_kept)
        distances = np.empty(items.shape)
        exact_distances(queries, self.vectors, items, self.inner_product, distances)
        order = np.lexsort((items, distances))[:, :k]
        items = np.take_along_axis(items, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        error = self._rounding(centred, self.operand.dtype)
        if not self.inner_product:
            bound = bound + np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
        certain = distances[:, k - 1] < bound - error
        return items, distances, certain

    def _propose(
        self, centred: np.ndarray, own: np.ndarray, n_kept: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Items of the smallest approximate keys, and the largest of these keys."""
        from .._engine.kernels.topk import push_block

        keys = np.full((len(centred), n_kept), np.inf, dtype=self.operand.dtype)
        items = np.full(keys.shape, -1)
        factors = centred * self.operand.dtype.type(-1 if self.inner_product else -2)
        products = np.empty((len(centred), ITEM_BLOCK), dtype=self.operand.dtype)
        for start in range(0, self.n_items, ITEM_BLOCK):
            block = self.operand[start : start + ITEM_BLOCK]
            out = products[:, : len(block)]
            np.matmul(factors, block.T, out=out)
            push_block(
                out, self.norms[start : start + ITEM_BLOCK], start, own, keys, items
            )
        return items, keys[:, 0].astype(np.float64)

    def _build_faiss(self) -> Any:
        try:
            import faiss
        except ImportError as error:
            raise ImportError(
                "backend='faiss' needs the package faiss-cpu: pip install 'rankspace[index]'."
            ) from error
        index = (faiss.IndexFlatIP if self.inner_product else faiss.IndexFlatL2)(
            self.operand.shape[1]
        )
        index.add(np.ascontiguousarray(self.operand, dtype=np.float32))
        return index

    def _propose_faiss(
        self, centred: np.ndarray, own: np.ndarray, n_kept: int
    ) -> tuple[np.ndarray, np.ndarray]:
        keys, items = self._faiss.search(
            np.ascontiguousarray(centred, dtype=np.float32), n_kept
        )
        items[items == own[:, None]] = -1
        bound = (-1 if self.inner_product else 1) * keys[:, -1].astype(np.float64)
        if not self.inner_product:
            bound -= np.einsum("ij,ij->i", centred, centred, dtype=np.float64)
        # FAISS computes in single precision whatever the vectors have.
        return items, bound - self._rounding(centred, np.float32)

    def sort_all(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All items of each query by distance and index, with exact keys where it matters."""
        from .._engine.kernels.topk import settle_ties

        centred = np.subtract(queries, self.centre, dtype=np.float64)
        keys = np.empty((len(queries), self.n_items))
        for start in range(0, self.n_items, ITEM_BLOCK):
            part = slice(start, start + ITEM_BLOCK)
            block = np.subtract(self.vectors[part], self.centre, dtype=np.float64)
            keys[:, part] = centred @ block.T
            keys[:, part] *= -1 if self.inner_product else -2
            if not self.inner_product:
                keys[:, part] += np.einsum("ij,ij->i", block, block)
        if not self.inner_product:
            keys += np.einsum("ij,ij->i", centred, centred)[:, None]
            np.maximum(keys, 0, out=keys)
        order = np.argsort(keys, axis=1)
        keys = np.take_along_axis(keys, order, axis=1)
        tolerance = 2 * self._rounding(centred, np.float64)
        touched = np.zeros(len(queries), dtype=bool)
        settle_ties(
            queries, self.vectors, order, keys, tolerance, self.inner_product, touched
        )
        for q in np.flatnonzero(touched):
            again = np.lexsort((order[q], keys[q]))
            order[q], keys[q] = order[q][again], keys[q][again]
        return order, keys


class _Shifted:
    """Rows of a file from a centre, when they are asked for."""

    def __init__(self, vectors: np.ndarray, centre: np.ndarray) -> None:
        self.vectors, self.centre = vectors, centre
        self.dtype, self.shape = vectors.dtype, vectors.shape

    def __getitem__(self, part: slice) -> np.ndarray:
        return shifted(self.vectors[part], self.centre)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return shifted(self.vectors, self.centre).astype(dtype or self.dtype)


def shifted(vectors: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Vectors from a centre, rounded once; the vectors themselves if it is the origin."""
    if not centre.any():
        return vectors
    moved = np.empty_like(vectors)
    for part in _slices(len(vectors)):
        moved[part] = np.subtract(vectors[part], centre, dtype=np.float64)
    return moved


def centre_of(vectors: np.ndarray) -> np.ndarray:
    """A point amid the vectors, or the origin if that is no further off than their spread.

    It is rounded to a power of two of about the spread, so that integers stay integers and their
    ties stay ties.
    """
    total, squares = np.zeros(vectors.shape[1]), 0.0
    for part in _slices(len(vectors)):
        block = np.subtract(vectors[part], vectors[0], dtype=np.float64)
        total += block.sum(axis=0)
        squares += np.einsum("ij,ij->", block, block)
    shift = total / len(vectors)
    spread = float(np.sqrt(np.maximum(squares / len(vectors) - shift @ shift, 0.0)))
    mean = vectors[0] + shift
    if np.linalg.norm(mean) <= 2 * spread:
        return np.zeros(vectors.shape[1])
    if spread == 0:
        return mean
    grid = 2.0 ** np.floor(np.log2(spread / np.sqrt(vectors.shape[1])))
    return np.round(mean / grid) * grid


def _slices(n: int) -> list[slice]:
    return [slice(start, start + 8192) for start in range(0, n, 8192)]
