"""The graph of mutual nearest neighbours, over rows with and without a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from ...search.index import Index


def mutual_neighbors(X: Any, k: int) -> np.ndarray:
    """Pairs of rows, (n_edges, 2), each of which is among the k nearest of the other; sorted."""
    k = min(k, X.shape[0] - 1)
    near = _nearest_sparse(X, k) if scipy.sparse.issparse(X) else _nearest(X, k)
    mutual = scipy.sparse.triu(near.multiply(near.T), 1)
    return np.unique(np.stack(mutual.nonzero(), axis=1), axis=0)


def _nearest(X: np.ndarray, k: int) -> Any:
    """A sparse matrix of true values where a column is among the k nearest of a row."""
    n = len(X)
    items = [block.items for block in Index(X).blocks(X, k, query_items=np.arange(n))]
    row_starts = np.arange(0, n * k + 1, k)
    true = np.ones(n * k, dtype=bool)
    return scipy.sparse.csr_array((true, np.concatenate(items), row_starts), (n, n))


def _nearest_sparse(X: Any, k: int) -> Any:
    """The same for sparse rows, which `Index` does not take."""
    from sklearn.neighbors import kneighbors_graph

    return scipy.sparse.csr_array(kneighbors_graph(X, k)).astype(bool)
