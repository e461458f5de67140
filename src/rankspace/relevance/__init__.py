"""Relevance judgments, and splits of the queries for validation."""

from .relevance import Relevance

__all__ = [
    "Relevance",
]
