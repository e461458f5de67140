"""Train and held-out queries: one split for validation, or folds for cross-validation."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .relevance import Relevance

FEWEST_QUERIES = 10  # fewer cannot show a significant improvement
N_FOLDS = 5  # of cross-validation
CHOICE_FOLDS = 3  # on which a learner chooses a setting of its own
ENOUGH_HELD_OUT = 1000  # queries, after which no further fold is made


class Split(NamedTuple):
    """Training data, and held-out queries for evaluation over the same items.

    Held-out queries that are rows of ``X`` are removed from the items too, so that nothing is
    learned from them. Where a row is several queries, as in triplets, all items stay.
    """

    X: Any  # training items
    relevance: Relevance  # training judgments
    queries: Any  # vectors of the training queries, None if they are rows of X
    points: Any  # vectors of the held-out queries
    judged: Relevance  # held-out judgments, over the training items
    rows: np.ndarray | None = None  # numbers of the training items, None for all
    corpus: Any = None  # items that held-out queries rank, None for the training items


def check_fraction(fraction: float) -> None:
    """Raise unless the fraction of held-out queries is between 0 and 1."""
    if not 0 < fraction < 1:
        raise ValueError(
            f"validation_fraction must lie between 0 and 1: got {fraction}."
        )


def split_queries(
    n_queries: int,
    fraction: float,
    random: np.random.RandomState,
    most: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Random split into training and held-out queries, at most ``most`` of them held out."""
    check_fraction(fraction)
    order = random.permutation(n_queries)
    n_held_out = max(1, round(fraction * n_queries))
    if most is not None:
        n_held_out = min(n_held_out, most)
    if n_held_out == n_queries:
        raise ValueError(f"holding out queries needs at least 2: got {n_queries}.")
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def sample_data(
    X: Any, relevance: Relevance, queries: Any, n: int, seed: int
) -> tuple[Any, Relevance, Any]:
    """At most ``n`` random items, and ``n`` of the queries that can be learned from on them."""
    random = np.random.default_rng(seed)
    if len(X) > n:
        rows = np.sort(random.choice(len(X), n, replace=False))
        X = np.asarray(X[rows])
        if queries is None:
            relevance = relevance[rows]
        else:
            relevance = relevance._as_separate()._take_items(rows)
    chosen = np.flatnonzero(relevance.trainable)
    if chosen.size > n:
        chosen = np.sort(random.choice(chosen, n, replace=False))
    if queries is not None:
        queries = queries[chosen]
    return X, relevance.take_queries(chosen), queries


class QueryFolds(NamedTuple):
    """Cross-validation folds of queries, whose relevant items stay in training."""

    queries: np.ndarray  # fold that holds out each query

    def split(self, X: Any, relevance: Relevance, queries: Any, fold: int) -> Split:
        """Split that holds out the queries of a fold."""
        train = np.flatnonzero(self.queries != fold)
        held_out = np.flatnonzero(self.queries == fold)
        return hold_out(X, relevance, queries, train, held_out)


def fold_queries(n_queries: int, n_folds: int, seed: int) -> QueryFolds:
    """Random cross-validation folds of queries."""
    folds = np.empty(n_queries, dtype=np.int64)
    order = np.random.default_rng(seed).permutation(n_queries)
    folds[order] = np.arange(n_queries) % n_folds
    return QueryFolds(folds)


def hold_out(
    X: Any, relevance: Relevance, queries: Any, train: np.ndarray, held_out: np.ndarray
) -> Split:
    """Split items, judgments and queries into training and held-out ones by query number."""
    judged = relevance.take_queries(held_out)
    if queries is not None:
        taught = relevance.take_queries(train)
        return Split(X, taught, queries[train], queries[held_out], judged)
    if np.unique(relevance.query_items).size < relevance.n_queries:
        points = X[relevance.query_items[held_out]]
        return Split(X, relevance.take_queries(train), None, points, judged)
    no_query = np.setdiff1d(np.arange(relevance.n_items), relevance.query_items)
    rows = np.sort(np.concatenate((relevance.query_items[train], no_query)))
    points = X[relevance.query_items[held_out]]
    judged = judged._as_separate()._take_items(rows)
    return Split(X[rows], relevance[rows], None, points, judged, rows)


def cross_validation_splits(
    X: Any, relevance: Relevance, queries: Any, seed: int
) -> list[Split]:
    """Folds for cross-validation over queries that can be learned from; none if too few."""
    n = relevance.n_queries
    order = np.random.default_rng(seed).permutation(n)
    splits: list[Split] = []
    n_held_out = 0
    for fold in np.array_split(order, N_FOLDS):
        if not fold.size or fold.size == n or n_held_out >= ENOUGH_HELD_OUT:
            continue
        held_out = np.sort(fold[:ENOUGH_HELD_OUT])
        train = np.sort(np.setdiff1d(order, fold))
        split = hold_out(X, relevance, queries, train, held_out)
        if split.relevance.trainable.any() and split.judged.trainable.any():
            splits.append(only_trainable(split))
            n_held_out += held_out.size
    return splits


def choice_folds(X: Any, relevance: Relevance, queries: Any, seed: int) -> list[Split]:
    """Folds to choose a setting on, with queries to learn from and judge on; none if too few."""
    if relevance.n_queries < FEWEST_QUERIES:
        return []
    folds = fold_queries(relevance.n_queries, CHOICE_FOLDS, seed)
    splits = [folds.split(X, relevance, queries, fold) for fold in range(CHOICE_FOLDS)]
    return [
        only_trainable(split)
        for split in splits
        if split.relevance.trainable.any() and split.judged.trainable.any()
    ]


def _take_training_queries(split: Split, numbers: np.ndarray) -> Split:
    """The same split with some of its training queries."""
    queries = split.queries
    if queries is not None:
        queries = queries[numbers]
    relevance = split.relevance.take_queries(numbers)
    return split._replace(relevance=relevance, queries=queries)


# ---------------------------------------------------------------------- new items


class GroupFolds(NamedTuple):
    """Cross-validation folds that hold out queries together with their relevant items."""

    queries: np.ndarray  # fold that holds out each query
    items: np.ndarray  # fold that holds out each item of a group that was cut, else -1
    groups: np.ndarray  # of queries; those of different groups share no relevant item

    def split(self, X: Any, relevance: Relevance, queries: Any, fold: int) -> Split:
        """Split that holds out queries and their relevant items, which nothing is learned about.

        The items stay in the corpus: in training as unjudged ones, unless they are held-out queries
        themselves. Where a group was cut, pairs across the cut are ignored: in training those with
        held-out items, in evaluation those with training items.
        """
        train = np.flatnonzero(self.queries != fold)
        held_out = np.flatnonzero(self.queries == fold)
        mine = self.items == fold
        other = (self.items >= 0) & ~mine
        judged = relevance.take_queries(held_out)._ignoring(other)
        if queries is not None:
            training = relevance.take_queries(train)._ignoring(mine)
            return Split(X, training, queries[train], queries[held_out], judged)
        query_items = relevance.query_items
        rows = np.setdiff1d(np.arange(relevance.n_items), query_items[held_out])
        points = X[query_items[held_out]]
        training = relevance._ignoring(mine)[rows]
        return Split(X[rows], training, None, points, judged, rows, corpus=X)


def group_queries(relevance: Relevance) -> np.ndarray:
    """Group of each query: connected components of queries that share relevant items.

    A query that is an item belongs to the group of that item.
    """
    n_rows = relevance.indptr.size - 1
    owners = np.repeat(np.arange(n_rows), np.diff(relevance.indptr))
    relevant = relevance.grades >= relevance.min_relevant_grade
    is_item = relevance.query_items >= 0
    rows = np.concatenate((owners[relevant], relevance.rows[is_item]))
    items = np.concatenate((relevance.items[relevant], relevance.query_items[is_item]))
    n_nodes = n_rows + relevance.n_items
    edges = (np.ones(rows.size, dtype=bool), (rows, n_rows + items))
    graph = scipy.sparse.coo_array(edges, shape=(n_nodes, n_nodes))
    _, components = scipy.sparse.csgraph.connected_components(graph, directed=False)
    return np.unique(components[relevance.rows], return_inverse=True)[1]


def fold_groups(relevance: Relevance, n_folds: int, seed: int) -> GroupFolds:
    """Cross-validation folds for new items: no training query shares a relevant item.

    Groups stay together, but one with more queries than a fold is cut: each fold holds out a part
    of its queries and a part of its items, drawn independently unless the item is a query. Classes
    are never cut.
    """
    rng = np.random.default_rng(seed)
    groups = group_queries(relevance)
    sizes = np.bincount(groups)
    too_large = sizes > relevance.n_queries / n_folds
    if relevance.has_classes:
        too_large[:] = False
    fold_of = _balanced_folds(np.where(too_large, 0, sizes), n_folds, rng)[groups]
    item_folds = np.full(relevance.n_items, -1)
    is_cut = too_large[groups]
    for group in np.flatnonzero(too_large):
        members = np.flatnonzero(groups == group)
        items = _relevant_items(relevance.take_queries(members))
        fold_of[rng.permutation(members)] = np.arange(members.size) % n_folds
        item_folds[rng.permutation(items)] = np.arange(items.size) % n_folds
    # A query that is an item is held out as both: as a query, it would teach its vector.
    own = relevance.query_items
    both = (own >= 0) & (item_folds[own] >= 0)
    item_folds[own[both]] = fold_of[both]
    # Queries of a group that was cut are told apart: what they share is held out by item.
    groups[is_cut] = groups.max() + 1 + np.arange(is_cut.sum())
    return GroupFolds(fold_of, item_folds, groups)


def _balanced_folds(
    sizes: np.ndarray, n_folds: int, rng: np.random.Generator
) -> np.ndarray:
    """A fold for each group, the largest first, each into the fold with the fewest queries."""
    folds = np.empty(sizes.size, dtype=np.int64)
    filled = np.zeros(n_folds)
    order = rng.permutation(sizes.size)
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        folds[group] = filled.argmin()
        filled[folds[group]] += sizes[group]
    return folds


def _relevant_items(relevance: Relevance) -> np.ndarray:
    """Items that are relevant to some query."""
    return np.unique(relevance.items[relevance.grades >= relevance.min_relevant_grade])


def only_trainable(split: Split) -> Split:
    """The same split without training queries that have nothing to learn from."""
    numbers = np.flatnonzero(split.relevance.trainable)
    if numbers.size == split.relevance.n_queries:
        return split
    return _take_training_queries(split, numbers)


def share_known(relevance: Relevance, held_out: Relevance) -> np.ndarray:
    """Share of the relevant items of each held-out query that a training query made known.

    1 is a query for known items, 0 for new ones; NaN has nothing relevant.
    """
    known = np.zeros(relevance.n_items, dtype=bool)
    known[_relevant_items(relevance)] = True
    is_relevant = held_out.grades >= held_out.min_relevant_grade
    n_known = held_out._count(is_relevant & known[held_out.items])
    with np.errstate(invalid="ignore"):
        return n_known / held_out.n_relevant
