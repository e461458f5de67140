"""The structural SVM loss of k-nearest-neighbour classification by majority vote."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....evaluation.measures import parse_measure
from ....relevance.relevance import Relevance
from ..points import Points
from .ranking_loss import RankingLoss

VOTE = "knn-vote"


def is_vote(measure: Any) -> bool:
    """Whether a measure is the majority vote of the first k items, ``knn-vote@k``."""
    stem, _, cut = str(measure).partition("@")
    return stem == VOTE and cut.isdigit() and int(cut) > 0


def loss_for(
    points: Points,
    relevance: Relevance,
    measure: Any,
    queries: np.ndarray,
    max_memory: int,
) -> RankingLoss:
    """The structural SVM loss of a measure."""
    kind = VoteLoss if is_vote(measure) else RankingLoss
    return kind(points, relevance, measure, queries, max_memory)


class VoteLoss(RankingLoss):
    """1 if another class has as many of the first k items as the class of the query, else 0."""

    def __init__(
        self,
        points: Points,
        relevance: Relevance,
        measure: str,
        queries: np.ndarray,
        max_memory: int,
    ) -> None:
        self.classes = item_classes(relevance)
        _, self.k = parse_measure(measure.replace(VOTE, "knn"))
        super().__init__(points, relevance, f"knn@{self.k}", queries, max_memory)

    def _violate(
        self, block: np.ndarray, rows: np.ndarray, judged: Any, scales: np.ndarray
    ) -> float:
        from ...._engine.kernels.sorting import sort_rows
        from ...._engine.kernels.votes import violate_votes

        keys, mask = sort_rows(rows)
        order = keys & mask
        distances = np.take_along_axis(rows, order, axis=1)
        loss = violate_votes(
            block, order, distances, judged, self.classes, self.k, scales, rows
        )
        return float(loss)


def item_classes(relevance: Relevance) -> np.ndarray:
    """The class of each item; an item that is relevant to no query is a class of its own."""
    n = relevance.n_items
    relevant = relevance.grades >= relevance.min_relevant_grade
    items = relevance.items[relevant]
    if (
        relevance.background != "irrelevant"
        or not relevant.all()
        or np.unique(items).size < items.size
    ):
        raise ValueError(
            f"measure={VOTE}@k needs class labels of all items: got other judgments. Pass labels "
            "as y, or another measure."
        )
    classes = np.full(n, -1)
    owners = np.repeat(np.arange(relevance.indptr.size - 1), np.diff(relevance.indptr))
    classes[items] = owners
    single = np.flatnonzero(classes < 0)
    # Rows that ask no query because no other is of their class: each is alone in it.
    if single.size and not relevance.queries_are_rows:
        raise ValueError(
            f"measure={VOTE}@k needs the class of each item: got {single.size} items of classes "
            "that no query is of. Leave them out, or add a query of each class."
        )
    classes[single] = owners.max(initial=-1) + 1 + np.arange(single.size)
    return classes
