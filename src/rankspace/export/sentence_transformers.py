"""Export to sentence-transformers: a model whose last module is the map."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._engine.files import PathLike
from .._engine.optional import require
from ..metrics.embedding import EmbeddingMetric
from .arrays import check_metric


def to_sentence_transformers(
    metric: EmbeddingMetric, model: Any, path: PathLike | None = None
) -> Any:
    """Append a metric to a sentence embedding model, as a ``Dense`` module.

    The model then gives mapped vectors: one folder is all that a service needs. If the metric maps
    items and queries differently, a ``Router`` leads ``encode_query`` and ``encode_document`` to
    their maps, and ``encode`` without a task is an error. Prompts stay unchanged.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric to append.
    model : str or SentenceTransformer
        The model that embedded the vectors which the metric was learned from: its name, its
        folder, or the model itself, which stays as it is (extra ``text``).
    path : path, optional
        The folder to save the new model to.

    Returns
    -------
    SentenceTransformer
        Its ``similarity`` is the inner product under a `BilinearMetric`, else minus the Euclidean
        distance.

    Examples
    --------
    ``to_sentence_transformers(metric, "sentence-transformers/all-MiniLM-L6-v2", "my-model")``, and
    then ``SentenceTransformer("my-model").encode_query("a question")``.

    >>> from rankspace.export import to_sentence_transformers
    >>> to_sentence_transformers("euclidean", "my-model")
    Traceback (most recent call last):
    ValueError: metric must be a LinearMetric, BilinearMetric or AsymmetricMetric, which map items \
to vectors: got str.
    """
    check_metric(metric)
    package = require("sentence_transformers", extra="text")
    if not isinstance(model, package.SentenceTransformer):
        model = package.SentenceTransformer(str(model))
    width = _width(model)
    for name in ("query_map", "item_map"):
        n_features = getattr(metric, name).shape[1]
        if n_features != width:
            raise ValueError(
                f"the metric must take the vectors of the model, of {width} components: its "
                f"{name} takes {n_features}."
            )
    mapped = package.SentenceTransformer(
        modules=[*model, *_modules(metric)],
        prompts=model.prompts,
        default_prompt_name=model.default_prompt_name,
        similarity_fn_name="dot" if metric.inner_product else "euclidean",
        device=model.device,
    )
    if path is not None:
        mapped.save(str(path))
    return mapped


def _width(model: Any) -> int:
    # Its name in sentence-transformers 5 and 6.
    if hasattr(model, "get_embedding_dimension"):
        return int(model.get_embedding_dimension())
    return int(model.get_sentence_embedding_dimension())


def _modules(metric: EmbeddingMetric) -> list[Any]:
    """The modules that map vectors: at unit length under the cosine."""
    from sentence_transformers import models

    modules: list[Any] = []
    if metric.similarity == "cosine":
        modules.append(models.Normalize())
    items = _dense(metric.item_map, np.zeros(len(metric.item_map)))
    if metric.symmetric:
        return [*modules, items]
    queries = _dense(metric.query_map, metric.query_offset)
    # An encoder that does not know which side it encodes must not guess.
    routes = {"query": [queries], "document": [items]}
    return [*modules, models.Router(routes, default_route=None, allow_empty_key=False)]


def _dense(matrix: np.ndarray, offset: np.ndarray) -> Any:
    from sentence_transformers import models
    from torch import from_numpy
    from torch.nn import Identity

    n_components, n_features = matrix.shape
    has_offset = bool(offset.any())
    module = models.Dense(
        n_features, n_components, bias=has_offset, activation_function=Identity()
    )
    state = {"linear.weight": from_numpy(_single(matrix))}
    if has_offset:
        state["linear.bias"] = from_numpy(_single(offset))
    module.load_state_dict(state)
    return module


def _single(array: np.ndarray) -> np.ndarray:
    return np.array(array, dtype=np.float32)
