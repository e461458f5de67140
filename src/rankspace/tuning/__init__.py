"""Hyperparameter tuning: is a learned metric worth it, and which one?"""

from .report import Tuned, TuneReport
from .tuner import tune

__all__ = [
    "TuneReport",
    "Tuned",
    "tune",
]
