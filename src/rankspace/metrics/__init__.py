"""Learned metrics: distances to save, load and search by."""

from .embedding import (
    AsymmetricMetric,
    BilinearMetric,
    EmbeddingMetric,
    LinearMetric,
    unchanged_metric,
)
from .explanation import Explanation
from .kernel import KernelMetric
from .local import LocalMetric
from .storage import load_metric

__all__ = [
    "AsymmetricMetric",
    "BilinearMetric",
    "EmbeddingMetric",
    "Explanation",
    "KernelMetric",
    "LinearMetric",
    "LocalMetric",
    "load_metric",
    "unchanged_metric",
]
