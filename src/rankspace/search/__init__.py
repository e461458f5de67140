"""Exact nearest items under a metric, and the ranking they make."""

from .index import Index
from .ranking import Ranking

__all__ = [
    "Index",
    "Ranking",
]
