"""Export to ONNX: a metric as a model of one matrix product."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .._engine.files import PathLike, replacing
from .._engine.optional import require
from ..metrics.embedding import EmbeddingMetric
from ..metrics.kernel import KernelMetric
from .arrays import check_metric, check_side, comparison
from .kernel_graph import constant, kernel_graph

# Old enough for every runtime in use.
OPSET = 13
IR_VERSION = 8


def to_onnx(
    metric: EmbeddingMetric | KernelMetric,
    path: PathLike | None = None,
    *,
    side: str | None = None,
) -> Any:
    """Export the map of a metric as an ONNX model.

    The model takes ``vectors``, float32 of shape (n, n_features), and returns ``mapped``: one
    ``MatMul``, and an ``Add`` if queries have an offset. Under the cosine, it first divides vectors
    by their length; a zero vector stays zero, as a model cannot raise an error. Append it to the
    embedding model, or run it where queries arrive.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric, AsymmetricMetric or KernelMetric
        The metric to export; a precomputed kernel cannot be.
    path : path, optional
        The file to write.
    side : {"items", "queries"}, optional
        Which map to export; needed unless the metric maps both sides alike.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> from rankspace import LinearMetric
    >>> from rankspace.export import to_onnx
    >>> model = to_onnx(LinearMetric([[1.0, 2.0]]))
    >>> [node.op_type for node in model.graph.node]
    ['MatMul']
    """
    if isinstance(metric, KernelMetric):
        _check_kernels(metric)
    else:
        check_metric(metric)
    side = check_side(metric, side)
    onnx = require("onnx", extra="onnx")
    if isinstance(metric, KernelMetric):
        graph = kernel_graph(onnx, metric)
    else:
        at_unit_length = metric.similarity == "cosine"
        graph = _graph(onnx, *_map_of(metric, side), at_unit_length)
    model = onnx.helper.make_model(
        graph,
        producer_name="rankspace",
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    notes = {
        "side": side,
        "similarity": metric.similarity,
        "search": comparison(metric),
        "parameters": json.dumps(metric.parameters),
    }
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        with replacing(path) as stream:
            stream.write(model.SerializeToString())
    return model


def _check_kernels(metric: KernelMetric) -> None:
    if metric.is_precomputed:
        raise ValueError(
            "a metric of a precomputed kernel cannot be exported, as only its user can compute the "
            "kernel of new points. Export metric.linear, which maps kernel values."
        )


def _map_of(metric: EmbeddingMetric, side: str) -> tuple[np.ndarray, np.ndarray | None]:
    if side == "items":
        return metric.item_map, None
    if metric.query_offset.any():
        return metric.query_map, metric.query_offset
    return metric.query_map, None


def _graph(
    onnx: Any, matrix: np.ndarray, offset: np.ndarray | None, at_unit_length: bool
) -> Any:
    helper = onnx.helper
    constants = [constant(onnx, "map", matrix.T)]
    nodes = []
    points = "vectors"
    if at_unit_length:
        points = "unit"
        # The least length keeps a zero vector from becoming NaN.
        constants.append(constant(onnx, "least", np.finfo(np.float32).tiny))
        nodes = [
            helper.make_node("ReduceL2", ["vectors"], ["length"], axes=[1]),
            helper.make_node("Max", ["length", "least"], ["divisor"]),
            helper.make_node("Div", ["vectors", "divisor"], ["unit"]),
        ]
    if offset is None:
        nodes.append(helper.make_node("MatMul", [points, "map"], ["mapped"]))
    else:
        constants.append(constant(onnx, "offset", offset))
        nodes += [
            helper.make_node("MatMul", [points, "map"], ["product"]),
            helper.make_node("Add", ["product", "offset"], ["mapped"]),
        ]
    n_components, n_features = matrix.shape
    single = onnx.TensorProto.FLOAT
    return helper.make_graph(
        nodes,
        "rankspace",
        [helper.make_tensor_value_info("vectors", single, ["n", n_features])],
        [helper.make_tensor_value_info("mapped", single, ["n", n_components])],
        initializer=constants,
    )
