"""ListwiseMap: its loss against plain loops and finite differences, and what it learns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankspace import BilinearMetric, Euclidean, Index, ListwiseMap, Relevance, evaluate
from rankspace._engine.parallel import interrupted_by
from rankspace._engine.parallel import threads as _threads
from rankspace.learners import listwise
from rankspace.learners.hard_negatives import with_hard_negatives
from rankspace.learners.listwise import SIDES
from rankspace.learners.solvers.points import partly_white
from rankspace.learners.solvers.smooth.pair_loss import Grouped, Listwise, PairLoss
from reference.conventions import expected_failures

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@parametrize_with_checks(
    [ListwiseMap(max_iter=15), ListwiseMap(sides="query", max_iter=15)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def graded_problem(seed=0):
    """Separate queries with graded, judged irrelevant and unjudged items that are left out."""
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(12, 3)), rng.normal(size=(5, 3))
    graded = [
        {0: 1.0, 3: 2.0},
        {1: 1.0},
        {2: 3.0, 4: 1.0, 5: 1.0},
        {7: 1.0},
        {0: 2.0, 8: 2.0},
    ]
    relevance = Relevance.from_lists(graded, n_items=12)
    judged = Relevance.from_lists(
        [[0, 3], [1]], [[2, 5, 6], [0, 11]], n_items=12, unjudged="ignore"
    )
    return X, Q, relevance, judged


def plain_loss(X, Q, relevance, L, temperature, side, counts):
    """One query and one item after another."""
    total = 0.0
    for q in range(relevance.n_queries):
        items, grades = relevance.judged(q)
        gains = {i: 2.0**g - 1 for i, g in zip(items, grades, strict=True) if g >= 1}
        taking_part = [*gains, *relevance.irrelevant(q)]
        far = {}
        for i in taking_part:
            if side == "shared":
                far[i] = np.sum((L @ (Q[q] - X[i])) ** 2) / temperature
            else:
                far[i] = -2 * (L @ Q[q]) @ X[i] / temperature
        log_total = np.log(sum(counts[i] * np.exp(-value) for i, value in far.items()))
        share = sum(gains.values())
        for i, gain in gains.items():
            total += gain / share * (np.log(gain / share) + far[i] + log_total)
    return total / relevance.n_queries


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", ["graded", "judged only", "labels", "weighted"])
def test_loss_and_gradient_match_plain_loops_and_finite_differences(kind, side):
    X, Q, graded, judged = graded_problem()
    relevance = {"graded": graded, "judged only": judged, "weighted": graded}.get(kind)
    counts = np.linspace(1e-9, 3, 12) if kind == "weighted" else np.ones(12)
    if relevance is None:
        relevance, Q = Relevance.from_labels(np.arange(12) % 3), X
    Q = Q[: relevance.n_queries]
    loss = SIDES[side](X, Q, relevance, 64)
    rows = Listwise(
        relevance,
        [0.7, 0.2],
        log_weights=np.log(counts) if kind == "weighted" else None,
    )
    L = np.eye(3) + 0.3 * np.random.default_rng(1).normal(size=(3, 3))
    value, _ = loss.value_and_gradient(L, rows)
    expected = np.mean(
        [plain_loss(X, Q, relevance, L, t, side, counts) for t in (0.7, 0.2)]
    )
    assert value == pytest.approx(expected, rel=1e-12)

    def part(which):
        return lambda v: np.ravel(loss.value_and_gradient(v.reshape(3, 3), rows)[which])

    error = check_grad(lambda v: part(0)(v)[0], part(1), L.ravel())
    assert error < 1e-5 * np.linalg.norm(part(1)(L.ravel()))


def planted(seed=0, n=400, n_queries=60, d=8):
    """Queries whose three relevant items are nearest in half of the features."""
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(n, d)), rng.normal(size=(n_queries, d))
    weights = np.repeat([2.0, 0.1], d // 2)
    near = np.argsort(((Q[:, None] - X) ** 2 * weights).sum(axis=2), axis=1)[:, :3]
    return X, Q, Relevance.from_lists(near.tolist(), n_items=n)


def held_out_map(model, X, Q, relevance):
    return evaluate(Index(X, model.metric_).rank(Q), relevance, "map").means["map"]


def test_a_planted_metric_is_learned_for_held_out_queries():
    X, Q, relevance = planted()
    train = relevance.take_queries(np.arange(40))
    test = relevance.take_queries(np.arange(40, 60))
    raw = Euclidean().fit(X, train, queries=Q[:40])
    model = ListwiseMap(0.001).fit(X, train, queries=Q[:40])
    assert (
        held_out_map(model, X, Q[40:], test) > held_out_map(raw, X, Q[40:], test) + 0.3
    )


def test_a_map_of_the_queries_leaves_items_unchanged():
    X, Q, relevance = planted()
    X, Q = unit(X, Q)
    model = ListwiseMap(sides="query", whiten=0.0).fit(X, relevance, queries=Q)
    assert isinstance(model.metric_, BilinearMetric)
    np.testing.assert_array_equal(model.metric_.embed_items(X), X)
    raw = evaluate(Index(X).rank(Q), relevance, "map").means["map"]
    assert held_out_map(model, X, Q, relevance) > raw
    assert not hasattr(model, "transform")
    still = ListwiseMap(1e9, sides="query", whiten=0.0).fit(X, relevance, queries=Q)
    assert held_out_map(still, X, Q, relevance) == pytest.approx(raw)


def unit(*arrays):
    return [points / np.linalg.norm(points, axis=1, keepdims=True) for points in arrays]


def test_separate_maps_average_the_shared_and_the_query_map():
    X, Q, relevance = planted()
    X, Q = unit(X, Q)
    train = relevance.take_queries(np.arange(40))
    test = relevance.take_queries(np.arange(40, 60))
    model = ListwiseMap(0.001, sides="separate").fit(X, train, queries=Q[:40])
    both, query = (
        ListwiseMap(0.001, sides=side).fit(X, train, queries=Q[:40])
        for side in ("shared", "query")
    )
    assert model.n_iter_ == both.n_iter_ + query.n_iter_
    products = query.metric_.embed_queries(Q) @ X.T
    expected = (both.metric_.distances(Q, X) ** 2 - 2 * products) / 2
    found = model.metric_.distances(Q, X) ** 2
    away = found - expected
    np.testing.assert_allclose(
        away, np.broadcast_to(away[:, :1], away.shape), atol=1e-8
    )
    raw = Euclidean().fit(X, train, queries=Q[:40])
    assert (
        held_out_map(model, X, Q[40:], test) > held_out_map(raw, X, Q[40:], test) + 0.2
    )
    single = ListwiseMap(sides="separate").fit(
        X.astype("f4"), train, queries=Q[:40].astype("f4")
    )
    assert single.metric_.distances(Q.astype("f4"), X.astype("f4")).dtype == np.float32


def relative(metric, Q, X):
    """Squared distances (or minus twice the products), relative to the first item."""
    if metric.inner_product:
        found = -2 * metric.embed_queries(Q) @ metric.embed_items(X).T
    else:
        found = metric.distances(Q, X) ** 2
    return found - found[:, :1]


@pytest.mark.parametrize("side", ["shared", "query", "separate"])
def test_several_regs_average_their_distances(side):
    X, Q, relevance = planted()
    X, Q = unit(X, Q)
    model = ListwiseMap((0.001, 0.1), sides=side).fit(X, relevance, queries=Q)
    strong, weak = (
        ListwiseMap(reg, sides=side).fit(X, relevance, queries=Q)
        for reg in (0.1, 0.001)
    )
    assert model.regs_ == [0.1, 0.001]
    assert model.n_iter_ == strong.n_iter_ + weak.n_iter_
    assert model.loss_ == pytest.approx(strong.loss_ + weak.loss_)
    expected = (relative(strong.metric_, Q, X) + relative(weak.metric_, Q, X)) / 2
    np.testing.assert_allclose(relative(model.metric_, Q, X), expected, atol=1e-8)
    assert np.abs(expected - relative(weak.metric_, Q, X)).max() > 1e-3
    assert model.metric_.parameters["reg"] == [0.1, 0.001]


def test_sequential_and_parallel_searches_learn_the_same_maps(monkeypatch):
    X, Q, relevance = planted()
    X, Q = unit(X, Q)
    found = []
    for cores in (1, 2, 4, 64):
        for module in (listwise, _threads):
            monkeypatch.setattr(
                module,
                "n_threads",
                lambda cores=cores: 1 if _threads._here.__dict__ else cores,
            )
        found.append(ListwiseMap(sides="separate").fit(X, relevance, queries=Q).metric_)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].query_map, other.query_map)
        np.testing.assert_array_equal(found[0].item_map, other.item_map)


@given(st.integers(0, 1000), st.floats(0, 1.5), st.integers(3, 30))
def test_whitening_evens_the_spread_and_keeps_the_total(seed, degree, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5))
    X -= X.mean(axis=0)
    white = partly_white(X, degree)
    np.testing.assert_allclose(white, white.T, atol=1e-8)
    assert np.sum((X @ white) ** 2) == pytest.approx(np.sum(X**2))
    spreads = np.linalg.eigvalsh(X.T @ X)
    white_spreads = np.linalg.eigvalsh(white @ X.T @ X @ white)
    before = (spreads + 1e-9).max() / (spreads + 1e-9).mean()
    after = (white_spreads + 1e-9).max() / (white_spreads + 1e-9).mean()
    assert after <= before * (1 + 1e-6) or degree > 1


def test_whitening_by_one_is_the_inverse_root_of_the_covariance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4)) * [1.0, 2.0, 3.0, 4.0]
    X -= X.mean(axis=0)
    spread = np.cov((X @ partly_white(X, 1.0)).T)
    # White up to the floor, for directions it leaves apart.
    np.testing.assert_allclose(
        spread, np.diag(np.diag(spread)), atol=0.05 * spread.max()
    )
    assert np.ptp(np.diag(spread)) < 0.2 * np.diag(spread).mean()  # but for the floor
    np.testing.assert_allclose(partly_white(X, 0.0), np.eye(4), atol=1e-12)


def test_a_strong_reg_keeps_the_vectors_whitened_or_not():
    X, Q, relevance = planted()
    X, Q = X * np.linspace(0.5, 2, 8), Q * np.linspace(0.5, 2, 8)
    still = ListwiseMap(1e9, whiten=0.0).fit(X, relevance, queries=Q)
    np.testing.assert_allclose(still.components_, np.eye(8), atol=1e-4)
    white = partly_white(X - X.mean(axis=0), 0.5)
    for side in ("shared", "query"):
        model = ListwiseMap(1e9, sides=side, whiten=0.5).fit(X, relevance, queries=Q)
        expected = white if side == "shared" else white @ white
        np.testing.assert_allclose(model.metric_.query_map, expected, atol=1e-4)


def test_a_stronger_reg_stays_nearer_to_the_identity():
    X, Q, relevance = planted()
    away = [
        np.linalg.norm(
            ListwiseMap(reg, whiten=0.0).fit(X, relevance, queries=Q).components_
            - np.eye(8)
        )
        for reg in (1e6, 1.0, 0.01)
    ]
    assert away[0] < 1e-4 < away[1] < away[2]


def test_scale_and_offset_of_the_data_do_not_matter():
    X, Q, relevance = planted()
    found = ListwiseMap().fit(X, relevance, queries=Q)
    for scale, offset in ((1000.0, 0.0), (1e-3, 0.0), (1.0, 5.0)):
        other = ListwiseMap().fit(
            scale * X + offset, relevance, queries=scale * Q + offset
        )
        np.testing.assert_allclose(other.components_, found.components_, atol=1e-4)
        assert other.temperatures_ == pytest.approx(found.temperatures_, rel=1e-4)


def test_default_temperatures_are_the_best_one_and_half_of_it():
    X, Q, relevance = planted()
    found = ListwiseMap().fit(X, relevance, queries=Q)
    best, half = found.temperatures_
    assert half == best / 2
    given = ListwiseMap(temperature=(best, half)).fit(X, relevance, queries=Q)
    np.testing.assert_array_equal(given.components_, found.components_)
    lower = ListwiseMap(temperature=half).fit(X, relevance, queries=Q)
    assert lower.temperatures_ == [half]
    assert np.abs(lower.components_ - found.components_).max() > 1e-3


def test_single_precision_learns_the_same():
    X, Q, relevance = planted()
    double = ListwiseMap().fit(X, relevance, queries=Q)
    single = ListwiseMap().fit(X.astype("f4"), relevance, queries=Q.astype("f4"))
    assert single.components_.dtype == np.float32
    np.testing.assert_allclose(single.components_, double.components_, atol=0.05)


def test_many_items_are_split_into_groups_that_keep_their_judged_items():
    X, Q, relevance = planted()
    model = ListwiseMap(max_items=40)
    groups = model._query_groups("shared", relevance, X, Q)
    assert len(groups) > 3
    np.testing.assert_array_equal(
        np.concatenate([queries for queries, _ in groups]),
        np.arange(relevance.n_queries),
    )
    for queries, items in groups:
        judged = relevance.take_queries(queries).items
        assert np.isin(judged, items).all()
        assert len(items) == max(40, np.unique(judged).size)
        assert (np.diff(items) > 0).all()
    whole = ListwiseMap(max_items=len(X)).fit(X, relevance, queries=Q)
    parts, again = (
        model.fit(X, relevance, queries=Q),
        clone(model).fit(X, relevance, queries=Q),
    )
    np.testing.assert_array_equal(parts.components_, again.components_)
    raw, found, best = (
        fitted.score(X, relevance, queries=Q)
        for fitted in (Euclidean().fit(X, relevance, queries=Q), parts, whole)
    )
    assert found - raw > 0.8 * (best - raw)  # with a tenth of the items


@pytest.mark.parametrize("side", SIDES)
def test_negatives_are_the_nearest_unjudged_items(side):
    X, Q, relevance = planted()
    X = 3 * X * np.linspace(0.5, 2, len(X))[:, None]
    [(queries, items)] = ListwiseMap(n_negatives=100)._query_groups(
        side, relevance, X, Q
    )
    judged = np.unique(relevance.items)
    others = np.setdiff1d(items, judged)
    assert queries.size == relevance.n_queries
    assert np.isin(judged, items).all()
    assert 30 < others.size <= 100
    nearness = Q @ X.T if side == "query" else -((Q[:, None] - X) ** 2).sum(axis=2)
    places = np.argsort(np.argsort(-nearness, axis=1), axis=1).min(axis=0)
    left_out = np.setdiff1d(np.arange(len(X)), items)
    assert places[others].max() <= places[left_out].min()
    everything = ListwiseMap(n_negatives=len(X))._query_groups(
        "shared", relevance, X, Q
    )
    assert [part for _, part in everything] == [None]


def test_hard_negatives_teach_about_as_much_as_all_items():
    X, Q, relevance = planted(n=2000)
    train = relevance.take_queries(np.arange(40))
    test = relevance.take_queries(np.arange(40, 60))
    models = (
        Euclidean(),
        ListwiseMap(0.01, n_negatives=2000),
        ListwiseMap(0.01, n_negatives=300),
    )
    raw, all_items, few = [
        held_out_map(model.fit(X, train, queries=Q[:40]), X, Q[40:], test)
        for model in models
    ]
    assert few - raw > 0.8 * (all_items - raw) > 0.1


@pytest.mark.parametrize(
    ("gain", "expected"),
    [("exponential", (7, 1)), ("linear", (3, 1)), ("binary", (1, 1))],
)
def test_relevant_items_count_by_their_gain(gain, expected):
    relevance = Relevance.from_qrels({"q": {"a": 3, "b": 1}}, item_ids=["a", "b", "c"])
    _, slopes = Listwise(relevance, [1.0], gain)(
        np.zeros((1, 3)), np.array([[2, 2, 1]], dtype=np.int8), np.arange(1)
    )
    np.testing.assert_allclose(
        slopes[0] + 1 / 3, np.array([*expected, 0]) / sum(expected)
    )


def test_unjudged_weight_is_for_items_relevant_to_no_query():
    relevance = planted()[2]
    model = ListwiseMap(unjudged_weight=0.25)
    weights = np.exp(model._log_weights(relevance))
    named = set(
        np.concatenate([relevance.relevant(q) for q in range(relevance.n_queries)])
    )
    assert [item for item, weight in enumerate(weights) if weight == 1] == sorted(named)
    np.testing.assert_allclose(np.unique(weights), [0.25, 1])
    assert ListwiseMap()._log_weights(relevance) is None


def with_popular_items():
    """Each query wants its nearest item; the first hundred one of a few popular items."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    X[:40, 0] += 3
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    wanted = np.concatenate((rng.integers(0, 40, size=100), np.arange(40, 400)))
    Q = X[wanted] + 0.2 * rng.normal(size=(460, 8))
    Q[:100, 0] = rng.normal(scale=0.3, size=100)
    Q /= np.linalg.norm(Q, axis=1, keepdims=True)
    return X, Q, Relevance.from_lists(wanted[:, None].tolist(), n_items=400)


def test_a_low_unjudged_weight_keeps_popular_items_from_attracting_all_queries():
    X, Q, relevance = with_popular_items()
    train, new = np.arange(100), np.arange(100, 460)

    def popular(metric):
        return (Index(X, metric).rank(Q[new], 10).items < 40).mean()

    plain, careful = (
        ListwiseMap(0.01, sides="separate", unjudged_weight=count).fit(
            X, relevance.take_queries(train), queries=Q[train]
        )
        for count in (1.0, 0.03)
    )
    raw = popular(None)
    assert popular(plain.metric_) > 1.3 * raw
    assert popular(careful.metric_) < 1.1 * raw


def test_unjudged_weights_of_a_group_depend_on_all_queries(monkeypatch):
    X, Q, relevance = planted()
    model = ListwiseMap(unjudged_weight=0.1, max_items=120)
    groups = model._query_groups("shared", relevance, X, Q)
    assert len(groups) == 3
    made = []
    monkeypatch.setattr(
        "rankspace.learners.listwise.Listwise",
        lambda *a, **k: made.append(a) or Listwise(*a, **k),
    )
    model.fit(X, relevance, queries=Q)
    weights = [call[3] for call in made if len(call) > 3]
    assert len(weights) == 3
    for (_, items), found in zip(groups, weights, strict=True):
        np.testing.assert_array_equal(found, model._log_weights(relevance)[items])


def test_many_rows_are_subsampled():
    X, _, _ = planted()
    rows, part = ListwiseMap(max_items=220, random_state=0)._subsample_rows(
        X, Relevance.from_labels(np.arange(400) % 3)
    )
    assert rows.shape == (220, 8)
    assert part.n_queries == 220


def test_too_few_rows_to_learn_from_are_refused(wine):
    message = "max_items is too small: among 2 random rows of 178, no query has both"
    with pytest.raises(ValueError, match=message):
        ListwiseMap(max_items=2, random_state=0).fit(*wine)


def test_groups_are_weighted_by_their_queries():
    X, Q, relevance = planted()
    weighted = replace(relevance, weights=np.arange(1.0, relevance.n_queries + 1))
    parts = [np.arange(7), np.arange(7, relevance.n_queries)]
    losses = [PairLoss(X, Q[part], weighted.take_queries(part), 64) for part in parts]
    L = np.eye(X.shape[1]) + 0.1
    whole = PairLoss(X, Q, weighted, 64).value_and_gradient(
        L, Listwise(weighted, [0.5])
    )
    rows = [Listwise(loss.relevance, [0.5]) for loss in losses]
    value, gradient = Grouped(losses).value_and_gradient(L, rows)
    assert value == pytest.approx(whole[0])
    np.testing.assert_allclose(gradient, whole[1], atol=1e-10)


@pytest.mark.parametrize("n", [20, 45])
def test_default_regs_fall_with_the_number_of_queries(n):
    X, Q, relevance = planted()
    model = ListwiseMap().fit(X, relevance.take_queries(np.arange(n)), queries=Q[:n])
    np.testing.assert_allclose(model.regs_, [80 / n, 2.4 / n])
    assert model.metric_.parameters["reg"] == model.regs_


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_a_warning_is_given_without_convergence():
    X, Q, relevance = planted()
    with pytest.warns(
        ConvergenceWarning, match="stopped after 2 steps .* Raise max_iter"
    ):
        ListwiseMap(max_iter=2, tol=0).fit(X, relevance, queries=Q)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sides": "items"}, "sides must be one of shared, query"),
        ({"reg": -1}, "reg"),
        ({"reg": (1.0, -1.0)}, "reg"),
        ({"reg": ()}, "reg must be a number or several"),
        ({"reg": (1.0, np.nan)}, "reg must be finite: got nan"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": (1.0, 0.0)}, "temperature"),
        ({"temperature": ()}, "temperature must be a number or several"),
        ({"whiten": 3.0}, "whiten"),
        ({"gain": "double"}, "gain must be one of exponential, linear"),
        ({"n_negatives": -1}, "n_negatives"),
        (
            {"unjudged_weight": 0.0},
            "unjudged_weight must be above 0 and at most 1: got 0.0",
        ),
        ({"unjudged_weight": np.nan}, "unjudged_weight must be finite"),
    ],
)
def test_wrong_parameters(parameters, message):
    X, Q, relevance = planted()
    with pytest.raises(ValueError, match=message):
        ListwiseMap(**parameters).fit(X, relevance, queries=Q)


# ---------------------------------------------------------------------- a path of regs


def full_loss(X, Q, relevance, metric, reg):
    """The loss of a path of cosine or Euclidean maps without whitening, again in plain NumPy."""
    far = metric.distances(Q, X)
    far = 2 * far if metric.inner_product else far**2
    logits = -far / (2 * X.var(axis=0).sum() * 0.5)
    loss = 0.0
    for q in range(relevance.n_queries):
        log_total = np.log(np.exp(logits[q]).sum())
        relevant = relevance.relevant(q)
        loss += np.mean(log_total - logits[q, relevant] - np.log(relevant.size))
    away = metric.query_map - np.eye(X.shape[1])
    return loss / relevance.n_queries + reg * np.sum(away**2)


@pytest.mark.parametrize("sides", ["shared", "query"])
def test_each_map_of_a_path_is_nearly_as_good_as_one_learned_alone(sides):
    X, Q, relevance = planted(n=120, n_queries=30)
    X, Q = unit(X, Q)
    settings = {"sides": sides, "whiten": 0.0, "temperature": 0.5}
    regs = [1.0, 0.3, 0.1, 0.03, 0.01]
    identity = ListwiseMap(1e9, **settings).fit(X, relevance, queries=Q).metric_
    maps = list(ListwiseMap(**settings).path(X, relevance, regs, queries=Q))
    assert len(maps) == len(regs)
    for reg, found in zip(regs, maps, strict=True):
        assert found.parameters["reg"] == reg
        alone = ListwiseMap(reg, tol=1e-6, **settings).fit(X, relevance, queries=Q)
        start = full_loss(X, Q, relevance, identity, 0.0)
        best = full_loss(X, Q, relevance, alone.metric_, reg)
        loss = full_loss(X, Q, relevance, found, reg)
        assert best - 1e-9 <= loss < start
        assert loss < 1.1 * best
    assert loss < best + 0.05 * (start - best)


def test_a_path_of_separate_sides_learns_each_side_as_a_path_of_its_own():
    X, Q, relevance = planted()
    X, Q = unit(X, Q)
    regs = [0.3, 0.03]

    def learned(sides):
        model = ListwiseMap(sides=sides)
        return list(model.path(X, relevance, regs, queries=Q))

    parts = zip(learned("shared"), learned("query"), learned("separate"), strict=True)
    for shared, query, both in parts:
        expected = (relative(shared, Q, X) + relative(query, Q, X)) / 2
        np.testing.assert_allclose(relative(both, Q, X), expected, atol=1e-8)


@pytest.mark.parametrize("sides", ["shared", "separate"])
def test_a_path_is_learned_as_it_is_asked_for_and_ends_when_told(sides):
    X, Q, relevance = planted(n=80, n_queries=20)
    calls = []

    def check():
        calls.append(None)
        if len(calls) > allowed:
            raise TimeoutError

    allowed = 10_000
    path = ListwiseMap(sides=sides).path(X, relevance, [1.0, 0.1, 0.01], queries=Q)
    with interrupted_by(check):
        assert not calls
        next(path)
        allowed = len(calls) + 2
        with pytest.raises(TimeoutError):
            next(path)
    assert len(calls) == allowed + 1


def test_paths_of_several_threads_are_the_same(monkeypatch):
    X, Q, relevance = planted(n=200, n_queries=40)
    found = []
    for cores in (1, 2, 64):
        monkeypatch.setattr(
            _threads,
            "n_threads",
            lambda cores=cores: 1 if _threads._here.__dict__ else cores,
        )
        maps = ListwiseMap(sides="query").path(X, relevance, [0.3, 0.03], queries=Q)
        found.append([metric.query_map for metric in maps])
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


# ---------------------------------------------------------------------- similarity


def stretched(*arrays, seed=5):
    """The same directions, with lengths from 0.5 to 20."""
    rng = np.random.default_rng(seed)
    return [
        rng.uniform(0.5, 20, size=(len(points), 1)) * points for points in unit(*arrays)
    ]


@pytest.mark.parametrize("sides", ["shared", "query", "separate"])
def test_under_the_cosine_lengths_change_nothing(sides):
    """Learned from long and short vectors as from unit vectors, and used alike."""
    X, Q, relevance = planted(n=1500)
    X, Q = unit(X, Q)
    long_X, long_Q = stretched(X, Q)
    settings = {"sides": sides, "n_negatives": 200, "max_iter": 10}
    plain = ListwiseMap(**settings).fit(X, relevance, queries=Q)
    cosine = ListwiseMap(similarity="cosine", **settings)
    cosine.fit(long_X, relevance, queries=long_Q)
    assert cosine.metric_.similarity == "cosine"
    np.testing.assert_allclose(
        cosine.metric_.distances(long_Q, long_X),
        plain.metric_.distances(Q, X),
        rtol=1e-6,
        atol=1e-6,
    )


def test_labels_are_learned_under_the_cosine():
    X, y = np.random.default_rng(0).normal(size=(80, 5)), np.arange(80) % 4
    X += 2 * np.eye(5)[y]
    (long_X,) = stretched(X)
    (unit_X,) = unit(X)
    cosine = ListwiseMap(similarity="cosine", max_iter=10).fit(long_X, y)
    plain = ListwiseMap(max_iter=10).fit(unit_X, y)
    np.testing.assert_allclose(cosine.components_, plain.components_, rtol=1e-5)
    np.testing.assert_allclose(cosine.transform(long_X), plain.transform(unit_X))
    assert cosine.score(long_X, y) == plain.score(unit_X, y)
    pairs = np.stack((long_X[:4], long_X[4:8]), axis=1)
    expected = plain.pair_distance(np.stack((unit_X[:4], unit_X[4:8]), axis=1))
    np.testing.assert_allclose(cosine.pair_distance(pairs), expected)
    assert cosine.get_metric()(*pairs[0]) == pytest.approx(expected[0])


@pytest.mark.parametrize(
    ("sides", "similarity"),
    [("query", "dot"), ("query", "cosine"), ("shared", "euclidean")],
)
def test_the_loss_is_that_of_what_the_metric_ranks_by(sides, similarity):
    """The final loss, again from the distances of the metric for unchanged vectors."""
    X, Q, relevance = planted(n=120, n_queries=30)
    X, Q = stretched(X, Q)
    reg, temperature = 0.01, 0.5
    model = ListwiseMap(
        reg, sides=sides, similarity=similarity, whiten=0.0, temperature=temperature
    ).fit(X, relevance, queries=Q)
    assert model.metric_.similarity == similarity
    far = model.metric_.distances(Q, X)
    far = 2 * far if model.metric_.inner_product else far**2
    compared = unit(X)[0] if similarity == "cosine" else X
    logits = far / (2 * compared.var(axis=0).sum() * temperature)
    loss = 0.0
    for q in range(30):
        shares = np.exp(-logits[q] - np.log(np.sum(np.exp(-logits[q]))))
        relevant = relevance.relevant(q)
        loss += np.mean(np.log(1 / relevant.size / shares[relevant])) / 30
    learned = model.metric_.query_map
    penalty = reg * np.sum((learned - np.eye(8)) ** 2)
    assert model.loss_ == pytest.approx(loss + penalty, rel=1e-9)


def test_dot_products_of_long_and_short_vectors_are_learned():
    X, Q, _ = planted()
    X, Q = stretched(X, Q)
    hidden = np.eye(8) + np.random.default_rng(3).normal(size=(8, 8)) / 3
    near = np.argsort(-(Q @ hidden @ X.T), axis=1)[:, :3]
    relevance = Relevance.from_lists(near.tolist(), n_items=len(X))
    train, test = (
        relevance.take_queries(np.arange(40)),
        relevance.take_queries(np.arange(40, 60)),
    )
    model = ListwiseMap(sides="query", similarity="dot").fit(X, train, queries=Q[:40])
    before = evaluate(Index(X, similarity="dot").rank(Q[40:]), test, "map").means["map"]
    assert held_out_map(model, X, Q[40:], test) > before + 0.1


def test_without_a_similarity_vectors_are_taken_as_they_are():
    X, Q, relevance = planted(n=60, n_queries=10)
    expected = {"shared": "euclidean", "query": "dot", "separate": "euclidean"}
    for sides, similarity in expected.items():
        plain = ListwiseMap(sides=sides, max_iter=3).fit(X, relevance, queries=Q)
        assert plain.metric_.similarity == similarity
        if sides != "separate":
            same = ListwiseMap(sides=sides, similarity=similarity, max_iter=3)
            same.fit(X, relevance, queries=Q)
            np.testing.assert_array_equal(
                plain.metric_.query_map, same.metric_.query_map
            )


@pytest.mark.parametrize(
    ("sides", "similarity", "choices"),
    [
        ("shared", "dot", "euclidean, cosine"),
        ("query", "euclidean", "dot, cosine"),
        ("separate", "euclidean", "cosine"),
        ("separate", "dot", "cosine"),
        ("shared", "cos", "euclidean, cosine"),
    ],
)
def test_a_similarity_that_the_sides_do_not_have_is_rejected(
    sides, similarity, choices
):
    X, Q, relevance = planted(n=60, n_queries=10)
    model = ListwiseMap(sides=sides, similarity=similarity)
    message = f"similarity with sides='{sides}' must be one of {choices}: got"
    with pytest.raises(ValueError, match=message):
        model.fit(X, relevance, queries=Q)


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_hard_negatives_are_nearest_by_the_similarity(similarity):
    rng = np.random.default_rng(0)
    X, Q = stretched(rng.normal(size=(3000, 6)), rng.normal(size=(40, 6)))
    lists = [[q, q + 50] for q in range(40)]
    relevance = Relevance.from_lists(lists, n_items=3000)
    kept, judgments = with_hard_negatives(X, relevance, Q, similarity)
    nearness = {
        "cosine": Q @ unit(X)[0].T,
        "dot": Q @ X.T,
        "euclidean": -((Q[:, None] - X) ** 2).sum(axis=2),
    }
    best = np.argsort(np.argsort(-nearness[similarity], axis=1), axis=1).min(axis=0)
    row = {tuple(x): i for i, x in enumerate(X.tolist())}
    chosen = np.array([row[tuple(x)] for x in kept.tolist()])
    assert judgments.n_items == chosen.size < 1200
    negatives = np.setdiff1d(chosen, np.ravel(lists))
    left_out = np.setdiff1d(np.arange(3000), chosen)
    assert negatives.size == 1000
    assert best[negatives].max() <= best[left_out].min()
    assert with_hard_negatives(X, relevance, Q) == (X, relevance)  # lengths differ


def test_rows_that_are_queries_are_learned_from_first():
    """Rows without a label do not push labelled ones out of a subsample."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), np.full(400, -1)
    y[:60] = np.arange(60) % 3
    relevance = Relevance.from_labels(y, unlabelled=-1)
    model = ListwiseMap(max_items=100, random_state=0)
    rows, judged = model._subsample_rows(X, relevance)
    assert rows.shape == (100, 3)
    assert judged.n_queries == 60
