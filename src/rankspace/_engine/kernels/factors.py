"""Low-rank updates of tall matrices, in place."""

import numpy as np

from ..compiled import kernel


@kernel
def add_sparse_product(indptr, indices, data, change, out):
    """Add ``V' change`` to ``out`` (n_features, m) for V in compressed rows."""
    for row in range(indptr.size - 1):
        for at in range(indptr[row], indptr[row + 1]):
            for f in range(change.shape[1]):
                out[indices[at], f] += data[at] * change[row, f]


@kernel
def add_rows(left, right, change, out):
    """Add row i of ``change`` to row ``left[i]`` of ``out`` and take it from row ``right[i]``."""
    for i in range(left.size):
        for f in range(change.shape[1]):
            out[left[i], f] += change[i, f]
            out[right[i], f] -= change[i, f]


@kernel
def subtract_rows(matrix, left, right, out):
    """Row ``left[i]`` minus row ``right[i]``, for each i."""
    for i in range(left.size):
        a, b = left[i], right[i]
        for j in range(matrix.shape[1]):
            out[i, j] = matrix[a, j] - matrix[b, j]


@kernel
def difference_products(products, left, right):
    """Inner products of the differences ``left[i]`` minus ``right[i]``, from those of points."""
    out = np.empty((left.size, left.size))
    for i in range(left.size):
        a, b = products[left[i]], products[right[i]]
        for j in range(i + 1):
            out[i, j] = a[left[j]] - a[right[j]] - b[left[j]] + b[right[j]]
            out[j, i] = out[i, j]
    return out
