import numpy as np
import pytest

from rankspace.datasets import make_gaussian_mixture, make_matching, make_mlr_toy

MAKERS = [make_mlr_toy, make_gaussian_mixture, make_matching]


@pytest.mark.parametrize("make", MAKERS)
def test_seed_decides(make):
    first, again, other = (make(random_state=seed).X for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("make", MAKERS)
def test_generator_is_taken(make):
    assert make(random_state=np.random.default_rng(0)).relevance.trainable.any()


def neighbour_accuracy(X, labels):
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(distances, np.inf)
    return (labels[distances.argmin(axis=1)] == labels).mean()


def test_mlr_toy_needs_the_vertical_axis_alone():
    dataset = make_mlr_toy(300, n_classes=3, random_state=0)
    assert np.bincount(dataset.labels).tolist() == [100, 100, 100]
    assert neighbour_accuracy(dataset.X, dataset.labels) < 0.8
    assert neighbour_accuracy(dataset.X[:, 1:], dataset.labels) > 0.9


def test_mixture_has_centres_of_each_grade():
    dataset = make_gaussian_mixture(
        4, n_classes=3, n_samples=240, spread=1e-6, random_state=0
    )
    for grade in range(3):
        points = np.unique(np.round(dataset.X[dataset.grades == grade], 3), axis=0)
        assert len(points) == 4
    assert dataset.relevance.n_queries == 10
    np.testing.assert_array_equal(dataset.labels, dataset.grades)


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
        (lambda: make_mlr_toy(1), "n_samples must be at least 2: got 1"),
        (lambda: make_mlr_toy(n_classes=1), "n_classes must be at least 2: got 1"),
        (lambda: make_gaussian_mixture(0), "n_centers must be at least 1: got 0"),
        (
            lambda: make_gaussian_mixture(n_samples=8),
            "n_samples must be at least 10: got 8",
        ),
        (
            lambda: make_gaussian_mixture(n_queries=0),
            "n_queries must be at least 1: got 0",
        ),
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
