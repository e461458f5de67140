"""Parallel computing: threads, Dask clusters, and sums whose order depends on neither."""

from .backend import Threads, current_backend, use_backend
from .interruption import check_interruption, interrupted_by
from .sums import Step, Tree, plus, shards_of, total_of

__all__ = [
    "Step",
    "Threads",
    "Tree",
    "check_interruption",
    "current_backend",
    "interrupted_by",
    "plus",
    "shards_of",
    "total_of",
    "use_backend",
]
