"""How good a ranking is.

`evaluate` scores a `Ranking` against a `Relevance` and gives a `Report`; `compare` tests two
reports against chance; `knn_error` is the error of classification by the nearest items.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from .._engine.parallel import Step, current_backend
from .._engine.parallel.threads import n_threads, thread_map
from ..relevance.relevance import Relevance
from ..search.blocks import JudgedSearch, RankedBlocks
from ..search.ranking import Ranking
from .report import Comparison, Report, compare

__all__ = ["MEASURES", "Comparison", "Measure", "Report", "compare", "evaluate"]

SENT = 1024  # lists that go to a worker in one go
LARGEST_GRADE = 900  # sums of more than 2^100 gains of this grade still fit a double
Gain = Literal["binary", "exponential", "linear"]


class Measure(NamedTuple):
    """A measure by name.

    ``kernel`` is its function in `rankspace._engine.kernels.measures`, ``cut`` says whether the name
    takes a cut-off as in ``p@10``, ``complete`` whether it needs lists that hold every judged item.
    """

    kernel: str
    cut: Literal["none", "optional", "required"] = "none"
    gain: Gain = "binary"
    larger_is_better: bool = True
    complete: bool = False


MEASURES = {
    "auc": Measure("auc", complete=True),
    "first-rank": Measure("first_rank", larger_is_better=False, complete=True),
    "knn": Measure("knn", cut="required"),
    "map": Measure("average_precision"),
    "mrr": Measure("reciprocal_rank"),
    "ndcg": Measure("ndcg", cut="optional", gain="exponential"),
    "ndcg-linear": Measure("ndcg", cut="optional", gain="linear"),
    "ndcg-mlr": Measure("ndcg_mlr", cut="optional"),
    "p": Measure("precision", cut="required"),
    "r": Measure("recall", cut="required"),
    "ranking-error": Measure("ranking_error", larger_is_better=False, complete=True),
}


def parse_measure(name: str) -> tuple[Measure, int]:
    """Split ``"ndcg@10"`` into its measure and cut-off, 0 for none."""
    match = re.fullmatch(r"([a-z-]+?)(?:@(\d+))?", name.lower())
    measure = MEASURES.get(match[1]) if match else None
    if match is None or measure is None:
        raise ValueError(
            f"measure must be one of {', '.join(_spelled())}: got {name!r}."
        )
    if measure.cut == "required" and not match[2]:
        raise ValueError(
            f"{name!r} needs a cut-off: write {name}@10 for the first 10 items."
        )
    if match[2] and not int(match[2]):
        raise ValueError(f"the cut-off of a measure must be at least 1: got {name!r}.")
    if measure.cut == "none" and match[2]:
        raise ValueError(f"{match[1]!r} takes no cut-off: got {name!r}.")
    return measure, min(int(match[2] or 0), 2**62)


def _spelled() -> list[str]:
    return [
        f"{name}@k" if m.cut == "required" else name for name, m in MEASURES.items()
    ]


def measure_names(measures: str | Iterable[str]) -> list[str]:
    """Names out of ``"map ndcg@10"`` or a list of them, each checked."""
    names = (
        measures.replace(",", " ").split()
        if isinstance(measures, str)
        else list(measures)
    )
    if not names:
        raise ValueError(f"name at least one measure of {', '.join(_spelled())}.")
    for name in names:
        parse_measure(name)
    return list(dict.fromkeys(name.lower() for name in names))


def evaluate(
    ranking: Ranking | Iterable[Ranking],
    relevance: Relevance,
    measures: str | Sequence[str] = "map ndcg@10",
    *,
    empty: Literal["skip"] | float = "skip",
    ties: Literal["index", "mean"] = "index",
) -> Report:
    """Score ranked lists against judgments.

    List ``i`` belongs to query ``i`` unless both sides carry query ids; then lists are matched by
    id, a query without a list scores as one whose list is empty and is counted in the report, and a
    list without a query is passed over. Items are matched by id in the same way.

    Parameters
    ----------
    ranking : Ranking or iterable of Ranking
        Lists of all queries, or blocks of them in order, which are scored one at a time and never
        held together.
    relevance : Relevance
        The judgments. Its ``unjudged`` says whether unjudged items count as irrelevant or are
        taken out of the lists first, ``min_relevant_grade`` which grade is relevant where a measure
        knows only yes and no, ``weights`` how much a query counts in the means.
    measures : str or sequence of str, default="map ndcg@10"
        Names separated by spaces: ``auc``, ``p@10``, ``r@100``, ``map``, ``mrr``, ``ndcg@10`` (gain
        2^grade - 1), ``ndcg-linear@10`` (gain = grade, as trec_eval and BEIR have it),
        ``ndcg-mlr@10`` (binary, with the discount of the MLR paper), ``ranking-error`` (misordered
        pairs over the half that chance gives), ``knn@3`` (1 if most of the first 3 are relevant),
        ``first-rank``. Of these ``auc``, ``ranking-error`` and ``first-rank`` need lists of
        everything judged.
    empty : "skip" or float, default="skip"
        What a query with nothing relevant scores. By default it is left out and counted.
    ties : {"index", "mean"}, default="index"
        Items at equal distance stand in the order of their index, or a list scores the mean over
        all orders of its ties.

    Returns
    -------
    Report

    Notes
    -----
    If fewer than ``k`` items are listed or relevant, ``p@k`` still divides by ``k`` and the ideal
    list of NDCG is as long as there are relevant items. ``auc`` and ``ranking-error`` also leave
    out queries with nothing irrelevant. Time is O(length of the lists), memory O(n_items) beside
    them.

    Examples
    --------
    >>> from rankspace import Ranking, Relevance, evaluate
    >>> ranking = Ranking.from_distances([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2]])
    >>> relevance = Relevance.from_lists([[1], [1, 2]], n_items=3)
    >>> evaluate(ranking, relevance, "map p@1").means
    {'map': 0.75, 'p@1': 0.5}
    """
    names = measure_names(measures)
    if ties not in ("index", "mean"):
        raise ValueError(f"ties must be 'index' or 'mean': got {ties!r}.")
    if empty != "skip" and not isinstance(empty, Real):
        raise ValueError(f"empty must be 'skip' or a number: got {empty!r}.")
    if any(parse_measure(name)[0].gain == "exponential" for name in names):
        _check_gains(relevance)
    judging = _Evaluator(relevance, names, mean_of_ties=ties == "mean")
    if isinstance(ranking, RankedBlocks) and ranking.judged_there:
        values = judging.elsewhere(ranking)
    else:
        values = (
            judging.whole(ranking)
            if isinstance(ranking, Ranking)
            else judging.blocks(ranking)
        )
    if empty != "skip":
        values[judging.nothing_relevant] = empty
    return Report(
        dict(zip(names, values.T.copy(), strict=True)),
        smaller_is_better=frozenset(
            n for n in names if not parse_measure(n)[0].larger_is_better
        ),
        query_ids=relevance.query_ids,
        weights=relevance.weights,
        n_unlisted=judging.n_unlisted,
    )


def _check_gains(relevance: Relevance) -> None:
    largest = relevance.positive_grades[1].max(initial=0)
    if largest > LARGEST_GRADE:
        raise ValueError(
            f"the gain 2^grade - 1 of ndcg needs grades up to {LARGEST_GRADE}: got {largest:g}. "
            "Use ndcg-linear, or smaller grades."
        )


class _Given(Step):
    """In the place of a search: lists that are there already."""

    def map_block(self, part: tuple[Any, ...], state: None) -> Ranking:
        return part[0]


def _cut(ranking: Ranking) -> list[tuple[Any, ...]]:
    """Parts of some lists each, with the names of their queries."""
    parts = []
    for first in range(0, ranking.n_queries, SENT):
        last, names = min(first + SENT, ranking.n_queries), ranking.query_ids
        edges = ranking.indptr[first : last + 1]
        entries = slice(edges[0], edges[-1])
        part = Ranking(
            edges - edges[0],
            ranking.items[entries],
            ranking.distances[entries],
            ranking.n_items,
            None if names is None else names[first:last],
            ranking.item_ids,
        )
        parts.append((part, None, part.query_ids))
    return parts


class _Evaluator:
    """Scores lists of queries as they come, into a table of queries by measures."""

    def __init__(
        self, relevance: Relevance, names: list[str], *, mean_of_ties: bool
    ) -> None:
        self.relevance = relevance
        self.names = names
        self.specs = [parse_measure(name) for name in names]
        self.mean_of_ties = mean_of_ties
        self.values = np.full((relevance.n_queries, len(names)), np.nan)
        self.states = np.zeros(relevance.n_queries, dtype=np.int64)
        self.n_unlisted = 0

    @property
    def nothing_relevant(self) -> np.ndarray:
        """Which queries a measure has nothing to find for: a mask of queries by measures."""
        binary, graded = self.relevance.n_relevant == 0, self.relevance.n_positive == 0
        masks = [
            binary if measure.gain == "binary" else graded for measure, _ in self.specs
        ]
        return np.stack(masks, axis=1)

    def whole(self, ranking: Ranking) -> np.ndarray:
        """Score one ranking of all queries."""
        n_queries = self.relevance.n_queries
        if not self._has_names(ranking) and ranking.n_queries != n_queries:
            raise ValueError(
                f"ranking and relevance must have the same queries: got {ranking.n_queries} lists "
                f"and {n_queries} queries. Give both query_ids to match them by name."
            )
        if current_backend().remote:
            return self.elsewhere(RankedBlocks(_Given(), _cut(ranking), None))
        return self.blocks([ranking])

    def blocks(self, blocks: Iterable[Ranking]) -> np.ndarray:
        """Score blocks of queries: by name if both sides have names, else in order."""
        n_placed, listed = 0, np.zeros(self.relevance.n_queries, dtype=bool)
        for block in blocks:
            queries = self._queries_of(block, n_placed)
            n_placed += block.n_queries
            known = np.flatnonzero(queries >= 0)
            listed[queries[known]] = True
            self._judge(block, queries[known], known)
            by_name = self._has_names(block)
        return self._closed(listed, None if n_placed and by_name else n_placed)

    def elsewhere(self, blocks: RankedBlocks) -> np.ndarray:
        """Score lists where they are made: only numbers come back."""
        firsts = np.cumsum([0, *(len(part[0]) for part in blocks.parts)]).tolist()
        by_name = any(map(self._names_of, blocks.parts))
        step = JudgedSearch(blocks.search, self)
        parts = list(zip(firsts[:-1], blocks.parts, strict=True))
        listed = np.zeros(self.relevance.n_queries, dtype=bool)
        for queries, values, states in current_backend().map(step, parts, blocks.state):
            listed[queries] = True
            self.values[queries], self.states[queries] = values, states
        return self._closed(listed, None if by_name else firsts[-1])

    def of_block(
        self, block: Ranking, first: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers, scores and states of the queries of a block."""
        queries = self._queries_of(block, first)
        known = np.flatnonzero(queries >= 0)
        self._judge(block, queries[known], known)
        return queries[known], self.values[queries[known]], self.states[queries[known]]

    def _names_of(self, part: Any) -> bool:
        return part[2] is not None and self.relevance.query_ids is not None

    def _queries_of(self, block: Ranking, first: int) -> np.ndarray:
        """The query of each list, by name or by place; -1 for none."""
        if self._has_names(block):
            return _places(block.query_ids, self.relevance.query_ids)
        queries = np.arange(first, first + block.n_queries)
        return np.where(queries < self.relevance.n_queries, queries, -1)

    def _closed(self, listed: np.ndarray, n_placed: int | None) -> np.ndarray:
        """The scores, after those of queries without a list; ``n_placed`` if not by name."""
        n_queries = self.relevance.n_queries
        if n_placed is not None and n_placed != n_queries:
            raise ValueError(
                f"the blocks must hold one list for each of {n_queries} queries: got {n_placed}."
            )
        if n_placed is None and not listed.any():
            raise ValueError(
                "ranking and relevance must share queries: they have no query id in common."
            )
        self.n_unlisted = int(np.sum(~listed))
        self._judge_unlisted(np.flatnonzero(~listed))
        self._check_lists()
        return self.values

    def _has_names(self, ranking: Ranking) -> bool:
        return ranking.query_ids is not None and self.relevance.query_ids is not None

    def _judge_unlisted(self, queries: np.ndarray) -> None:
        if queries.size:
            nothing = Ranking.from_pairs([], self.relevance.n_items)
            self._judge(nothing, queries, np.full(queries.size, -1))

    def _judge(self, ranking: Ranking, queries: np.ndarray, lists: np.ndarray) -> None:
        """Score the given lists of a ranking for the given queries."""
        from .._engine.kernels import judge as kernels
        from .._engine.kernels import measures as measure_kernels

        relevance = self.relevance
        kernel_names = [kernel.py_func.__name__ for kernel in measure_kernels.KERNELS]
        kinds = {
            "binary": kernels.BINARY,
            "exponential": kernels.EXPONENTIAL,
            "linear": kernels.LINEAR,
        }
        own = relevance._own_judgments
        arguments = (
            ranking.indptr,
            ranking.items,
            ranking.distances if self.mean_of_ties else None,
            new_items(ranking, relevance),
            relevance.rows,
            relevance.indptr,
            relevance.items,
            relevance.grades,
            *relevance.positive_grades,
            relevance.query_items,
            np.where(own >= 0, np.append(relevance.grades, np.nan)[own], np.nan),
            relevance.n_items,
            relevance.n_relevant,
            relevance.n_irrelevant,
            np.array(
                [relevance.unlisted_is_irrelevant, relevance.unjudged == "irrelevant"]
            ),
            relevance.min_relevant_grade,
            np.array([kernel_names.index(measure.kernel) for measure, _ in self.specs]),
            np.array([cut for _, cut in self.specs]),
            np.array([kinds[measure.gain] for measure, _ in self.specs]),
            np.diff(relevance.indptr).max(initial=0),
            np.diff(ranking.indptr).max(initial=0),
            self.values,
            self.states,
        )

        def work(part: np.ndarray) -> None:
            kernels.judge(queries[part], lists[part], *arguments)

        _over_threads(work, queries.size, ranking.items.size)

    def _check_lists(self) -> None:
        from .._engine.kernels.judge import INCOMPLETE, REPEATED

        relevance = self.relevance
        for query in np.flatnonzero(self.states == REPEATED)[:1]:
            raise ValueError(
                f"a list must not name an item twice: that of query {self._name(query)} does."
            )
        needing = [
            n for n, (m, _) in zip(self.names, self.specs, strict=True) if m.complete
        ]
        cut = (self.states == INCOMPLETE) & (relevance.n_relevant > 0) & bool(needing)
        for query in np.flatnonzero(cut)[:1]:
            raise ValueError(
                f"{needing[0]} needs lists of all judged items: that of query {self._name(query)} "
                f"lacks some of {relevance.n_relevant[query]} relevant and "
                f"{relevance.n_irrelevant[query]} irrelevant ones. Rank without k=..., or ask for "
                "measures of the top of the list."
            )

    def _name(self, query: int) -> str:
        ids = self.relevance.query_ids
        return str(query) if ids is None else repr(str(ids[query]))


def list_of(ranking: Ranking, relevance: Relevance, query: int) -> int:
    """Which list of a ranking belongs to a query, -1 for none."""
    if ranking.query_ids is None or relevance.query_ids is None:
        return query
    return int(_places(relevance.query_ids[[query]], ranking.query_ids)[0])


def new_items(ranking: Ranking, relevance: Relevance) -> np.ndarray:
    """Which judged item each listed one is, -1 for none; nothing if they have the same numbers."""
    if ranking.item_ids is not None and relevance.item_ids is not None:
        if not np.array_equal(ranking.item_ids, relevance.item_ids):
            places = _places(ranking.item_ids, relevance.item_ids)
            if places.size and places.max() < 0:
                raise ValueError(
                    "ranking and relevance must share items: they have no item id in common."
                )
            return places
    elif ranking.n_items != relevance.n_items:
        raise ValueError(
            f"ranking and relevance must have the same items: got {ranking.n_items} and "
            f"{relevance.n_items}. Give both item_ids to match them by name."
        )
    return np.zeros(0, dtype=np.int64)


def _places(wanted: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Where each wanted name stands among names, or -1."""
    place = {name: i for i, name in enumerate(names.tolist())}
    return np.array([place.get(name, -1) for name in wanted.tolist()], dtype=np.int64)


def _over_threads(
    work: Callable[[np.ndarray], None], n_queries: int, n_entries: int
) -> None:
    """Run work on ranges of queries, in threads if there is enough of it to pay."""
    n_parts = max(1, min(n_threads(), n_entries // 1_000_000, n_queries))
    for _ in thread_map(work, np.array_split(np.arange(n_queries), n_parts)):
        pass
