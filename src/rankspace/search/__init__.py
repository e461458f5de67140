"""Nearest-neighbour search under a metric, and the rankings it returns."""

from .bm25 import rank_bm25
from .index import Index
from .interleaving import Interleaving
from .live import LiveIndex
from .memory import rank_memory
from .quantised import QuantisedMetric
from .ranking import Ranking

__all__ = [
    "Index",
    "Interleaving",
    "LiveIndex",
    "QuantisedMetric",
    "Ranking",
    "rank_bm25",
    "rank_memory",
]
