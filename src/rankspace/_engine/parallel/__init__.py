"""Parallel computing: threads, Dask clusters, and sums whose order depends on neither."""

from .backend import Threads, current_backend, use_backend
from .sums import Step, Tree, plus, shards_of, total_of

__all__ = [
    "Step",
    "Threads",
    "Tree",
    "current_backend",
    "plus",
    "shards_of",
    "total_of",
    "use_backend",
]
