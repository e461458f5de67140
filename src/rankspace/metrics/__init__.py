"""What is learned: distances that are saved, loaded and searched by."""

from .embedding import BilinearMetric, LinearMetric, load_metric
from .local import LocalMetric
from .two_map import TwoMapMetric

__all__ = [
    "BilinearMetric",
    "LinearMetric",
    "LocalMetric",
    "TwoMapMetric",
    "load_metric",
]
