"""What `fit` takes beside items and judgments: weights of queries, and a validation set."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils.validation import validate_data

from ..metrics.card import judgment_fields
from ..relevance.relevance import Relevance
from ..relevance.splits import Split
from .base import BaseRanker, read_rows
from .pipelines import check_same_steps


class WeightedFit(BaseRanker):
    """Mixin of learners whose `fit` takes sample weights, as weights of the queries."""

    __metadata_request__fit: ClassVar = {"sample_weight": True}

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        queries: Any = None,
        qid: Any = None,
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items. Also accepts a file of vectors (.npy, which is memory-mapped, .npz, .parquet or
            .safetensors), a folder of .npy files that hold consecutive rows, or a dask.array.
        y : array-like of shape (n_items,) or Relevance
            Class labels, grades (with ``qid``), or the relevance of items to queries.
        sample_weight : array-like, optional
            Weight of each query: one value for each row of ``X``, or for each of ``queries``. A
            candidate list has the weight of its first row. Weights do not change how much a row
            counts as an item. By default the weights of the `Relevance`.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are not rows of ``X``. Then ``y`` must be a `Relevance` with as many
            queries.
        qid : array-like of shape (n_items,), optional
            Query of each row, if the rows are candidates of queries without vectors.

        Returns
        -------
        self
        """
        return self._fit(X, y, queries, qid, sample_weight)


class ValidatedFit(BaseRanker):
    """Mixin of learners whose `fit` takes sample weights and a validation set."""

    __metadata_request__fit: ClassVar = {
        "sample_weight": True,
        "X_val": True,
        "y_val": True,
        "queries_val": True,
    }

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        queries: Any = None,
        qid: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        queries_val: Any = None,
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items. Also accepts a file of vectors (.npy, which is memory-mapped, .npz, .parquet or
            .safetensors), a folder of .npy files that hold consecutive rows, or a dask.array.
        y : array-like of shape (n_items,) or Relevance
            Class labels, or the relevance of items to queries.
        sample_weight : array-like, optional
            Weight of each query: one value for each row of ``X``, or for each of ``queries``.
            Weights do not change how much a row counts as an item. By default the weights of the
            `Relevance`.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are not rows of ``X``. Then ``y`` must be a `Relevance` with as many
            queries.
        qid : array-like of shape (n_items,), optional
            Not supported: queries of candidate lists have no vectors. Use `LGMML`.
        X_val : array-like of shape (n_val_items, n_features), optional
            Items of a validation set, which takes the place of held-out queries: then all queries
            train. In a pipeline, name it in ``transform_input``.
        y_val : array-like of shape (n_val_items,) or Relevance, optional
            Class labels or relevance of the items of the validation set.
        queries_val : array-like, optional
            Queries of the validation set, if they are not rows of ``X_val``.

        Returns
        -------
        self
        """
        options = {"X_val": X_val, "y_val": y_val, "queries_val": queries_val}
        return self._fit(X, y, queries, qid, sample_weight, **options)


def validation_split(
    learner: BaseRanker,
    data: tuple[Any, Relevance, Any],
    X_val: Any = None,
    y_val: Any = None,
    queries_val: Any = None,
) -> Split | None:
    """All training data, and a validation set with a corpus of its own; None without one."""
    if X_val is None:
        if y_val is not None or queries_val is not None:
            raise ValueError(
                "y_val and queries_val need X_val, the items that they are about."
            )
        return None
    if y_val is None:
        raise ValueError("X_val needs y_val, the labels or the Relevance of its rows.")
    check_same_steps(learner, "X_val")
    X_val = validate_data(
        learner, read_rows(learner, X_val, "X_val"), reset=False, **learner._accepted
    )
    judged = learner._as_relevance(X_val, y_val, None, queries_val is not None)
    if not judged.trainable.any():
        raise ValueError(
            "a validation set needs a query with relevant and irrelevant items: got "
            f"{judged.n_queries} queries without both."
        )
    points = learner._check_queries(judged, queries_val, "queries_val")
    if points is None:
        points = X_val[judged.query_items]
    return Split(*data, points, judged, corpus=X_val)


def validation_fields(split: Split | None) -> dict[str, Any]:
    """What a checkpoint must know of a validation set that was passed by hand."""
    if split is None:
        return {}
    judged = judgment_fields(split.judged)
    return {"X_val": split.corpus, "y_val": judged, "queries_val": split.points}
