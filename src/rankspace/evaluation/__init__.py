"""Evaluation of rankings: measures, reports, significance tests."""

from .measures import evaluate
from .neighbors import class_shares, knn_error, leave_one_out
from .regression import Regression, check_regression
from .report import Comparison, Report, compare

__all__ = [
    "Comparison",
    "Regression",
    "Report",
    "check_regression",
    "class_shares",
    "compare",
    "evaluate",
    "knn_error",
    "leave_one_out",
]
