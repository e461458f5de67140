"""Evaluation of many ranked lists: find the relevant items of each, then compute each measure.

Queries come in blocks. A measure is compiled when it is first asked for, and no other with it.
"""

from typing import Any, NamedTuple

import numpy as np

from ..compiled import kernel
from . import measures, ties

# What a list holds: every item that counts, not all of them, or an item twice.
COMPLETE, INCOMPLETE, REPEATED = 0, 1, 2
# Columns of the counts of a list. Of "unknown" irrelevant items no judgment can exist.
N_HITS, N_RELEVANT, N_IRRELEVANT, N_UNKNOWN, N_REPEATED = range(5)


class Rules(NamedTuple):
    """Which listed items count."""

    min_relevant_grade: float
    unlisted_counts: (
        bool  # whether items outside the row of judgments are ranked as irrelevant
    )
    unjudged_counts: bool  # whether unjudged items of the row are


class Listed(NamedTuple):
    """Relevant items, or groups of ties with some, of each query of a block; and ideal gains."""

    bounds: Any  # (n, 2): where those of each query begin and end
    content: Any  # positions and gains, or `ties.TieGroups`
    ideal_bounds: Any
    ideal: Any  # gains of the ideal list, descending
    n_irrelevant: Any


@kernel
def number_of(item, item_numbers):
    """Number of a listed item in the judgments, -1 if they do not have it."""
    if item_numbers.size:
        return np.int64(item_numbers[item])
    return np.int64(item)


@kernel
def grade_of(slot, first, grades, rules):
    """Grade of a listed item: 0 if it is irrelevant, NaN if it does not count."""
    if slot == 0:
        if rules.unlisted_counts:
            return 0.0
        return np.nan
    grade = grades[first + slot - 1]
    if np.isnan(grade) and rules.unjudged_counts:
        return 0.0
    return grade


@kernel
def end_group(hits, group, hit, position):
    """Write how many items the group of ties has that these hits are in."""
    for h in range(group, hit):
        hits[h, 3] = position - hits[h, 2]


@kernel
def find_hits(
    queries,
    items,
    item_numbers,
    distances,
    judged,
    grades,
    rules,
    slots,
    last_query,
    hits,
    counts,
):
    """Find the listed items with a positive grade, nearest first.

    Items that do not count are passed over: the query itself, and unjudged items if they are
    ignored. In a list that names an item twice, hits are incomplete.

    queries: (n, 7), of each its number, its item or -1, where its list begins and ends, where its
    judgments do, and where its hits begin; items: of the lists; item_numbers: of each item in the
    judgments, -1 for none, or empty if the same; distances: of the lists, or None if their order is
    taken as given; judged, grades: of the judgments; slots, last_query: working memory for each
    item, 0 and -1 before the first call; hits: (room, 2), position and judgment of each, and with
    distances two more columns, where its group of ties starts and how many items that has;
    counts: (n, 5), zeros.
    """
    for i in range(len(queries)):
        q, own, begin, end, first, stop, hit = queries[i]
        for j in range(first, stop):
            slots[judged[j]] = j - first + 1
        first_hit = hit
        group = hit
        position = 0
        start = 0
        last = 0.0
        for e in range(begin, end):
            item = number_of(items[e], item_numbers)
            slot = np.int32(0)
            if item >= 0:
                if last_query[item] == q:
                    counts[i, N_REPEATED] = 1
                last_query[item] = q
                slot = slots[item]
                if item == own:
                    continue
            grade = grade_of(slot, first, grades, rules)
            if np.isnan(grade):
                continue
            if item < 0:
                counts[i, N_UNKNOWN] += 1
            # Numba drops branches on None, but not on None and something else.
            if distances is not None:  # noqa: SIM102
                if position == 0 or distances[e] != last:
                    end_group(hits, group, hit, position)
                    start = position
                    group = hit
                    last = distances[e]
            position += 1
            if grade > 0.0 and counts[i, N_REPEATED] == 0:
                hits[hit, 0] = position
                hits[hit, 1] = first + slot - 1
                if distances is not None:
                    hits[hit, 2] = start
                hit += 1
                if grade >= rules.min_relevant_grade:
                    counts[i, N_RELEVANT] += 1
        if distances is not None:
            end_group(hits, group, hit, position)
        counts[i, N_HITS] = hit - first_hit
        counts[i, N_IRRELEVANT] = position - counts[i, N_RELEVANT]
        for j in range(first, stop):
            slots[judged[j]] = 0


@kernel
def select_hits(first_hits, counts, hits, judgment_gains, bounds, positions, gains):
    """Positions and gains of the hits with a positive gain."""
    for i in range(first_hits.size):
        first = first_hits[i]
        end = first
        for h in range(first, first + counts[i, N_HITS]):
            gain = judgment_gains[hits[h, 1]]
            if gain > 0.0:
                positions[end] = hits[h, 0]
                gains[end] = gain
                end += 1
        bounds[i, 0] = first
        bounds[i, 1] = end


@kernel
def select_groups(first_hits, counts, hits, judgment_gains, bounds, groups):
    """The groups of ties that hold a positive gain."""
    starts, sizes, n_relevant, gains = groups
    for i in range(first_hits.size):
        first = first_hits[i]
        end = first
        for h in range(first, first + counts[i, N_HITS]):
            gain = judgment_gains[hits[h, 1]]
            if gain <= 0.0:
                continue
            if end == first or starts[end - 1] != hits[h, 2]:
                starts[end] = hits[h, 2]
                sizes[end] = hits[h, 3]
                n_relevant[end] = 0
                gains[end] = 0.0
                end += 1
            n_relevant[end - 1] += 1
            gains[end - 1] += gain
        bounds[i, 0] = first
        bounds[i, 1] = end


@kernel
def fill_ideal(own_gains, best_bounds, best_gains, bounds, ideal):
    """Gains of the ideal lists; the query's own gain (NaN for none) is left out once.

    best_bounds: (n, 2), where the gains of each query's row begin and end in ``best_gains``. They
    are descending, and the last ones may be 0.
    """
    end = 0
    for i in range(own_gains.size):
        own = own_gains[i]
        bounds[i, 0] = end
        for j in range(best_bounds[i, 0], best_bounds[i, 1]):
            gain = best_gains[j]
            if gain <= 0.0:
                break
            if gain == own:
                own = np.nan
                continue
            ideal[end] = gain
            end += 1
        bounds[i, 1] = end


def of_hits(measure: Any) -> Any:
    """A kernel that writes a measure into ``values``; NaN where nothing is relevant."""

    @kernel
    def compute(listed, k, values):
        positions, gains = listed.content
        for i in range(values.size):
            first, end = listed.bounds[i]
            best, last = listed.ideal_bounds[i]
            values[i] = np.nan
            if best < last:
                values[i] = measure(
                    positions[first:end],
                    gains[first:end],
                    listed.ideal[best:last],
                    listed.n_irrelevant[i],
                    k,
                )

    return compute


def of_groups(measure: Any) -> Any:
    """A kernel that writes an expected measure into ``values``; NaN where nothing is relevant."""

    @kernel
    def compute(listed, k, values):
        starts, sizes, counts, gains = listed.content
        for i in range(values.size):
            first, end = listed.bounds[i]
            best, last = listed.ideal_bounds[i]
            values[i] = np.nan
            if best < last:
                groups = ties.TieGroups(
                    starts[first:end],
                    sizes[first:end],
                    counts[first:end],
                    gains[first:end],
                )
                values[i] = measure(
                    groups, listed.ideal[best:last], listed.n_irrelevant[i], k
                )

    return compute


OF_HITS = {name: of_hits(measure) for name, measure in measures.KERNELS.items()}
OF_GROUPS = {name: of_groups(measure) for name, measure in ties.KERNELS.items()}
