"""What `tune` tries, by the size of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..learners.base import BaseRanker
from ..learners.frml import FRML
from ..learners.listwise import SIDES, TOTAL_REGS, ListwiseMap
from ..learners.mlr import MLR
from ..learners.mlr_cv import MLRCV

METHODS = ("listwise", "diagonal", "frml", "mlr")
WEAKER = (0.8, 0.24, 0.08)  # pulls times the number of queries, beyond the default ones
WHERE = {
    "separate": "a map for each side",
    "query": "queries only",
    "shared": "both sides",
}
CAREFUL = (
    0.03  # what items that are relevant to nobody count, where new ones are harmed
)
LEAD = 2.0  # standard errors
RANKS = (32, 128)
WIDE = 128  # features, above which a step of FRML or MLR takes long
LARGE = (
    2e11  # flops of one pass over all queries and items, above which little is tried
)


class Candidate(NamedTuple):
    """A learner by name, built anew for each fit, and the method it is of.

    ``weaker`` and ``careful`` make one that is drawn less to the identity, and one that harms
    queries with new items less.
    ``along`` are candidates whose metrics come with its fit, by their names among its ``parts_``;
    some are ``part_of`` it. It ``prefers`` one of these, or itself, to all that are not ahead of
    that by more than their ``lead`` in standard errors.
    """

    name: str
    build: Callable[[], BaseRanker]
    method: str = "listwise"
    weaker: Callable[[], Candidate | None] | None = None
    careful: Callable[[], Candidate] | None = None
    along: Mapping[str, Candidate] = MappingProxyType({})
    part_of: str = ""
    prefers: str = ""
    lead: float = 0.0

    @property
    def preferred(self) -> str:
        """The name of what is preferred among it and what comes along."""
        return self.along[self.prefers].name if self.prefers else self.name


def candidates(
    n_queries: int,
    n_items: int,
    n_features: int,
    seed: int,
    gain: str,
    one_length: bool = True,
) -> list[Candidate]:
    """All learners, the most promising first.

    Of vectors of one length a map of the queries only is preferred, which leaves the corpus and its
    index as they are; for others inner products do not suit.
    """
    large = is_large(n_queries, n_items, n_features)
    most = 5000 if large else 20_000

    def listwise(
        totals: Sequence[float],
        side: str = "separate",
        part_of: str = "",
        unjudged_weight: float = 1.0,
    ) -> Candidate:
        pulls = [float(f"{total / n_queries:.2g}") for total in totals]
        name = f"listwise map, {WHERE[side]}, pull {' and '.join(f'{reg:g}' for reg in pulls)}"
        name += ", careful" if unjudged_weight < 1 else ""
        along = {
            part: listwise(totals, part, name, unjudged_weight)
            for part in SIDES
            if side == "separate"
        }
        first = side == "separate" and totals == TOTAL_REGS and unjudged_weight == 1
        if first:  # the weakest of its pulls is tried by itself
            along["weakest"] = alone = listwise(totals[-1:])
            along |= {f"weakest {part}": found for part, found in alone.along.items()}
        weaker = next((total for total in WEAKER if total < totals[-1]), None)
        weaker = None if totals == TOTAL_REGS else weaker
        return Candidate(
            name,
            lambda: ListwiseMap(
                pulls,
                sides=side,
                gain=gain,
                unjudged_weight=unjudged_weight,
                max_items=most,
                random_state=seed,
            ),
            weaker=lambda: None if weaker is None else listwise([weaker]),
            careful=(lambda: listwise(totals, unjudged_weight=CAREFUL))
            if first
            else None,
            along=along,
            part_of=part_of,
            lead=LEAD if unjudged_weight == 1 else 0.0,
            prefers=("query" if one_length else "shared") if side == "separate" else "",
        )

    return [listwise(TOTAL_REGS), *_others(n_features, seed)]


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
            lambda: MLR(
                constraint="diagonal", regularizer="frobenius", prior="identity"
            ),
            "diagonal",
        ),
        *(_frml(rank, seed) for rank in RANKS if rank < n_features),
        Candidate(
            "MLR-MAP towards the identity",
            lambda: MLRCV(
                (10, 100, 1000),
                regularizer="frobenius",
                prior="identity",
                random_state=seed,
            ),
            "mlr",
        ),
        Candidate(
            "FRML from the identity",
            lambda: FRML(init="identity", n_triplets=20_000, random_state=seed),
            "frml",
        ),
    ]


def _frml(rank: int, seed: int) -> Candidate:
    return Candidate(
        f"FRML, rank {rank} of the principal directions",
        lambda: FRML(rank, n_triplets=20_000, random_state=seed),
        "frml",
    )
