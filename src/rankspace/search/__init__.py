"""Nearest-neighbour search under a metric, and the rankings it returns."""

from .index import Index
from .ranking import Ranking

__all__ = [
    "Index",
    "Ranking",
]
