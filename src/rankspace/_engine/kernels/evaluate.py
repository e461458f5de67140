"""Evaluation of many ranked lists: find the relevant items of each, then compute all measures."""

from typing import NamedTuple

import numpy as np

from ..compiled import kernel
from .measures import measure
from .ties import TieGroups, expected_measure

# What a list holds: every item that counts, not all of them, or an item twice.
COMPLETE, INCOMPLETE, REPEATED = 0, 1, 2


class RankedLists(NamedTuple):
    """Ranked lists in compressed form."""

    indptr: np.ndarray
    items: np.ndarray
    item_numbers: np.ndarray  # number of each item in the judgments; empty if the same
    longest: int


class Judgments(NamedTuple):
    """Relevance of queries, with the gains of its judgments.

    Gains have one row for each kind of gain in use; a judgment counts where its gain is positive.
    """

    n_items: int
    rows: np.ndarray  # of judgments, for each query
    indptr: np.ndarray
    items: np.ndarray
    grades: np.ndarray
    gains: np.ndarray
    best_indptr: np.ndarray
    best_gains: np.ndarray  # the positive gains of each row, in descending order
    longest_row: int
    query_items: np.ndarray  # the item that each query is, or -1
    own_judgments: np.ndarray  # the judgment of that item, or -1
    n_relevant: np.ndarray
    n_irrelevant: np.ndarray
    min_relevant_grade: float
    unlisted_counts: bool  # whether items outside the row are ranked as irrelevant
    unjudged_counts: bool  # whether unjudged items of the row are


class Measures(NamedTuple):
    """Measures to compute: kernel, cut-off and row of gains of each."""

    codes: np.ndarray
    cuts: np.ndarray
    gain_rows: np.ndarray


class Scratch(NamedTuple):
    """Working memory of one thread."""

    slots: np.ndarray  # of each item in the query's row of judgments, from 1; 0 outside
    last_query: np.ndarray  # whose list each item was last seen in
    hit_positions: np.ndarray  # of listed items with a positive grade
    hit_judgments: np.ndarray
    positions: np.ndarray  # of the hits that count for one measure
    gains: np.ndarray
    ideal: np.ndarray


class TieScratch(NamedTuple):
    """Working memory for ties: groups of items at equal distance."""

    places: np.ndarray  # position of each list entry, 0 if it does not count
    starts: np.ndarray  # of the group that each position is in
    sizes: np.ndarray
    groups: TieGroups


@kernel
def new_scratch(n_items, longest_row):
    return Scratch(
        np.zeros(n_items, np.int32),
        np.full(n_items, -1, np.int64),
        np.empty(longest_row, np.int64),
        np.empty(longest_row, np.int64),
        np.empty(longest_row, np.int64),
        np.empty(longest_row),
        np.empty(longest_row),
    )


@kernel
def new_tie_scratch(longest_list, longest_row):
    return TieScratch(
        np.empty(longest_list, np.int64),
        np.empty(longest_list, np.int64),
        np.empty(longest_list, np.int64),
        TieGroups(
            np.empty(longest_row, np.int64),
            np.empty(longest_row, np.int64),
            np.empty(longest_row, np.int64),
            np.empty(longest_row),
        ),
    )


@kernel
def find_hits(items, item_numbers, q, judgments, scratch, places):
    """Positions and judgments of the listed items with a positive grade.

    Items that do not count are passed over: the query itself, and unjudged items if they are
    ignored. Unless ``places`` is None, it gets the position of each list entry, 0 if passed over.

    Returns (number of hits, number of relevant items, number of irrelevant items, number of
    these that no judgment can be about, whether an item is listed twice).
    """
    first = judgments.indptr[judgments.rows[q]]
    n_hits = 0
    n_relevant = 0
    n_unknown = 0
    position = 0
    repeated = False
    for i in range(items.size):
        if places is not None:
            places[i] = 0
        item = items[i]
        if item_numbers.size:
            item = item_numbers[item]
        slot = 0
        if item >= 0:
            repeated |= scratch.last_query[item] == q
            scratch.last_query[item] = q
            slot = scratch.slots[item]
            if item == judgments.query_items[q]:
                continue
        grade = 0.0
        if slot == 0:
            if not judgments.unlisted_counts:
                continue
            n_unknown += item < 0
        else:
            grade = judgments.grades[first + slot - 1]
            if np.isnan(grade):
                if not judgments.unjudged_counts:
                    continue
                grade = 0.0
        position += 1
        if places is not None:
            places[i] = position
        if grade > 0.0 and not repeated:
            scratch.hit_positions[n_hits] = position
            scratch.hit_judgments[n_hits] = first + slot - 1
            n_hits += 1
            n_relevant += grade >= judgments.min_relevant_grade
    return n_hits, n_relevant, position - n_relevant, n_unknown, repeated


@kernel
def ideal_gains(best_gains, own_gain, ideal):
    """Gains of the ideal list, from descending ones; the query's own is left out once."""
    size = 0
    for gain in best_gains:
        if gain <= 0.0:
            break
        if gain == own_gain:
            own_gain = np.nan
            continue
        ideal[size] = gain
        size += 1
    return size


@kernel
def select_hits(n_hits, judgment_gains, scratch):
    """Positions and gains of the hits that count for a measure."""
    size = 0
    for i in range(n_hits):
        gain = judgment_gains[scratch.hit_judgments[i]]
        if gain > 0.0:
            scratch.positions[size] = scratch.hit_positions[i]
            scratch.gains[size] = gain
            size += 1
    return size


@kernel
def mark_ties(distances, ties):
    """For each position, where its group of ties starts and how many items that has."""
    start, last, n_placed = 0, np.inf, 0
    for i in range(distances.size):
        if ties.places[i] == 0:
            continue
        if n_placed == 0 or distances[i] != last:
            start, last = n_placed, distances[i]
            ties.sizes[start] = 0
        ties.starts[n_placed] = start
        ties.sizes[start] += 1
        n_placed += 1


@kernel
def group_ties(positions, gains, ties):
    """The groups of ties that hold something relevant."""
    starts, sizes, counts, group_gains = ties.groups
    n = 0
    for i in range(positions.size):
        start = ties.starts[positions[i] - 1]
        if n == 0 or starts[n - 1] != start:
            starts[n] = start
            sizes[n] = ties.sizes[start]
            counts[n] = 0
            group_gains[n] = 0.0
            n += 1
        counts[n - 1] += 1
        group_gains[n - 1] += gains[i]
    return TieGroups(starts[:n], sizes[:n], counts[:n], group_gains[:n])


@kernel
def compute_measures(q, n_hits, n_irrelevant, judgments, measures, scratch, ties, out):
    """Write all measures of one list; those with nothing relevant to find are left out."""
    row = judgments.rows[q]
    own = judgments.own_judgments[q]
    for m in range(measures.codes.size):
        gains = judgments.gains[measures.gain_rows[m]]
        best_gains = judgments.best_gains[measures.gain_rows[m]]
        n_ideal = ideal_gains(
            best_gains[judgments.best_indptr[row] : judgments.best_indptr[row + 1]],
            gains[own] if own >= 0 else np.nan,
            scratch.ideal,
        )
        if n_ideal == 0:
            continue
        n = select_hits(n_hits, gains, scratch)
        code = measures.codes[m]
        cut = measures.cuts[m]
        positions = scratch.positions[:n]
        ideal = scratch.ideal[:n_ideal]
        if ties is None:
            out[m] = measure(
                code, positions, scratch.gains[:n], ideal, n_irrelevant, cut
            )
        else:
            groups = group_ties(positions, scratch.gains[:n], ties)
            out[m] = expected_measure(code, groups, ideal, n_irrelevant, cut)


@kernel
def evaluate_queries(
    queries, list_numbers, lists, distances, judgments, measures, values, states
):
    """Write the measures of some queries into ``values``, and what their lists hold.

    ``list_numbers`` names the list of each query, -1 for none. With ``distances`` a measure is its
    mean over all orders of tied items; with None the order of the list is taken as given.
    """
    scratch = new_scratch(judgments.n_items, judgments.longest_row)
    if distances is None:
        ties = None
        places = None
    else:
        ties = new_tie_scratch(lists.longest, judgments.longest_row)
        places = ties.places
    for i in range(queries.size):
        q = queries[i]
        begin, end = 0, 0
        if list_numbers[i] >= 0:
            begin = lists.indptr[list_numbers[i]]
            end = lists.indptr[list_numbers[i] + 1]
        row = judgments.rows[q]
        first, last = judgments.indptr[row], judgments.indptr[row + 1]
        for j in range(first, last):
            scratch.slots[judgments.items[j]] = j - first + 1
        n_hits, n_relevant, n_irrelevant, n_unknown, repeated = find_hits(
            lists.items[begin:end], lists.item_numbers, q, judgments, scratch, places
        )
        for j in range(first, last):
            scratch.slots[judgments.items[j]] = 0
        if repeated:
            states[q] = REPEATED
            continue
        n_known = n_irrelevant - n_unknown
        if n_relevant < judgments.n_relevant[q] or n_known < judgments.n_irrelevant[q]:
            states[q] = INCOMPLETE
        if distances is not None:
            mark_ties(distances[begin:end], ties)
        compute_measures(
            q, n_hits, n_irrelevant, judgments, measures, scratch, ties, values[q]
        )
