"""Threads, clusters, and sums whose order does not depend on either."""

from .backend import Threads, current_backend, use_backend
from .sources import as_rows
from .steps import Step
from .sums import Tree, plus, shards_of, total_of

__all__ = [
    "Step",
    "Threads",
    "Tree",
    "as_rows",
    "current_backend",
    "plus",
    "shards_of",
    "total_of",
    "use_backend",
]
