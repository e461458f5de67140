"""Hyperparameter tuning: is a learned metric worth it, and which one?"""

from .tuner import Tuned, tune

__all__ = [
    "Tuned",
    "tune",
]
