"""Who is relevant to whom, and which queries are held out."""

from .relevance import Relevance

__all__ = [
    "Relevance",
]
