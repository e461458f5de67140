"""Slow and obvious twins of the library, in plain Python."""

import itertools
import math
import re

import numpy as np

MEASURES = (
    "auc",
    "first-rank",
    "knn@1",
    "knn@2",
    "knn@3",
    "map",
    "mrr",
    "ndcg",
    "ndcg@1",
    "ndcg@3",
    "ndcg-linear@2",
    "ndcg-linear",
    "ndcg-mlr@3",
    "ndcg-mlr",
    "p@1",
    "p@4",
    "r@2",
    "ranking-error",
    "p@1000",
    "r@1000",
    "knn@1000",
    "ndcg@1000",
    "ndcg-mlr@1000",
)
NEED_ALL = ("auc", "first-rank", "ranking-error")


def whole(message):
    """A pattern that matches this text and nothing else."""
    return f"^{re.escape(message)}$"


# ---------------------------------------------------------------------- measures


def score(name, ranked, everything, min_relevant_grade=1.0):
    """A measure of one list: its grades from the top, and the grades of all that could be listed.

    NaN where there is nothing to find, or for pairs nothing to compare.
    """
    base, _, cut = name.partition("@")
    k = int(cut) if cut else max(len(ranked), len(everything))
    if base in ("ndcg", "ndcg-linear"):
        return graded_ndcg(
            ranked, everything, k, lambda g: 2**g - 1 if base == "ndcg" else g
        )
    hits = [grade >= min_relevant_grade for grade in ranked]
    n_relevant = sum(grade >= min_relevant_grade for grade in everything)
    if n_relevant == 0:
        return math.nan
    if base in ("auc", "ranking-error"):
        wrong = wrong_pairs(hits)
        n_pairs = n_relevant * (len(everything) - n_relevant)
        if n_pairs == 0:
            return math.nan
        return 1 - wrong / n_pairs if base == "auc" else (wrong / n_pairs) / 0.5
    if base == "p":
        return sum(hits[:k]) / k
    if base == "r":
        return sum(hits[:k]) / n_relevant
    if base == "knn":
        return float(sum(hits[:k]) > k / 2)
    if base == "map":
        return sum(sum(hits[:i]) / i for i in places(hits)) / n_relevant
    if base == "mrr":
        return max((1 / i for i in places(hits)), default=0.0)
    if base == "first-rank":
        return min(places(hits))
    assert base == "ndcg-mlr"
    best = sum(mlr_discount(i) for i in range(1, min(k, n_relevant) + 1))
    return sum(mlr_discount(i) for i in places(hits) if i <= k) / best


def places(hits):
    """1-based positions of what is relevant."""
    return [i for i, hit in enumerate(hits, 1) if hit]


def wrong_pairs(hits):
    """Pairs of an irrelevant item above a relevant one."""
    return sum(
        hits[j] and not hits[i] for i, j in itertools.combinations(range(len(hits)), 2)
    )


def mlr_discount(i):
    return 1.0 if i <= 2 else 1 / math.log2(i)


def graded_ndcg(ranked, everything, k, gain):
    def discounted(grades):
        positive = (max(gain(grade), 0.0) for grade in grades[:k])
        return sum(g / math.log2(i + 1) for i, g in enumerate(positive, 1))

    best = discounted(sorted(everything, reverse=True))
    return discounted(ranked) / best if best > 0 else math.nan


def tie_orders(listed):
    """Every order of (distance, item) pairs in which no distance decreases."""
    groups = itertools.groupby(sorted(listed), key=lambda pair: pair[0])
    shuffled = [
        list(itertools.permutations(item for _, item in group)) for _, group in groups
    ]
    return [list(itertools.chain(*order)) for order in itertools.product(*shuffled)]


def query_score(
    name,
    grades,
    distances,
    *,
    own=-1,
    unjudged="irrelevant",
    min_relevant_grade=1.0,
    ties="index",
):
    """A measure of one query from its rows of grades (NaN: unjudged) and distances (inf: unlisted).

    ``ties="mean"`` is the mean over all orders of items at equal distance.
    """
    counted = [
        i
        for i, grade in enumerate(grades)
        if i != own and not (unjudged == "ignore" and math.isnan(grade))
    ]
    value = {i: 0.0 if math.isnan(grades[i]) else grades[i] for i in counted}
    listed = sorted((distances[i], i) for i in counted if distances[i] < math.inf)
    orders = tie_orders(listed) if ties == "mean" else [[i for _, i in listed]]
    scores = [
        score(name, [value[i] for i in order], list(value.values()), min_relevant_grade)
        for order in orders
    ]
    return sum(scores) / len(scores)


def lists_everything(grades, distances, own, unjudged):
    """Whether a list holds every item that counts."""
    return all(
        distance < math.inf
        for i, (grade, distance) in enumerate(zip(grades, distances, strict=True))
        if i != own and not (unjudged == "ignore" and math.isnan(grade))
    )


def nearest_vote_error(distances, labels, truth, k):
    """Share of rows whose k nearest items vote for another class than the true one."""
    wrong = 0
    for row, true in zip(distances, truth, strict=True):
        voters = sorted(range(len(row)), key=lambda i: (row[i], i))[:k]
        votes = {
            label: [row[i] for i in voters if labels[i] == label]
            for label in set(labels)
        }
        winner = min(
            votes, key=lambda label: (-len(votes[label]), sum(votes[label]), label)
        )
        wrong += winner != true
    return wrong / len(distances)


def sign_flip_p_value(differences):
    """Share of all sign flips whose mean is at least as far from 0."""
    seen = abs(sum(differences))
    flips = list(itertools.product((1, -1), repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(f, differences, strict=True))) for f in flips]
    return sum(total >= seen - 1e-12 for total in sums) / len(flips)


# ---------------------------------------------------------------------- relevance


def dense(relevance):
    """Grades of queries by items: NaN is unjudged, -inf is no candidate of the query."""
    outside = {"irrelevant": 0.0, "unjudged": math.nan, "absent": -math.inf}
    table = np.full(
        (relevance.n_queries, relevance.n_items), outside[relevance.background]
    )
    for query in range(relevance.n_queries):
        row = relevance.rows[query]
        for at in range(relevance.indptr[row], relevance.indptr[row + 1]):
            table[query, relevance.items[at]] = relevance.grades[at]
        if relevance.query_items[query] >= 0:
            table[query, relevance.query_items[query]] = -math.inf
    return table
