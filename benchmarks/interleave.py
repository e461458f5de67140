"""Does the sequential test of interleaved rankings keep its error, however often it is checked?

"Fair coins" are wins of a share of one half, checked after every impression. The other rows
interleave rankings of the training queries of SciFact by team draft, every search with coins of its
own, and check each impression: unchanged vectors against vectors with noise, which are worse.
The user looks at rank r with probability 1/r. "Clicks anywhere" do not depend on the document, so
that nobody is preferred; "clicks on what is relevant" are 0.6 of the views of a relevant document
and 0.05 of those of another. 5 % of errors are promised, at all checks together. "Decided wrongly"
is in favour of the worse ranking, or of any of two equal ones. "A test at each check" is the usual
binomial test at the level of 5 %, repeated as often.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _table import publish
from scipy.stats import norm

from rankspace import Index, Ranking, Relevance, evaluate
from rankspace.datasets import open_dataset
from rankspace.evaluation.sequential import log_martingale

LEVEL = 0.05
LENGTH = 10
NOISE = 0.05  # standard deviation in each coordinate of vectors of length 1
Wins = Callable[[int], np.ndarray]  # 1, -1 and 0 of all impressions, from a seed


def rankings() -> tuple[Ranking, Ranking, Relevance]:
    """Unchanged vectors, vectors with noise, and the judgments."""
    collection = open_dataset("scifact").part("train")
    X = np.asarray(collection.X, dtype=np.float32)
    Q = np.asarray(collection.queries, dtype=np.float32)
    noise = np.random.default_rng(0).normal(scale=NOISE, size=X.shape)
    worse = X + noise.astype(np.float32)
    found = [Index(rows, similarity="cosine").rank(Q, LENGTH) for rows in (worse, X)]
    assert collection.relevance is not None
    return found[0], found[1], collection.relevance


def by_clicks(on_relevant: bool, n_passes: int) -> Wins:
    """Wins of the better ranking in passes over all queries, by clicks of simulated users."""
    worse, better, judged = rankings()
    pairs = [set(judged.relevant(query).tolist()) for query in range(judged.n_queries)]
    views = 1 / np.arange(1, LENGTH + 1)

    def wins(seed: int) -> np.ndarray:
        rng = np.random.default_rng([1, seed])
        found = []
        for number in range(n_passes):
            shown = worse.interleave(better, n_passes * seed + number)
            items = shown.ranking.items.reshape(-1, LENGTH)
            chance = np.full(items.shape, 0.3)
            if on_relevant:
                rows = zip(items.tolist(), pairs, strict=True)
                is_hit = [[item in hits for item in row] for row, hits in rows]
                chance = np.where(is_hit, 0.6, 0.05)
            clicked = rng.random(items.shape) < views * chance
            rows, places = np.nonzero(clicked)
            names = zip(rows.tolist(), items[rows, places].tolist(), strict=True)
            found.append(rng.permutation(shown.wins(names)))
        return np.concatenate(found)

    return wins


def fair_coins(n: int) -> Wins:
    """Wins without any ranking."""
    return lambda seed: 2 * np.random.default_rng(seed).integers(2, size=n) - 1


def decisions(wins: np.ndarray) -> tuple[int, int, int]:
    """Who is preferred at the first check that says so (1, -1, 0), when, and by a naive test."""
    won, lost = np.cumsum(wins == 1), np.cumsum(wins == -1)
    decided = log_martingale(won, lost, 0.5) >= -np.log(LEVEL)
    naive = np.abs(won - lost) >= norm.ppf(1 - LEVEL / 2) * np.sqrt(won + lost)
    naive &= won + lost >= 30
    first = int(decided.argmax())
    preferred = int(np.sign(won[first] - lost[first])) if decided.any() else 0
    alarm = int(naive.argmax())
    by_naive = int(np.sign(won[alarm] - lost[alarm])) if naive.any() else 0
    return preferred, first + 1, by_naive


def row(label: str, n_runs: int, wins: Wins, is_fair: bool) -> list[Any]:
    """Errors of one kind of users."""
    found = []
    for seed in range(n_runs):
        one = wins(seed)
        found.append((*decisions(one), one.size))
    preferred, when, naive, n_checks = np.array(found).T
    print(label, flush=True, file=sys.stderr)
    wrong = preferred != 0 if is_fair else preferred == -1
    naive_wrong = naive != 0 if is_fair else naive == -1
    right: Any = "–"
    median: Any = "–"
    if not is_fair:
        right = float(np.mean(preferred == 1))
        median = float(np.median(when[preferred == 1])) if right else "–"
    shares = [float(np.mean(wrong)), float(np.mean(naive_wrong))]
    return [label, n_runs, int(n_checks[0]), *shares, right, median]


def rows(n_runs: int) -> Iterator[list[Any]]:
    """The rows of the table."""
    yield row("fair coins", n_runs, fair_coins(10_000), True)
    yield row("clicks anywhere", n_runs, by_clicks(False, 2), True)
    worse, better, judged = rankings()
    measure = "ndcg-linear@10"
    means = [
        evaluate(ranking, judged, measure).means[measure] for ranking in (better, worse)
    ]
    label = f"clicks on what is relevant, NDCG@10 {means[0]:.2f} against {means[1]:.2f}"
    yield row(label, max(1, n_runs // 5), by_clicks(True, 4), False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--json")
    options = parser.parse_args()
    header = [
        "users",
        "runs",
        "checks",
        "decided wrongly",
        "a test at each check",
        "decided rightly",
        "impressions until then, median",
    ]
    title = "Interleaving: errors of the sequential test"
    publish(title, header, list(rows(options.runs)))


if __name__ == "__main__":
    main()
