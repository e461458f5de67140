"""Families of metrics, each learned along a path of decreasing regularisation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from .._engine.checks import check_choice
from .._engine.similarity import unit_rows
from ..evaluation.measures import parse_measure
from ..metrics.embedding import EmbeddingMetric, LinearMetric
from ..relevance.relevance import Relevance
from ..search.index import Index
from .base import BaseRanker
from .frml import FRML
from .hard_negatives import with_hard_negatives
from .listwise import SIMILARITIES, ListwiseMap
from .mlr import MLR

# Values of `reg`, times the number of training queries: half a decade a step. The first changes
# rankings little more than whitening does; below the last nothing changed on any development set.
TOTAL_REGS = (240.0, 80.0, 24.0, 8.0, 2.4, 0.8, 0.24, 0.08)
# Weight of documents that nobody judged relevant, if there are separate queries. A lower one spares
# queries for new documents and gains less for known ones: experiments/tune-family.md.
UNJUDGED_WEIGHT = 0.1
# Rows of labelled data that are learned from; a step costs their square.
MAX_ROWS = 3000

LISTWISE = {
    "query": "map of the queries",
    "shared": "map shared by queries and items",
    "separate": "a map for each side",
}
OTHERS = {
    "diagonal": "diagonal MLR",
    "mlr": "MLR, regularised towards the identity",
    "frml": "FRML, starting from the identity",
}
METHODS = (*LISTWISE, *OTHERS)


@dataclass(frozen=True)
class Family:
    """A family of metrics: one metric for each strength of regularisation, strongest first."""

    method: str
    label: str
    similarity: str
    strengths: tuple[str, ...]

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[EmbeddingMetric]:
        """Learn the metric of each strength; an index of ``X`` saves making one."""
        raise NotImplementedError

    def metric(
        self,
        X: Any,
        relevance: Relevance,
        queries: Any,
        strength: int,
        index: Index | None = None,
    ) -> EmbeddingMetric:
        """Learn the metric of one strength, counted from 1, along the path to it."""
        path = self.metrics(X, relevance, queries, index)
        return next(itertools.islice(path, strength - 1, None))


@dataclass(frozen=True)
class ListwiseFamily(Family):
    """Listwise maps with decreasing ``reg``, each search starting at the last map."""

    estimator: ListwiseMap

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[EmbeddingMetric]:
        """Learn the map of each ``reg``."""
        X, relevance = with_hard_negatives(
            X, relevance, queries, self.similarity, index
        )
        n_queries = relevance.n_queries
        if queries is None:
            n_queries = min(n_queries, self.estimator.max_items)
        regs = [total / n_queries for total in TOTAL_REGS]
        return self.estimator.path(X, relevance, regs, queries=queries)


@dataclass(frozen=True)
class EstimatorFamily(Family):
    """Metrics of estimators that are fitted one by one."""

    estimators: tuple[BaseRanker, ...]

    def metrics(
        self, X: Any, relevance: Relevance, queries: Any, index: Index | None = None
    ) -> Iterator[EmbeddingMetric]:
        """Fit each estimator."""
        X, relevance = with_hard_negatives(
            X, relevance, queries, self.similarity, index
        )
        if self.similarity == "cosine":
            X = unit_rows(X, "X")
            queries = None if queries is None else unit_rows(queries, "queries")
        for estimator in self.estimators:
            metric = clone(estimator).fit(X, relevance, queries=queries).metric_
            yield LinearMetric(
                metric.components,
                similarity=self.similarity,
                parameters=metric.parameters,
            )


def families(
    methods: Sequence[str] | None,
    similarity: str,
    measure: str,
    separate_queries: bool,
    seed: int,
) -> list[Family]:
    """The families of the given methods, or of the default one.

    The default is a map of the queries, which leaves the index unchanged. It needs separate queries
    and inner products; otherwise it is a map shared by both sides.
    """
    if methods is None:
        by_products = separate_queries and similarity != "euclidean"
        methods = ["query" if by_products else "shared"]
    check_methods(methods)
    found: list[Family] = []
    for method in dict.fromkeys(methods):
        if method in LISTWISE:
            gain = parse_measure(measure)[0].gain
            found.append(_listwise(method, similarity, gain, separate_queries, seed))
        else:
            found.append(_others(method, similarity, seed))
    return found


def check_methods(methods: Any) -> None:
    """Raise unless the methods are a list of known ones, or None."""
    if methods is None:
        return
    if isinstance(methods, str) or not methods:
        raise ValueError(
            f"methods must be a list of some of {', '.join(METHODS)}: got {methods!r}."
        )
    for method in methods:
        check_choice(method, "methods", METHODS)


def _listwise(
    sides: str, similarity: str, gain: str, separate_queries: bool, seed: int
) -> Family:
    if similarity not in SIMILARITIES[sides]:
        allowed = " or ".join(SIMILARITIES[sides])
        raise ValueError(
            f"the method {sides!r} needs similarity {allowed}: got {similarity!r}."
        )
    if sides != "shared" and not separate_queries:
        raise ValueError(
            f"the method {sides!r} needs separate queries: here the items are the queries. Use "
            "'shared'."
        )
    estimator = ListwiseMap(
        sides=sides,
        similarity=similarity,
        scaling=None,
        gain=gain,
        random_state=seed,
    )
    if separate_queries:
        estimator.set_params(unjudged_weight=UNJUDGED_WEIGHT)
    else:
        estimator.set_params(max_items=MAX_ROWS)
    strengths = tuple(f"reg {total:g} / queries" for total in TOTAL_REGS)
    return ListwiseFamily(sides, LISTWISE[sides], similarity, strengths, estimator)


def _others(method: str, similarity: str, seed: int) -> Family:
    if similarity == "dot":
        raise ValueError(
            f"the method {method!r} learns a distance, so it needs similarity cosine or euclidean: "
            "got 'dot'."
        )
    estimators: dict[str, BaseRanker] = {}
    if method == "frml":
        frml = FRML(init="identity", scaling=None, n_triplets=20_000, random_state=seed)
        estimators["early stopping"] = frml
    else:
        constraint = "diagonal" if method == "diagonal" else "psd"
        for C in (1.0, 10.0, 100.0, 1000.0):
            estimators[f"C {C:g}"] = MLR(
                C,
                constraint=constraint,
                regularizer="frobenius",
                prior="identity",
                scaling=None,
            )
    return EstimatorFamily(
        method,
        OTHERS[method],
        similarity,
        tuple(estimators),
        tuple(estimators.values()),
    )
