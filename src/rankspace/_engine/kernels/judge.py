"""Measures of many ranked lists at once."""

import numpy as np
from numba import njit

from .measures import measure
from .ties import expected_measure

BINARY, EXPONENTIAL, LINEAR = (
    0,
    1,
    2,
)  # what a relevant item gains: 1, 2^grade - 1, grade
LOG_2 = np.log(2.0)
COMPLETE, INCOMPLETE, REPEATED = (
    0,
    1,
    2,
)  # what a list holds: all that counts, less, an item twice


@njit(cache=True, nogil=True)
def gain(grade, kind):
    """Gain of a grade."""
    if kind == EXPONENTIAL:
        return np.expm1(grade * LOG_2)
    return grade if kind == LINEAR else 1.0


@njit(cache=True, nogil=True)
def scan(
    items, new_item, own, stamp, seen, slots, grades, keep, level, found, grade, place
):
    """Find the items of positive grade in one list.

    Items that do not count are passed over: the query's own, unjudged ones if they are ignored.
    ``keep`` says whether items outside the row and unjudged items of the row count. Writes the
    position and grade of what it finds, and the position of each entry of the list, 0 if passed
    over, unless ``place`` is None. Items seen are marked with ``stamp``.

    Returns (number found, number of irrelevant items, number of these that are known, whether an
    item stands there twice).
    """
    n_found, n_relevant, n_unknown, position = 0, 0, 0, 0
    repeated = False
    for i in range(items.size):
        if place is not None:
            place[i] = 0
        item = new_item[items[i]] if new_item.size else items[i]
        slot, value = 0, 0.0
        if item >= 0:
            repeated |= seen[item] == stamp
            seen[item] = stamp
            slot = slots[item]
            if item == own:
                continue
        if slot == 0:
            if not keep[0]:
                continue
            n_unknown += item < 0
        else:
            value = grades[slot - 1]
            if np.isnan(value):
                if not keep[1]:
                    continue
                value = 0.0
        position += 1
        if place is not None:
            place[i] = position
        if value > 0.0 and not repeated:
            found[n_found], grade[n_found] = position, value
            n_found += 1
            n_relevant += value >= level
    n_other = position - n_relevant
    return n_found, n_other, n_other - n_unknown, repeated


@njit(cache=True, nogil=True)
def ideal_gains(grades, own_grade, level, kind, out):
    """Gains of all relevant items, best first, the query's own left out once.

    grades: those above 0, from the best down.
    """
    size = 0
    for g in grades:
        if kind == BINARY and g < level:
            break
        if g == own_grade:
            own_grade = np.nan
            continue
        out[size] = gain(g, kind)
        size += 1
    return size


@njit(cache=True, nogil=True)
def select(found, grade, level, kind, positions, gains):
    """Positions and gains of the found items that count for a measure."""
    size = 0
    for i in range(found.size):
        if kind != BINARY or grade[i] >= level:
            positions[size], gains[size] = found[i], gain(grade[i], kind)
            size += 1
    return size


@njit(cache=True, nogil=True)
def mark_ties(distances, place, starts, sizes):
    """For each position, where its group of ties starts and how many items that has."""
    start, last, n_placed = 0, np.inf, 0
    for i in range(distances.size):
        if place[i] == 0:
            continue
        if n_placed == 0 or distances[i] != last:
            start, last = n_placed, distances[i]
            sizes[start] = 0
        starts[n_placed] = start
        sizes[start] += 1
        n_placed += 1


@njit(cache=True, nogil=True)
def group_ties(positions, gains, starts, sizes, groups, group_gains):
    """Gather relevant items into groups of ties: start, size and number go into ``groups``."""
    n = 0
    for i in range(positions.size):
        start = starts[positions[i] - 1]
        if n == 0 or groups[0, n - 1] != start:
            groups[0, n], groups[1, n], groups[2, n] = start, sizes[start], 0
            group_gains[n] = 0.0
            n += 1
        groups[2, n - 1] += 1
        group_gains[n - 1] += gains[i]
    return n


@njit(cache=True, nogil=True)
def judge(
    queries,
    lists,
    indptr,
    items,
    distances,
    new_item,
    rows,
    row_indptr,
    row_items,
    row_grades,
    best_indptr,
    best_grades,
    query_items,
    own_grades,
    n_items,
    n_relevant,
    n_irrelevant,
    keep,
    level,
    codes,
    cuts,
    kinds,
    longest_row,
    longest_list,
    values,
    states,
):
    """Write the measures of some queries into ``values``, and what their lists hold.

    Queries with nothing relevant are left as they are. ``lists`` names the list of each of them,
    -1 if it has none; ``new_item`` renumbers listed items (-1: unknown) unless it is empty. With
    ``distances`` a measure is the mean over all orders of ties, with None they stand as listed.
    """
    slots, seen = (
        np.zeros(n_items, dtype=np.int32),
        np.full(n_items, -1, dtype=np.int64),
    )
    found, positions = np.empty(longest_row, np.int64), np.empty(longest_row, np.int64)
    grade, gains, ideal = (
        np.empty(longest_row),
        np.empty(longest_row),
        np.empty(longest_row),
    )
    if distances is None:
        place = None
    else:
        place = np.empty(longest_list, np.int64)
        starts, sizes = (
            np.empty(longest_list, np.int64),
            np.empty(longest_list, np.int64),
        )
        groups, group_gains = (
            np.empty((3, longest_row), np.int64),
            np.empty(longest_row),
        )
    for number in range(queries.size):
        q, name = queries[number], lists[number]
        first, last = row_indptr[rows[q]], row_indptr[rows[q] + 1]
        begin, end = (indptr[name], indptr[name + 1]) if name >= 0 else (0, 0)
        for j in range(first, last):
            slots[row_items[j]] = j - first + 1
        n_found, n_other, n_known, repeated = scan(
            items[begin:end],
            new_item,
            query_items[q],
            q,
            seen,
            slots,
            row_grades[first:last],
            keep,
            level,
            found,
            grade,
            place,
        )
        for j in range(first, last):
            slots[row_items[j]] = 0
        n_listed = select(
            found[:n_found], grade[:n_found], level, BINARY, positions, gains
        )
        if repeated:
            states[q] = REPEATED
            continue
        if n_listed < n_relevant[q] or n_known < n_irrelevant[q]:
            states[q] = INCOMPLETE
        if distances is not None:
            mark_ties(distances[begin:end], place, starts, sizes)
        best = best_grades[best_indptr[rows[q]] : best_indptr[rows[q] + 1]]
        for m in range(codes.size):
            n_ideal = ideal_gains(best, own_grades[q], level, kinds[m], ideal)
            if n_ideal == 0:
                continue
            n = select(
                found[:n_found], grade[:n_found], level, kinds[m], positions, gains
            )
            if distances is None:
                values[q, m] = measure(
                    codes[m],
                    positions[:n],
                    gains[:n],
                    ideal[:n_ideal],
                    n_other,
                    cuts[m],
                )
            else:
                n = group_ties(
                    positions[:n], gains[:n], starts, sizes, groups, group_gains
                )
                values[q, m] = expected_measure(
                    codes[m],
                    groups[0, :n],
                    groups[1, :n],
                    groups[2, :n],
                    group_gains[:n],
                    ideal[:n_ideal],
                    n_other,
                    cuts[m],
                )
