"""What `tune` tries, by the size of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ._base import BaseRanker
from .frml import FRML
from .listwise import SIDES, TOTAL_PULL, ListwiseMap
from .mlr import MLR
from .mlr_path import MLRCV

METHODS = ("listwise", "diagonal", "frml", "mlr")
PULLS = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)  # in units of the default
WHERE = {"each": "a map for each side", "query": "queries only", "both": "both sides"}
FIRST = (3.0, 1.0)
RANKS = (32, 128)
WIDE = 128  # features, above which a step of FRML or MLR takes long
LARGE = 2e11  # flops of one pass over all queries and items, above which little is tried


class Candidate(NamedTuple):
    """A learner by name, built anew for each fit, the method it is of, and a less careful one.

    ``parts`` are candidates whose metrics come with its fit, in the order of its ``parts_``.
    """

    name: str
    build: Callable[[], BaseRanker]
    method: str = "listwise"
    weaker: Callable[[], Candidate | None] | None = None
    parts: tuple[Candidate, ...] = ()


def candidates(
    n_queries: int, n_items: int, n_features: int, seed: int, gain: str
) -> list[Candidate]:
    """All learners, the most promising first."""
    large = is_large(n_queries, n_items, n_features)
    most = 5000 if large else 20_000

    def listwise(factor: float, side: str = "each") -> Candidate:
        pull = float(f"{factor * TOTAL_PULL / n_queries:.2g}")
        parts = [listwise(factor, part) for part in SIDES] if side == "each" else []
        return Candidate(
            f"listwise map, {WHERE[side]}, pull {pull:g}",
            lambda: ListwiseMap(pull, side=side, gain=gain, max_items=most, random_state=seed),
            weaker=lambda: next((listwise(f) for f in PULLS if f < factor), None),
            parts=tuple(parts),
        )

    return [*map(listwise, FIRST), *_others(n_features, seed)]


def suited(n_queries: int, n_items: int, n_features: int) -> tuple[str, ...]:
    """Methods that suit the size of the data."""
    if is_large(n_queries, n_items, n_features):
        return ("listwise",)
    return METHODS if n_features <= WIDE else ("listwise", "diagonal")


def is_large(n_queries: int, n_items: int, n_features: int) -> bool:
    """Whether a pass over all queries and items takes seconds."""
    return 2.0 * n_queries * n_items * n_features > LARGE


def _others(n_features: int, seed: int) -> list[Candidate]:
    return [
        Candidate(
            "diagonal, MLR-MAP",
            lambda: MLR(constraint="diagonal", regularizer="frobenius", prior="identity"),
            "diagonal",
        ),
        *(_frml(rank, seed) for rank in RANKS if rank < n_features),
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


def _frml(rank: int, seed: int) -> Candidate:
    return Candidate(
        f"FRML, rank {rank} of the principal directions",
        lambda: FRML(rank, max_triplets=20_000, random_state=seed),
        "frml",
    )
