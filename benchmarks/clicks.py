"""What is each way of turning clicks into grades worth?

Clicks are simulated from judgments. In each of 50 sessions of a query, its ten nearest documents
are shown, by a cosine to which noise of 0.02 is added, so that pages differ. A user who looks at a
document clicks it with probability 0.8 if it is relevant, else 0.1. "By position": the user looks
at position r with probability 1 / r. "Cascade": the user reads from the top, and goes on with
probability 0.9 after a document that was not clicked, and 0.3 after one that was.

A map of the queries (`ListwiseMap`, linear gain, its default strengths) is learned from half of the
queries and measured on the other half by their judgments, and the other way round; this is repeated
with other halves. Queries are those of Cranfield, and training queries of SciFact and NFCorpus (a
random 600). "Gain" is the mean difference of NDCG@10 from unchanged vectors. Intervals are of 95 %
over queries, each with the mean of its values. "Against counts" is the difference from plain
counts.

Ways: "counts" are clicks (`Relevance.from_clicks`); "clicked" is 1 for a document that was ever
clicked; "inverse propensity" divides clicks by the probability that their position was looked at,
as it was in the log; "5 impressions" leaves out what was shown less often; "others irrelevant"
takes documents that were not shown as irrelevant in place of ignoring them; "judgments, shown" has
the judgments of what was shown, and "judgments" all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from _table import publish

from rankspace import Index, ListwiseMap, Relevance
from rankspace.datasets import open_dataset
from rankspace.evaluation.held_out import oriented_values
from rankspace.evaluation.significance import clustered_mean

SETS = ("Cranfield", "SciFact", "NFCorpus")
MOST = 600  # queries of a set
SHOWN = 10
CANDIDATES = 50  # that noise may bring onto the first page
NOISE = 0.02
CLICKED = (
    0.1,
    0.8,
)  # probability of a click on an irrelevant and on a relevant document
GO_ON = (0.9, 0.3)  # of a cascade, without and after a click
MODELS = ("by position", "cascade")
MEASURE = "ndcg-linear@10"
HEADER = [
    "set",
    "users look",
    "way",
    "queries",
    "unchanged",
    "gain",
    "low",
    "high",
    "against counts",
    "low ",
    "high ",
]


class Task(NamedTuple):
    """Vectors, queries and judgments of a set, and the measure of unchanged vectors."""

    X: np.ndarray
    Q: np.ndarray
    relevance: Relevance
    before: np.ndarray


class Log(dict[str, np.ndarray]):
    """Columns by name, as a dataframe has them."""

    @property
    def columns(self) -> list[str]:
        return list(self)


class Clicks(NamedTuple):
    """A simulated log, and how often users looked at each position."""

    log: Log
    looked: np.ndarray


def load(name: str) -> Task:
    """A set: its training queries, or all where there are no parts."""
    data = open_dataset(name.lower())
    assert data.relevance is not None
    numbers = np.arange(data.relevance.n_queries)
    if "train" in data.splits:
        numbers = data.splits["train"]
    numbers = np.random.default_rng(0).permutation(numbers)[:MOST]
    relevance = data.relevance.take_queries(numbers)
    X, Q = (np.asarray(V, dtype=np.float32) for V in (data.X, data.queries))
    return Task(X, Q[numbers], relevance, values(X, Q[numbers], relevance, None))


def values(X: Any, Q: Any, relevance: Relevance, metric: Any) -> np.ndarray:
    """The measure of each query."""
    index = Index(X, metric, similarity="cosine" if metric is None else None)
    return oriented_values(index.rank(Q, SHOWN), relevance, MEASURE)


# ---------------------------------------------------------------------- users


def simulate(task: Task, model: str, sessions: int, seed: int) -> Clicks:
    """A log of sessions of each query."""
    rng = np.random.default_rng(seed)
    ranking = Index(task.X, similarity="cosine").rank(task.Q, CANDIDATES)
    parts: list[dict[str, np.ndarray]] = []
    n_looked = np.zeros(SHOWN)
    for query, (items, distances) in enumerate(ranking):
        noisy = distances + NOISE * rng.standard_normal((sessions, items.size))
        pages = items[np.argsort(noisy, axis=1)[:, :SHOWN]]
        relevant = np.isin(pages, task.relevance.relevant(query))
        attracted = rng.random(pages.shape) < np.where(relevant, *CLICKED[::-1])
        looked = LOOK[model](attracted, rng)
        n_looked += looked.sum(axis=0)
        part = {"query": np.full(pages.size, query), "document": pages.ravel()}
        part["position"] = np.tile(np.arange(1, SHOWN + 1), sessions)
        part["clicked"] = (attracted & looked).ravel()
        parts.append(part)
    log = Log({name: np.concatenate([part[name] for part in parts]) for name in part})
    return Clicks(log, n_looked / (sessions * len(task.Q)))


def _by_position(attracted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    looked: np.ndarray = rng.random(attracted.shape) < 1 / np.arange(1, SHOWN + 1)
    return looked


def _cascade(attracted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    goes_on = rng.random(attracted.shape) < np.where(attracted, *GO_ON[::-1])
    first = np.ones((len(attracted), 1), dtype=bool)
    before = np.concatenate((first, goes_on[:, :-1]), axis=1)
    looked: np.ndarray = np.cumprod(before, axis=1).astype(bool)
    return looked


LOOK = dict(zip(MODELS, (_by_position, _cascade), strict=True))


# ---------------------------------------------------------------------- ways


def ways(task: Task, clicks: Clicks) -> Iterator[tuple[str, Relevance]]:
    """Judgments from clicks, each way."""
    ids = {"query_ids": range(len(task.Q)), "item_ids": range(len(task.X))}

    def clicked(**options: Any) -> Relevance:
        return Relevance.from_clicks(clicks.log, **ids, **options)

    counts = clicked()
    yield "counts", counts
    yield "clicked", replace(counts, grades=np.minimum(counts.grades, 1))
    yield "inverse propensity", clicked(propensities=clicks.looked)
    yield "5 impressions", clicked(min_impressions=5)
    yield "others irrelevant", replace(counts, unjudged="irrelevant")
    yield "judgments, shown", judged_of_shown(task, counts)
    yield "judgments", task.relevance


def judged_of_shown(task: Task, counts: Relevance) -> Relevance:
    """The judgments of documents that were shown."""
    relevant, irrelevant = [], []
    for query in range(len(task.Q)):
        shown, _ = counts.judged(query)
        items, grades = task.relevance.judged(query)
        grade_of = dict(zip(items.tolist(), grades.tolist(), strict=True))
        grades_shown = {item: grade_of.get(item, 0.0) for item in shown.tolist()}
        relevant.append({i: g for i, g in grades_shown.items() if g >= 1})
        irrelevant.append([i for i, g in grades_shown.items() if g < 1])
    n_items = len(task.X)
    return Relevance.from_lists(
        relevant, irrelevant, n_items=n_items, unjudged="ignore"
    )


def gains(task: Task, taught: Relevance, draws: int) -> np.ndarray:
    """Mean difference from unchanged vectors of each query, by maps of the other half."""
    found = np.zeros((draws, len(task.Q)))
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(task.Q))
        halves = np.array_split(order, 2)
        for learned, held_out in (halves, halves[::-1]):
            after = _held_out(task, taught, np.sort(learned), held_out)
            found[draw, held_out] = after - task.before[held_out]
    means: np.ndarray = found.mean(axis=0)
    return means


def _held_out(
    task: Task, taught: Relevance, learned: np.ndarray, held_out: np.ndarray
) -> np.ndarray:
    """Values of the judgments of some queries, by a map learned from the clicks of others."""
    learned = learned[taught.take_queries(learned).trainable]
    learner = ListwiseMap(sides="query", similarity="cosine", gain="linear")
    learner.fit(task.X, taught.take_queries(learned), queries=task.Q[learned])
    judged = task.relevance.take_queries(held_out)
    return values(task.X, task.Q[held_out], judged, learner.metric_)


def interval(differences: np.ndarray) -> list[float]:
    """Mean and limits of its interval."""
    mean = clustered_mean(differences, np.arange(differences.size))
    return [mean.mean, *mean.interval]


def rows_of(name: str, model: str, options: argparse.Namespace) -> list[list[Any]]:
    """The rows of a set and a model of users."""
    task = load(name)
    clicks = simulate(task, model, options.sessions, 0)
    rows: list[list[Any]] = []
    counts = None
    for way, taught in ways(task, clicks):
        found = gains(task, taught, options.draws)
        counts = found if counts is None else counts
        against = ["", "", ""] if found is counts else interval(found - counts)
        unchanged = float(task.before.mean())
        row = [name, model, way, len(task.Q), unchanged, *interval(found), *against]
        print(row, flush=True)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--sessions", type=int, default=50, help="of each query")
    parser.add_argument(
        "--draws", type=int, default=5, help="pairs of halves of the queries"
    )
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        for model in MODELS:
            rows += rows_of(name, model, options)
    publish("Clicks: ways of turning them into grades", HEADER, rows)


if __name__ == "__main__":
    main()
