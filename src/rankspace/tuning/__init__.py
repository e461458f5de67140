"""Hyperparameter tuning: is a learned metric worth it, and which one?"""

from .report import TuneReport
from .tuner import Tuned, tune

__all__ = [
    "TuneReport",
    "Tuned",
    "tune",
]
