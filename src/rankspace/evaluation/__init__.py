"""Evaluation of rankings: measures, reports, significance tests."""

from .measures import evaluate
from .neighbors import class_shares, knn_error, leave_one_out
from .report import Comparison, Report, compare

__all__ = [
    "Comparison",
    "Report",
    "class_shares",
    "compare",
    "evaluate",
    "knn_error",
    "leave_one_out",
]
