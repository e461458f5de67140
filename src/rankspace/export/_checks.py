"""What can be exported, and with which packages."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._engine.vectors import VectorBlocks
from ..metrics.embedding import EmbeddingMetric


def open_blocks(
    metric: Any, vectors: Any, size: int, side: str = "items"
) -> VectorBlocks:
    """Vectors in blocks, or the error that says why the metric cannot map them."""
    check_metric(metric)
    blocks = VectorBlocks(vectors, size)
    width = (metric.query_map if side == "queries" else metric.item_map).shape[1]
    if blocks.n_features != width:
        raise ValueError(
            f"{blocks.name} must have {width} features as the metric takes: got "
            f"{blocks.n_features}."
        )
    return blocks


def check_metric(metric: Any) -> None:
    """Raise unless items and queries have vectors of their own under the metric."""
    if not isinstance(metric, EmbeddingMetric):
        raise ValueError(
            "metric must be a LinearMetric or a BilinearMetric, for which vectors can be stored: "
            f"got {type(metric).__name__}."
        )


def need(module: str, package: str) -> Any:
    """Import a module of the extra ``export``, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"this export needs the package {package}: pip install 'rankspace[export]'."
        ) from error
