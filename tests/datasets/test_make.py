import numpy as np
import pytest

from rankspace.datasets import make_matching


def test_the_seed_decides():
    first = make_matching(random_state=0).X
    again = make_matching(random_state=0).X
    other = make_matching(random_state=1).X
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_generator_may_be_the_seed():
    assert make_matching(
        random_state=np.random.default_rng(0)
    ).relevance.trainable.any()


@pytest.mark.parametrize("n_users", [32, 500])
def test_matching_judges_a_few_pairs(n_users):
    relevance = make_matching(n_users, random_state=0).relevance
    assert (relevance.query_items == np.arange(n_users)).all()
    assert relevance.unjudged == "ignore"
    assert relevance.n_relevant.min() >= 2
    assert relevance.n_relevant.max() <= 4
    assert relevance.n_irrelevant.min() >= 5
    assert relevance.n_irrelevant.max() <= 12
    for query in range(n_users):
        items, _ = relevance.judged(query)
        # Ascending without repeats, and `judged` would leave the query itself out.
        assert (np.diff(items) > 0).all()
        assert items.size == relevance.n_relevant[query] + relevance.n_irrelevant[query]


def test_matches_are_near_in_the_hidden_metric_only():
    dataset = make_matching(400, n_hidden=1, noise=0.0, random_state=0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 56))
    np.testing.assert_array_equal(dataset.X, X)
    hidden = X @ rng.standard_normal((56, 1))
    for query in range(0, 400, 40):
        items, grades = dataset.relevance.judged(query)
        gaps = abs(hidden[items, 0] - hidden[query, 0])
        assert gaps[grades == 1].max() < gaps[grades == 0].min()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: make_matching(31), "n_users must be at least 32: got 31"),
        (lambda: make_matching(n_hidden=0), "n_hidden must be at least 1: got 0"),
    ],
)
def test_bad_sizes(call, what):
    with pytest.raises(ValueError, match=what):
        call()


def test_two_intervals_share_a_hidden_map_and_few_users_are_queries():
    hidden = np.random.default_rng(5).standard_normal((6, 1))
    first, second = (
        make_matching(
            200,
            n_features=6,
            noise=0.0,
            n_queries=30,
            hidden_map=hidden,
            random_state=seed,
        )
        for seed in (0, 1)
    )
    assert not np.array_equal(first.X, second.X)
    for dataset in (first, second):
        relevance = dataset.relevance
        assert relevance.n_queries == 30
        assert relevance.n_items == 200
        assert np.unique(relevance.query_items).size == 30
        places = (dataset.X @ hidden)[:, 0]
        for query, own in enumerate(relevance.query_items):
            items, grades = relevance.judged(query)
            assert own not in items
            gaps = abs(places[items] - places[own])
            assert gaps[grades == 1].max() < gaps[grades == 0].min()


def test_a_hidden_map_must_fit_the_features():
    with pytest.raises(
        ValueError, match=r"hidden_map must have 56 rows: got shape \(3, 1\)"
    ):
        make_matching(hidden_map=np.ones((3, 1)))
