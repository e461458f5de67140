"""Tuning candidates: which estimators `tune` tries, by the size of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from sklearn.base import clone

from ..learners.base import BaseRanker
from ..learners.frml import FRML
from ..learners.listwise import SIDES, TOTAL_REGS, ListwiseMap
from ..learners.mlr import MLR
from ..learners.mlr_cv import MLRCV

BASELINE = "unchanged"  # name of the vectors without a map
METHODS = ("listwise", "diagonal", "frml", "mlr")
WEAKER_TOTAL_REGS = (0.8, 0.24, 0.08)  # below the defaults, times the number of queries
SIDE_NAMES = {
    "separate": "separate for each side",
    "query": "queries only",
    "shared": "shared by both sides",
}
LOW_UNJUDGED_WEIGHT = 0.03  # for data where a map harms queries with new items
MARGIN = 2.0  # standard errors
FRML_RANKS = (32, 128)
WIDE = 128  # features; above this a step of FRML or MLR is slow
LARGE = 2e11  # flops of one pass over all queries and items; above this a fit is slow


@dataclass(frozen=True, eq=False)
class Candidate:
    """A tuning candidate: a named estimator, and the candidates that derive from it.

    Parameters
    ----------
    name : str
        Its name in the report.
    estimator : BaseRanker, optional
        The estimator with its parameters, never fitted itself; None for the baseline.
    method : str, default="listwise"
        One of ``METHODS``.
    parts : mapping of str to Candidate
        Candidates that need no fit of their own: their metrics are in ``parts_`` of the fitted
        estimator, under these keys.
    part_of : str
        Name of the candidate that this one is a part of.
    preferred_part : str
        Key of the part that is preferred to all other parts; empty for the candidate itself.
    margin : float
        Standard errors by which it must beat the preferred candidate to be selected.
    less_regularised : Candidate, optional
        What to try next if this candidate is clearly the best.
    fallback : Candidate, optional
        What to try if the preferred part harms a group of queries.
    """

    name: str
    estimator: BaseRanker | None = None
    method: str = "listwise"
    parts: Mapping[str, Candidate] = field(default_factory=dict)
    part_of: str = ""
    preferred_part: str = ""
    margin: float = 0.0
    less_regularised: Candidate | None = None
    fallback: Candidate | None = None

    def build(self) -> BaseRanker:
        """A new estimator, ready to fit."""
        return cast(BaseRanker, clone(self.estimator))

    @property
    def fit(self) -> str:
        """Name of the candidate whose fit it comes from."""
        return self.part_of or self.name

    @property
    def with_parts(self) -> list[Candidate]:
        """The candidate, then its parts."""
        return [self, *self.parts.values()]

    @property
    def preferred(self) -> str:
        """Name of the preferred candidate among this one and its parts."""
        if not self.preferred_part:
            return self.name
        return self.parts[self.preferred_part].name


def candidates(
    n_queries: int,
    n_items: int,
    n_features: int,
    seed: int,
    gain: str,
    equal_norms: bool = True,
) -> list[Candidate]:
    """All candidates of all methods, the most promising first."""
    max_items = 20_000
    if is_large(n_queries, n_items, n_features):
        max_items = 5000
    maps = _ListwiseMaps(n_queries, max_items, seed, gain, equal_norms)
    return [maps.default(), *_other_candidates(n_features, seed)]


def suitable_methods(n_queries: int, n_items: int, n_features: int) -> tuple[str, ...]:
    """The methods that are fast enough for data of this size."""
    if is_large(n_queries, n_items, n_features):
        return ("listwise",)
    if n_features > WIDE:
        return ("listwise", "diagonal")
    return METHODS


def is_large(n_queries: int, n_items: int, n_features: int) -> bool:
    """Whether a pass over all queries and items takes seconds."""
    return 2.0 * n_queries * n_items * n_features > LARGE


@dataclass(frozen=True)
class _ListwiseMaps:
    """Listwise candidates of one data set; ``regs`` are divided by the number of queries."""

    n_queries: int
    max_items: int
    seed: int
    gain: str
    equal_norms: bool

    def default(self) -> Candidate:
        """Maps with the default regs; the smallest reg alone is a part of the same fit."""
        maps = self._separate(TOTAL_REGS)
        weakest = self._single(TOTAL_REGS[-1])
        parts = {**maps.parts, "weakest": weakest}
        for side, part in weakest.parts.items():
            parts[f"weakest {side}"] = part
        fallback = self._separate(TOTAL_REGS, unjudged_weight=LOW_UNJUDGED_WEIGHT)
        return replace(maps, parts=parts, fallback=fallback)

    def _single(self, total_reg: float) -> Candidate:
        """Maps with one reg, and the next smaller reg to go on with."""
        smaller = [total for total in WEAKER_TOTAL_REGS if total < total_reg]
        weaker = self._single(smaller[0]) if smaller else None
        return self._separate([total_reg], less_regularised=weaker)

    def _separate(
        self,
        total_regs: Sequence[float],
        unjudged_weight: float = 1.0,
        less_regularised: Candidate | None = None,
    ) -> Candidate:
        """A map for each side, whose fit includes the shared map and the query map as parts."""
        maps = self._map("separate", total_regs, unjudged_weight, less_regularised)
        parts = {}
        for side in SIDES:
            part = self._map(side, total_regs, unjudged_weight, less_regularised)
            parts[side] = replace(part, part_of=maps.name)
        # A query map leaves the corpus and its index unchanged. It ranks by inner products,
        # which do not suit vectors of different norms.
        preferred = "query" if self.equal_norms else "shared"
        return replace(maps, parts=parts, preferred_part=preferred)

    def _map(
        self,
        sides: str,
        total_regs: Sequence[float],
        unjudged_weight: float,
        less_regularised: Candidate | None,
    ) -> Candidate:
        regs = [float(f"{total / self.n_queries:.2g}") for total in total_regs]
        estimator = ListwiseMap(
            regs,
            sides=sides,
            gain=self.gain,
            unjudged_weight=unjudged_weight,
            max_items=self.max_items,
            random_state=self.seed,
        )
        reg_text = " and ".join(f"{reg:g}" for reg in regs)
        name = f"listwise map, {SIDE_NAMES[sides]}, reg {reg_text}"
        margin = MARGIN
        if unjudged_weight < 1:
            name += f", unjudged weight {unjudged_weight:g}"
            margin = 0.0
        return Candidate(
            name, estimator, margin=margin, less_regularised=less_regularised
        )


def _other_candidates(n_features: int, seed: int) -> list[Candidate]:
    diagonal = MLR(constraint="diagonal", regularizer="frobenius", prior="identity")
    found = [Candidate("diagonal MLR", diagonal, "diagonal")]
    for rank in FRML_RANKS:
        if rank < n_features:
            frml = FRML(rank, n_triplets=20_000, random_state=seed)
            name = f"FRML, rank {rank}, starting from PCA"
            found.append(Candidate(name, frml, "frml"))
    mlr = MLRCV(
        (10, 100, 1000), regularizer="frobenius", prior="identity", random_state=seed
    )
    frml = FRML(init="identity", n_triplets=20_000, random_state=seed)
    found.append(Candidate("MLR, regularised towards the identity", mlr, "mlr"))
    found.append(Candidate("FRML, starting from the identity", frml, "frml"))
    return found
