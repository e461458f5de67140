"""What is learned: distances that are saved, loaded and searched by."""

from .embedding import AsymmetricMetric, BilinearMetric, EmbeddingMetric, LinearMetric
from .local import LocalMetric
from .storage import load_metric

__all__ = [
    "AsymmetricMetric",
    "BilinearMetric",
    "EmbeddingMetric",
    "LinearMetric",
    "LocalMetric",
    "load_metric",
]
