"""Evaluation of rankings: measures, reports, significance tests."""

from .drift import Drift, Gain, check_drift, check_gain
from .measures import evaluate
from .neighbors import class_shares, knn_error, leave_one_out
from .regression import Regression, check_regression
from .report import Comparison, Report, compare
from .sequential import Preference, check_preference

__all__ = [
    "Comparison",
    "Drift",
    "Gain",
    "Preference",
    "Regression",
    "Report",
    "check_drift",
    "check_gain",
    "check_preference",
    "check_regression",
    "class_shares",
    "compare",
    "evaluate",
    "knn_error",
    "leave_one_out",
]
