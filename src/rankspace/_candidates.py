"""What `tune` tries, by the size of the data."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from ._base import BaseRanker
from .frml import FRML
from .listwise import TOTAL_PULL, ListwiseMap
from .mlr import MLR
from .mlr_path import MLRCV

METHODS = ("listwise", "diagonal", "frml", "mlr")
# In units of the default. Much data can carry weak pulls; there, two maps would take too long.
PULLS, PULLS_OF_LARGE = (3.0, 1.0, 0.3), (1.0, 0.3, 0.1, 3.0)
WHERE = {"each": "a map for each side", "query": "queries only", "both": "both sides"}
RANKS = (32, 128)
LARGE = 2e11  # flops of one pass over all queries and items, above which little is tried
MOST_FEATURES = 512  # for methods that need all eigenvectors in every step


class Candidate(NamedTuple):
    """A learner by name, built anew for each fit, and the method it is of."""

    name: str
    build: Callable[[], BaseRanker]
    method: str = "listwise"


def candidates(n_queries: int, n_items: int, n_features: int, seed: int) -> list[Candidate]:
    """Learners that suit the data, the most promising first."""
    large = is_large(n_queries, n_items, n_features)
    most = 5000 if large else 20_000

    def listwise(factor: float, side: str) -> Candidate:
        pull = float(f"{factor * TOTAL_PULL / n_queries:.2g}")
        return Candidate(
            f"listwise map, {WHERE[side]}, pull {pull:g}",
            lambda: ListwiseMap(pull, side=side, max_items=most, random_state=seed),
        )

    ways = product(PULLS_OF_LARGE, ("query", "both")) if large else product(PULLS, WHERE)
    maps = [listwise(*way) for way in ways]
    return maps if large else [*maps, *_others(n_features, seed)]


def is_large(n_queries: int, n_items: int, n_features: int) -> bool:
    """Whether a pass over all queries and items takes seconds."""
    return 2.0 * n_queries * n_items * n_features > LARGE


def _others(n_features: int, seed: int) -> list[Candidate]:
    others = [
        Candidate(
            "diagonal, MLR-MAP",
            lambda: MLR(constraint="diagonal", regularizer="frobenius", prior="identity"),
            "diagonal",
        ),
        *(_frml(rank, seed) for rank in RANKS if rank < n_features),
    ]
    if n_features <= MOST_FEATURES:
        others += [
            Candidate(
                "MLR-MAP towards the identity",
                lambda: MLRCV(
                    (10, 100, 1000), regularizer="frobenius", prior="identity", random_state=seed
                ),
                "mlr",
            ),
            Candidate(
                "FRML from the identity",
                lambda: FRML(init="identity", max_triplets=20_000, random_state=seed),
                "frml",
            ),
        ]
    return others


def _frml(rank: int, seed: int) -> Candidate:
    return Candidate(
        f"FRML, rank {rank} of the principal directions",
        lambda: FRML(rank, max_triplets=20_000, random_state=seed),
        "frml",
    )
