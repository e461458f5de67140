"""Candidates by blocks, buffers and threads, against sorting all keys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankspace import Index
from rankspace.search import candidates


def smallest(queries, items, norms, own, n_kept):
    """Numbers of the items with the smallest keys, and the largest of these keys."""
    keys = norms + queries @ items.T
    numbers = np.full((len(queries), n_kept), -1)
    bounds = np.full(len(queries), np.inf)
    for q, row in enumerate(keys):
        order = [i for i in np.argsort(row, kind="stable") if i != own[q]]
        chosen = sorted(order[:n_kept])
        numbers[q, : len(chosen)] = chosen
        if len(chosen) == n_kept:
            bounds[q] = row[order[n_kept - 1]]
    return numbers, bounds


@st.composite
def problems(draw):
    """Small integers: products are exact, and many keys are equal."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.integers(1, 400)), draw(st.integers(1, 5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    queries = rng.integers(-2, 3, (m, 3)).astype(dtype)
    items = rng.integers(-2, 3, (n, 3)).astype(dtype)
    norms = rng.integers(0, 5, n).astype(dtype)
    return queries, items, norms, rng.integers(-1, n, m), draw(st.integers(1, n))


@pytest.mark.parametrize("n_threads", [1, 3])
@settings(deadline=None, max_examples=60)
@given(problems(), st.sampled_from([7, 64]))
def test_candidates_are_those_of_a_sort(n_threads, problem, item_block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "ITEM_BLOCK", item_block)
        patch.setattr(candidates, "PRODUCTS", 0)
        patch.setattr(candidates, "WORTH_THREADS", 0)
        patch.setattr(candidates, "n_threads", lambda: n_threads)
        numbers, bounds = candidates.propose(*problem)
    expected, largest = smallest(*problem)
    np.testing.assert_array_equal(bounds, largest)
    np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("n_queries", [1, 300])
def test_the_number_of_threads_does_not_matter(n_queries, rng, monkeypatch):
    X = rng.normal(size=(30_000, 5)).round(1).astype(np.float32)
    index = Index(X)
    rankings = []
    for n in (1, 2):
        monkeypatch.setattr(candidates, "WORTH_THREADS", 0)
        monkeypatch.setattr(candidates, "n_threads", lambda n=n: n)
        rankings.append(index.rank(X[:n_queries], 1000))
    np.testing.assert_array_equal(rankings[0].items, rankings[1].items)
    np.testing.assert_array_equal(rankings[0].distances, rankings[1].distances)
