"""A metric as an ONNX model: one product of matrices."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .._engine.checks import check_choice
from .._engine.files import PathLike, replacing
from ..metrics.embedding import EmbeddingMetric
from ._arrays import SIDES
from ._checks import check_metric, need

OPSET, IR_VERSION = 13, 8  # old enough for every runtime in use


def to_onnx(
    metric: EmbeddingMetric, path: PathLike | None = None, *, side: str = "queries"
) -> Any:
    """Write the map of a metric as an ONNX model.

    The model takes ``vectors``, float32 of shape (n, n_features), and gives ``mapped``: one
    ``MatMul``, and an ``Add`` if the metric has an offset. Append it to the model that embeds, or
    run it where queries arrive.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        What maps.
    path : path, optional
        The file to write.
    side : {"queries", "items"}, default="queries"
        Whose map; a linear metric maps both alike.

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
    check_metric(metric)
    check_choice(side, "side", SIDES)
    onnx = need("onnx", "onnx")
    matrix, offset = _map_of(metric, side)
    model = onnx.helper.make_model(
        _graph(onnx, matrix, offset),
        producer_name="rankspace",
        ir_version=IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    search = "inner product" if metric.inner_product else "Euclidean distance"
    notes = {
        "side": side,
        "search": search,
        "parameters": json.dumps(metric.parameters),
    }
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        with replacing(path) as stream:
            stream.write(model.SerializeToString())
    return model


def _map_of(metric: EmbeddingMetric, side: str) -> tuple[np.ndarray, np.ndarray | None]:
    if side == "items":
        return metric.item_map, None
    return metric.query_map, metric.query_offset if metric.query_offset.any() else None


def _graph(onnx: Any, matrix: np.ndarray, offset: np.ndarray | None) -> Any:
    helper, single = onnx.helper, onnx.TensorProto.FLOAT
    product = "mapped" if offset is None else "product"
    nodes = [helper.make_node("MatMul", ["vectors", "map"], [product])]
    constants = [_constant(onnx, "map", matrix.T)]
    if offset is not None:
        nodes.append(helper.make_node("Add", ["product", "offset"], ["mapped"]))
        constants.append(_constant(onnx, "offset", offset))
    n_components, n_features = matrix.shape
    return helper.make_graph(
        nodes,
        "rankspace",
        [helper.make_tensor_value_info("vectors", single, ["n", n_features])],
        [helper.make_tensor_value_info("mapped", single, ["n", n_components])],
        initializer=constants,
    )


def _constant(onnx: Any, name: str, values: np.ndarray) -> Any:
    return onnx.numpy_helper.from_array(
        np.ascontiguousarray(values, dtype=np.float32), name
    )
