"""From vectors and judgments to a better metric, or to the answer that there is none."""

from .tuner import Tuned, tune

__all__ = [
    "Tuned",
    "tune",
]
