"""Base class of all estimators: validation of input, relevance, ranking and scoring."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from .._engine.checks import check_finite
from .._engine.columns import has_vector_column
from .._engine.fields import Fields, check_same_columns, column_names
from .._engine.parallel.threads import single_threaded_blas
from .._engine.project import page_of
from .._engine.vectors import as_rows
from ..evaluation.measures import Measures, Report, evaluate
from ..metrics.local import Metric
from ..relevance.inputs import (
    check_items,
    check_queries_are_rows,
    check_query_vectors,
    check_stored_ids,
)
from ..relevance.relevance import Relevance, list_of_row, query_weights
from ..relevance.rows import check_no_table, check_one_label
from ..search.index import Index
from ..search.ranking import Ranking
from .pipelines import advice, check_same_steps

logger = logging.getLogger("rankspace")

FLOATS = (np.float64, np.float32)


class BaseRanker(BaseEstimator):
    """Base class of all estimators: validation of input, ranking and scoring.

    A subclass implements ``_fit_metric(X, relevance, queries)``, which returns a metric. It only
    gets queries that have at least one relevant and one irrelevant item. If the metric is a
    `LinearMetric`, derive from `LinearRanker` instead, which is also a transformer.

    A subclass that learns from candidate lists sets ``_accepts_lists = True`` and implements
    ``predict(X)``, a score of each row, where larger is better. ``_accepts_sparse = "csr"`` allows
    sparse ``X``, and ``_accepts_nan = True`` allows missing values. Matrix products of a fit run on
    one thread each, so that the number of BLAS threads does not change it, unless
    ``_takes_blas_threads = True``. Each subclass documents the cost of fitting; for the cost of
    ranking see `Index`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from rankspace import BaseRanker, BilinearMetric
    >>> class InnerProduct(BaseRanker):
    ...     '''Ranks by the plain inner product.'''
    ...     def _fit_metric(self, X, relevance, queries):
    ...         return BilinearMetric(np.eye(X.shape[1]), np.eye(X.shape[1]))
    >>> X, y = load_iris(return_X_y=True)
    >>> round(InnerProduct().fit(X, y).score(X, y), 3)
    0.481
    """

    _accepts_lists = False
    _accepts_nan = False
    _accepts_sparse: str | bool = False
    _takes_blas_threads = False

    # Metadata routing: a search or a pipeline passes these on without being configured.
    __metadata_request__fit: ClassVar = {"qid": True, "queries": True}
    __metadata_request__score: ClassVar = {
        "qid": True,
        "queries": True,
        "sample_weight": True,
    }

    # Where the HTML view of an estimator links to.
    _doc_link_module = "rankspace"
    _doc_link_template = page_of("{estimator_name}")

    metric_: Any

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> Metric:
        raise NotImplementedError

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, *, queries: Any = None, qid: Any = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items. Also accepts a file of vectors (.npy, which is memory-mapped, .npz, .parquet or
            .safetensors), a folder of .npy files that hold consecutive rows, or a dask.array.
        y : array-like of shape (n_items,) or Relevance
            Class labels, grades (with ``qid``), or the relevance of items to queries.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are not rows of ``X``. Then ``y`` must be a `Relevance` with as many
            queries.
        qid : array-like of shape (n_items,), optional
            Query of each row, if the rows are candidates of queries without vectors.

        Returns
        -------
        self
        """
        return self._fit(X, y, queries, qid)

    def _fit(
        self,
        X: Any,
        y: Any,
        queries: Any,
        qid: Any,
        sample_weight: Any = None,
        **options: Any,
    ) -> Self:
        data = self._training_data(X, y, queries, qid, sample_weight)
        # How products round depends on the number of their threads, and searches amplify it.
        limit = nullcontext() if self._takes_blas_threads else single_threaded_blas()
        with limit:
            metric = self._fit_metric(*data, **options)
        self._store_metric(metric)
        return self

    def _training_data(
        self,
        X: Any,
        y: Any,
        queries: Any,
        qid: Any = None,
        sample_weight: Any = None,
        *,
        reset: bool = True,
    ) -> tuple[np.ndarray, Relevance, np.ndarray | None]:
        """Validate the training data, and drop queries that have nothing to learn from."""
        check_finite(self.get_params(deep=False))
        X = self._check_items(X, y, reset)
        relevance = self._as_relevance(X, y, qid, queries is not None)
        queries = self._check_queries(relevance, queries)
        if sample_weight is not None:
            relevance = _weighted(relevance, sample_weight)
            _check_some_weight(relevance)
        trainable = _trainable_queries(relevance)
        if trainable.size == relevance.n_queries:
            return X, relevance, queries
        if queries is not None:
            queries = queries[trainable]
        return X, relevance.take_queries(trainable), queries

    def _store_metric(self, metric: Metric) -> None:
        self.metric_ = metric

    def _check_items(self, X: Any, y: Any, reset: bool) -> np.ndarray:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass "
                "class labels or a Relevance."
            )
        check_no_table(y, "y")
        if isinstance(y, Relevance):
            check_stored_ids(y, "item", X)
        X = read_rows(self, X, reset=reset)
        if isinstance(y, Relevance):
            return validate_data(self, X, reset=reset, **self._accepted)
        check_one_label(y, "y")
        X, _ = validate_data(self, X, y, reset=reset, y_numeric=False, **self._accepted)
        return X

    @property
    def _accepted(self) -> dict[str, Any]:
        finite = "allow-nan" if self._accepts_nan else True
        return {
            "dtype": FLOATS,
            "accept_sparse": self._accepts_sparse,
            "ensure_all_finite": finite,
        }

    def _as_relevance(
        self, X: np.ndarray, y: Any, qid: Any, separate_queries: bool
    ) -> Relevance:
        """Build a Relevance from labels, or from grades of candidate lists."""
        if qid is not None:
            relevance = Relevance.from_groups(y, qid)
        elif isinstance(y, Relevance):
            relevance = y.for_items(X.shape[0], separate_queries)
        else:
            relevance = Relevance.from_labels(y)
        check_items(relevance, X)
        if relevance.has_candidate_lists and not self._accepts_lists:
            raise ValueError(
                f"{type(self).__name__} learns from queries that have vectors, but candidate lists "
                "(qid=..., Relevance.from_groups) have none. Use an estimator that accepts lists."
            )
        return relevance

    def _check_queries(
        self, relevance: Relevance, queries: Any, name: str = "queries"
    ) -> np.ndarray | None:
        if queries is None:
            if not relevance.has_candidate_lists:
                check_queries_are_rows(relevance, advice(self))
            return None
        check_same_steps(self, name)
        check_stored_ids(relevance, "query", queries)
        self._check_feature_names(queries, name)
        queries = check_array(as_rows(queries, name), input_name=name, **self._accepted)
        check_query_vectors(relevance, queries, self.n_features_in_)
        return queries

    def _check_feature_names(self, rows: Any, name: str) -> None:
        """Raise if the columns of a dataframe are not those of ``X`` in fit, in their order."""
        check_table_columns(self, rows, name)
        if _is_table(rows):
            return
        validate_data(self, rows, reset=False, skip_check_array=True, ensure_2d=False)

    # ------------------------------------------------------------------ use

    def rank(self, Q: Any, X: Any, k: int | None = None) -> Ranking:
        """Rank the rows of ``X`` for each query, nearest first.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
            Queries.
        X : array-like of shape (n_items, n_features)
            Items.
        k : int, optional
            Number of nearest neighbors to return; all items by default.

        Returns
        -------
        Ranking
        """
        check_is_fitted(self)
        self._check_feature_names(Q, "Q")
        self._check_feature_names(X, "X")
        index, Q = self._searchable(X, Q)
        return index.rank(Q, k)

    def _searchable(self, X: Any, Q: Any) -> tuple[Index, Any]:
        """A search index of the items, and queries for it; sparse data are embedded first."""
        if self._accepts_sparse and (issparse(X) or issparse(Q)):
            return Index(self.metric_.embed_items(X)), self.metric_.embed_queries(Q)
        return Index(X, self.metric_), Q

    def _score_lists(self, X: np.ndarray, lists: np.ndarray) -> np.ndarray:
        """Scores of candidates, given the query of each: by default `predict` ignores it."""
        return self.predict(X)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        queries: Any = None,
        qid: Any = None,
    ) -> float:
        """Mean average precision (MAP) of ranking ``X``.

        Every query ranks all rows of ``X``. Queries that are rows of ``X``, as with labels, rank
        all *other* rows; with ``qid``, a query ranks only its candidates. In cross-validation the
        held-out rows of a fold rank each other, so shuffle the folds of sorted data: a fold with
        only one class scores 1 under any metric.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        y : array-like of shape (n_items,) or Relevance
            Class labels, grades (with ``qid``), or the relevance of items to queries.
        sample_weight : array-like, optional
            Weight of each query: one value for each row of ``X``, or for each of ``queries``. A
            candidate list has the weight of its first row.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are not rows of ``X``.
        qid : array-like of shape (n_items,), optional
            Query of each row.

        Returns
        -------
        float
            Score in [0, 1], larger is better; NaN if no query has a relevant item.
        """
        return self._evaluate(X, y, sample_weight, queries, qid, "map").means["map"]

    def _evaluate(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        queries: Any,
        qid: Any,
        measures: Measures,
    ) -> Report:
        check_is_fitted(self)
        if isinstance(y, Relevance):
            check_stored_ids(y, "item", X)
        X = validate_data(self, read_rows(self, X), reset=False, **self._accepted)
        relevance = self._as_relevance(X, y, qid, queries is not None)
        queries = self._check_queries(relevance, queries)
        if not relevance.trainable.any():
            logger.warning("no query has both relevant and irrelevant items to rank.")
        if sample_weight is not None:
            relevance = _weighted(relevance, sample_weight)
        if relevance.has_candidate_lists:
            lists = list_of_row(relevance)
            ranking = Ranking.from_groups(-self._score_lists(X, lists), lists)
            return evaluate(ranking, relevance, measures)
        return evaluate(self._rankings(X, relevance, queries), relevance, measures)

    def _rankings(self, X: Any, relevance: Relevance, queries: Any) -> Any:
        """Rankings of all items, or of the judged ones, for queries that have vectors."""
        query_items = relevance.query_items
        if queries is None:
            queries = X[query_items]
        index, queries = self._searchable(X, queries)
        if relevance.unlisted_is_irrelevant:
            return index.blocks(queries, query_items=query_items)
        table = relevance.judged_lists()
        judged = np.split(table.indices, table.indptr[1:-1])
        return index.rerank(queries, judged, query_items=query_items)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = bool(self._accepts_sparse)
        tags.input_tags.allow_nan = self._accepts_nan
        return tags


def read_rows(
    learner: BaseEstimator, X: Any, name: str = "X", *, reset: bool = False
) -> Any:
    """Read rows, whose columns must be those of the fit, in their order."""
    if reset:
        learner._table_columns = column_names(X) if _is_table(X) else None
    else:
        check_table_columns(learner, X, name)
    return as_rows(X, name)


def check_table_columns(learner: BaseEstimator, X: Any, name: str) -> None:
    """Raise if the fit or ``X`` is of a table with ids or of fields, and columns differ.

    Those of other dataframes are checked by scikit-learn.
    """
    known = getattr(learner, "_table_columns", None)
    if known is None and _is_table(X):
        names = getattr(learner, "feature_names_in_", None)
        known = None if names is None else list(names)
    elif known is None:
        return
    check_same_columns(known, column_names(X), name, "X in fit")


def _is_table(X: Any) -> bool:
    return isinstance(X, Fields) or has_vector_column(X)


def _weighted(relevance: Relevance, sample_weight: Any) -> Relevance:
    return replace(relevance, weights=query_weights(sample_weight, relevance))


def _check_some_weight(relevance: Relevance) -> None:
    trainable = relevance.trainable
    if trainable.any() and not relevance.weights[trainable].any():
        raise ValueError(
            "sample_weight must be above 0 for a query with relevant and irrelevant items: all "
            "sample weights of such queries are zero."
        )


def _trainable_queries(relevance: Relevance) -> np.ndarray:
    """Numbers of the queries with relevant and irrelevant items; warns about the others."""
    mask = relevance.trainable
    if not mask.any():
        raise ValueError(
            "training needs a query with relevant and irrelevant items: got "
            f"{relevance.n_queries} queries without both. Class labels need more than one class, "
            "and two rows of one of them."
        )
    if not mask.all():
        logger.warning(
            "%d of %d queries have no relevant or no irrelevant items; training ignores them.",
            np.sum(~mask),
            mask.size,
        )
    return np.flatnonzero(mask)
