"""ONNX graph of a kernel metric: kernel values with the landmarks, then a linear map."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..metrics.kernel import Kernel, KernelMetric


def constant(onnx: Any, name: str, values: Any) -> Any:
    """A constant of a graph, in single precision."""
    return onnx.numpy_helper.from_array(
        np.asarray(values, dtype=np.float32, order="C"), name
    )


def kernel_graph(onnx: Any, metric: KernelMetric) -> Any:
    """The graph from ``vectors`` to ``mapped``."""
    helper = onnx.helper
    landmarks = metric.landmarks.astype(np.float64)
    nodes: list[Any] = []
    constants = [constant(onnx, "map", metric.components.T)]
    names = []
    for number, kernel in enumerate(metric.kernels):
        steps = _rbf if kernel.name == "rbf" else _product
        steps(onnx, f"k{number}", kernel, landmarks, nodes, constants)
        names.append(f"k{number}")
    nodes.append(helper.make_node("Concat", names, ["values"], axis=1))
    nodes.append(helper.make_node("MatMul", ["values", "map"], ["mapped"]))
    single = onnx.TensorProto.FLOAT
    n_components = len(metric.components)
    return helper.make_graph(
        nodes,
        "rankspace",
        [helper.make_tensor_value_info("vectors", single, ["n", metric.n_features])],
        [helper.make_tensor_value_info("mapped", single, ["n", n_components])],
        initializer=constants,
    )


def _product(
    onnx: Any,
    name: str,
    kernel: Kernel,
    landmarks: np.ndarray,
    nodes: list[Any],
    constants: list[Any],
) -> None:
    """``(gamma x'z + coef0)^degree``, or ``x'z``."""
    node = onnx.helper.make_node
    if kernel.name == "linear":
        constants.append(constant(onnx, f"{name}_z", landmarks.T))
        nodes.append(node("MatMul", ["vectors", f"{name}_z"], [name]))
        return
    constants.append(constant(onnx, f"{name}_z", kernel.gamma * landmarks.T))
    constants.append(constant(onnx, f"{name}_c", kernel.coef0))
    constants.append(constant(onnx, f"{name}_d", kernel.degree))
    nodes.append(node("MatMul", ["vectors", f"{name}_z"], [f"{name}_p"]))
    nodes.append(node("Add", [f"{name}_p", f"{name}_c"], [f"{name}_s"]))
    nodes.append(node("Pow", [f"{name}_s", f"{name}_d"], [name]))


def _rbf(
    onnx: Any,
    name: str,
    kernel: Kernel,
    landmarks: np.ndarray,
    nodes: list[Any],
    constants: list[Any],
) -> None:
    """``exp(-gamma (|x|^2 - 2 x'z + |z|^2))``, all from the centre of the landmarks."""
    node = onnx.helper.make_node
    centre = landmarks.mean(axis=0)
    Z = landmarks - centre
    gamma = kernel.gamma
    constants.append(constant(onnx, f"{name}_m", centre))
    constants.append(constant(onnx, f"{name}_z", 2 * gamma * Z.T))
    constants.append(constant(onnx, f"{name}_q", -gamma * (Z**2).sum(axis=1)))
    constants.append(constant(onnx, f"{name}_g", gamma))
    constants.append(constant(onnx, f"{name}_0", 0.0))
    nodes.append(node("Sub", ["vectors", f"{name}_m"], [f"{name}_x"]))
    nodes.append(node("ReduceSumSquare", [f"{name}_x"], [f"{name}_n"], axes=[1]))
    nodes.append(node("Mul", [f"{name}_n", f"{name}_g"], [f"{name}_gn"]))
    nodes.append(node("MatMul", [f"{name}_x", f"{name}_z"], [f"{name}_p"]))
    nodes.append(node("Add", [f"{name}_p", f"{name}_q"], [f"{name}_s"]))
    nodes.append(node("Sub", [f"{name}_s", f"{name}_gn"], [f"{name}_e"]))
    # Rounding may leave the square of a distance below zero.
    nodes.append(node("Min", [f"{name}_e", f"{name}_0"], [f"{name}_c"]))
    nodes.append(node("Exp", [f"{name}_c"], [name]))
