"""Every estimator as scikit-learn's users use it; a trivial learner stands in for those to come."""

import logging
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankspace
from rankspace import (
    FRML,
    LGMML,
    LORETA,
    MLR,
    PARCA,
    BaseRanker,
    BilinearMetric,
    Euclidean,
    LinearMetric,
    LinearRanker,
    Relevance,
    evaluate,
)


class Weighted(LinearRanker):
    """Scales the first feature; learns nothing else."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def _fit_metric(self, X, relevance, queries):
        scales = np.ones(X.shape[1], dtype=X.dtype)
        scales[0] = self.weight
        return LinearMetric(np.diag(scales))


class NearBest(LinearRanker):
    """Ranks candidates by their distance from the mean of the relevant training rows."""

    _accepts_lists = True

    def __init__(self, weight=1.0):
        self.weight = weight

    def _fit_metric(self, X, relevance, queries):
        best = relevance.items[relevance.grades >= relevance.min_relevant_grade]
        self.best_ = X[best].mean(axis=0)
        return LinearMetric(np.diag(np.r_[self.weight, np.ones(X.shape[1] - 1)]))

    def predict(self, X):
        return -np.linalg.norm(self.metric_.transform(X - self.best_), axis=1)


class Similarity(BaseRanker):
    """Ranks by inner product."""

    def _fit_metric(self, X, relevance, queries):
        return BilinearMetric(np.eye(X.shape[1]), np.eye(X.shape[1]))


@parametrize_with_checks([Euclidean(), Weighted()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


def brute_map(X, y):
    """Mean average precision of each row ranking the others."""
    scores = []
    for i in range(len(X)):
        distances = np.linalg.norm(X - X[i], axis=1)
        order = [j for j in np.argsort(distances, kind="stable") if j != i]
        hits = y[order] == y[i]
        places = np.flatnonzero(hits) + 1
        scores.append(np.mean(np.arange(1, places.size + 1) / places))
    return np.mean(scores)


def test_score_ranks_each_row_against_the_others(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    assert Euclidean().fit(X, y).score(X, y) == pytest.approx(
        brute_map(X, y), abs=1e-12
    )


def test_labels_and_relevance_are_the_same_supervision(iris):
    X, y = iris
    relevance = Relevance.from_labels(y)
    model = Weighted(3.0).fit(X, relevance)
    np.testing.assert_array_equal(
        model.components_, Weighted(3.0).fit(X, y).components_
    )
    assert model.score(X, relevance) == model.score(X, y)


def test_separate_queries(iris):
    X, y = iris
    items, queries, item_labels, query_labels = train_test_split(X, y, random_state=0)
    relevance = Relevance.from_labels(item_labels, query_labels=query_labels)
    model = Weighted(2.0).fit(items, relevance, queries=queries)
    ranking = model.rank(queries, items)
    expected = evaluate(ranking, relevance, "map").means["map"]
    assert model.score(items, relevance, queries=queries) == pytest.approx(expected)


def test_float32_stays_float32(iris):
    X, y = iris
    model = Weighted(2.0).fit(X.astype(np.float32), y)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.components_.dtype == np.float32


def test_metric_vocabulary(iris):
    X, y = iris
    model = Weighted(2.0).fit(X, y)
    pairs = np.stack((X[:5], X[5:10]), axis=1)
    W, difference = model.get_mahalanobis_matrix(), X[0] - X[5]
    assert model.pair_distance(pairs)[0] == pytest.approx(
        np.sqrt(difference @ W @ difference)
    )
    assert model.get_metric()(X[0], X[5]) == pytest.approx(
        model.pair_distance(pairs)[0]
    )
    squared = model.get_metric()(X[0], X[5], squared=True)
    assert squared == pytest.approx(difference @ W @ difference)
    np.testing.assert_array_equal(model.pair_score(pairs), -model.pair_distance(pairs))
    np.testing.assert_allclose(model.transform(X), X @ model.components_.T)
    with pytest.raises(
        ValueError, match=r"pairs must have shape \(n_pairs, 2, 4\): got \(5, 4\)"
    ):
        model.pair_distance(X[:5])


def test_neighbours_under_the_metric(iris):
    X, y = iris
    model = Weighted(5.0).fit(X, y)
    slow = KNeighborsClassifier(metric=model.get_metric()).fit(X, y).predict(X[:20])
    fast = (
        KNeighborsClassifier()
        .fit(model.transform(X), y)
        .predict(model.transform(X[:20]))
    )
    np.testing.assert_array_equal(slow, fast)


@pytest.mark.parametrize(
    "name",
    [
        "transform",
        "get_mahalanobis_matrix",
        "get_metric",
        "pair_distance",
        "pair_score",
        "get_feature_names_out",
        "fit_transform",
        "set_output",
    ],
)
def test_what_a_similarity_lacks_is_absent(name, iris):
    model = Similarity().fit(*iris)
    assert not hasattr(model, name)
    assert not hasattr(model, "components_")
    assert hasattr(Euclidean(), name)


@pytest.mark.parametrize("model", [FRML(5), LORETA(5), MLR(n_components=5), PARCA(5)])
def test_no_more_components_than_features(model, iris):
    message = "n_components must be at most the number of features, 4: got 5"
    with pytest.raises(ValueError, match=message):
        model.fit(*iris)


@pytest.mark.parametrize("name", rankspace.learners.__all__)
def test_only_learners_of_lists_predict(name):
    learner = getattr(rankspace, name)
    if isinstance(learner, type) and issubclass(learner, BaseRanker):
        assert hasattr(learner, "predict") == learner._accepts_lists


def test_feature_names_and_output_frames(iris):
    X, y = iris
    model = Weighted().fit(X, y)
    assert list(model.get_feature_names_out()) == [f"weighted{i}" for i in range(4)]
    frame = Weighted().set_output(transform="pandas").fit(X, y).transform(X)
    assert list(frame.columns) == list(model.get_feature_names_out())


@pytest.mark.parametrize("model", [Weighted(2.0), LGMML(2)])
def test_columns_in_another_order_are_refused_everywhere(model, iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    reverse = frame[list("dcba")]
    relevance = Relevance.from_labels(y, query_labels=y[:60:20])
    queries = frame[:60:20]
    model.fit(frame, relevance, queries=queries)
    assert len(model.rank(queries, frame, 3)) == 3
    calls = [
        lambda: model.rank(reverse[:3], frame, 3),
        lambda: model.rank(queries, reverse, 3),
        lambda: model.score(reverse, relevance, queries=queries),
        lambda: model.score(frame, relevance, queries=reverse[:60:20]),
        lambda: model.fit(frame, relevance, queries=reverse[:60:20]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="must be in the same order"):
            call()


# scikit-learn knows no names of tables with ids.
@pytest.mark.filterwarnings("ignore:X .* feature names")
def test_columns_of_tables_with_ids_are_matched_too(iris):
    pytest.importorskip("pyarrow")
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    table = frame.assign(id=[f"row {n}" for n in range(150)])
    reverse = frame[list("dcba")]
    for data in (frame, table):
        model = Weighted(2.0).fit(data, y)
        expected = model.transform(X)
        np.testing.assert_array_equal(model.transform(table), expected)
        assert len(model.rank(table[:3], table, 3)) == 3
        for call in (model.transform, lambda X, m=model: m.rank(X, table)):
            with pytest.raises(ValueError, match=r"the same order|in their order"):
                call(reverse if data is table else reverse.assign(id=table.id))


def test_columns_in_another_order_are_refused_when_training_goes_on(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = FRML(2, n_triplets=50, random_state=0).fit(frame, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.partial_fit(frame[list("dcba")], y)
    lists = LGMML(2).fit(frame, y == 0, qid=np.arange(150) % 10)
    with pytest.raises(ValueError, match="must be in the same order"):
        lists.rank(X=frame[list("dcba")], qid=np.arange(150) % 10)


def test_clone_pickle_and_joblib(iris, tmp_path):
    X, y = iris
    model = Weighted(2.0).fit(X, y)
    assert clone(model).weight == 2.0
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))


def test_grid_search_over_a_pipeline(iris):
    X, y = iris
    X = np.c_[1000 * np.random.default_rng(0).random(len(X)), X]
    for target in (y, Relevance.from_labels(y)):
        pipeline = make_pipeline(StandardScaler(), Weighted())
        grid, cv = (
            {"weighted__weight": [0.0, 1.0]},
            KFold(5, shuffle=True, random_state=0),
        )
        search = GridSearchCV(pipeline, grid, cv=cv, error_score="raise")
        search.fit(X, target)
        assert search.best_params_ == {"weighted__weight": 0.0}
        assert search.score(X, target) > 0.8


def test_splitters_take_relevance(iris):
    X, y = iris
    cv = KFold(3, shuffle=True, random_state=0)
    both = [
        cross_val_score(Euclidean(), X, t, cv=cv) for t in (y, Relevance.from_labels(y))
    ]
    np.testing.assert_allclose(*both)
    assert (both[0] < 1).all()
    train, test, relevance, held_out = train_test_split(
        X, Relevance.from_labels(y), random_state=0
    )
    assert (relevance.n_items, held_out.n_items) == (len(train), len(test))


def test_stratified_folds_want_the_labels(iris):
    X, y = iris
    with pytest.raises(TypeError, match="pass them the labels instead of a Relevance"):
        next(StratifiedKFold(3).split(X, Relevance.from_labels(y)))


def test_a_score_that_means_nothing_is_told(iris, caplog):
    X, y = iris
    Euclidean().fit(X, y).score(X[:50], y[:50])
    assert "no query has both relevant and irrelevant items" in caplog.text


def test_the_metric_can_be_pickled_with_its_user(iris):
    X, y = iris
    neighbours = KNeighborsClassifier(metric=Weighted(2.0).fit(X, y).get_metric()).fit(
        X, y
    )
    copy = pickle.loads(pickle.dumps(neighbours))
    np.testing.assert_array_equal(copy.predict(X[:9]), neighbours.predict(X[:9]))


def test_search_with_separate_queries_points_to_tune(iris):
    X, y = iris
    relevance = Relevance.from_labels(y, query_labels=[0, 1])
    search = GridSearchCV(Weighted(), {"weight": [0.0, 1.0]}, error_score="raise")
    with pytest.raises(
        ValueError, match=r"Use rankspace\.tune, which splits the queries"
    ):
        search.fit(X, relevance)


@pytest.fixture
def lists():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=200) * 100, rng.normal(size=(200, 3))]
    grades = (X[:, 1] > 0.8).astype(float) + (X[:, 1] > 1.5)
    return X, grades, rng.permutation(np.repeat(np.arange(20), 10))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def search_lists(model, parameter, lists, **metadata):
    X, grades, qid = lists
    cv = GroupKFold(4).set_split_request(groups="qid")
    search = GridSearchCV(model, {parameter: [0.0, 1.0]}, cv=cv, error_score="raise")
    search.fit(X, grades, qid=qid, **metadata)
    assert search.best_params_ == {parameter: 0.0}
    return search


@pytest.mark.usefixtures("routing")
def test_lists_reach_fit_score_and_splitter_by_routing(lists):
    pipeline = make_pipeline(StandardScaler(with_std=False), NearBest())
    search_lists(pipeline, "nearbest__weight", lists)


@pytest.mark.usefixtures("routing")
def test_weights_reach_score_by_routing(lists):
    qid = lists[2]
    plain = search_lists(NearBest(), "weight", lists)
    weighted = search_lists(NearBest(), "weight", lists, sample_weight=1.0 + (qid < 5))
    scores = [search.cv_results_["mean_test_score"] for search in (plain, weighted)]
    assert not np.isclose(*scores, atol=1e-6).any()


def test_scores_of_lists_rank_candidates_of_a_query_only(lists):
    X, grades, qid = lists
    model = NearBest(0.0).fit(X, grades, qid=qid)
    scores, values = model.predict(X), []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        hits = grades[rows[np.argsort(-scores[rows], kind="stable")]] >= 1
        places = np.flatnonzero(hits) + 1
        if places.size:
            values.append(np.mean(np.arange(1, places.size + 1) / places))
    assert model.score(X, grades, qid=qid) == pytest.approx(np.mean(values))


def test_list_weights_are_those_of_the_first_row(lists):
    X, grades, qid = lists
    model = NearBest(0.0).fit(X, grades, qid=qid)
    weights = (qid == qid[np.flatnonzero(grades)[0]]).astype(float)
    one = weights.astype(bool)
    expected = model.score(X[one], grades[one], qid=qid[one])
    assert model.score(X, grades, weights, qid=qid) == pytest.approx(expected)


def test_lists_are_refused_by_who_cannot_use_them(lists):
    X, grades, qid = lists
    with pytest.raises(
        ValueError, match="Euclidean learns from queries that have vectors"
    ):
        Euclidean().fit(X, grades, qid=qid)
    assert not hasattr(Euclidean(), "predict")


def test_queries_that_teach_nothing_are_counted(caplog):
    X = np.arange(6.0)[:, None]
    with caplog.at_level(logging.WARNING, "rankspace"):
        Weighted().fit(X, [0, 0, 1, 1, 2, 3])
    assert "2 of 6 queries have no relevant or no irrelevant items" in caplog.text


class Remembers(LinearRanker):
    """Keeps what it was given to learn from."""

    def _fit_metric(self, X, relevance, queries):
        self.queries_ = queries
        self.lists_ = [
            relevance.relevant(query) for query in range(relevance.n_queries)
        ]
        return LinearMetric.identity(X.shape[1])


def test_vectors_of_queries_stay_with_their_judgments_when_some_are_left_out():
    X = np.arange(4.0)[:, None]
    relevance = Relevance.from_lists([[], [0], [0, 1, 2, 3], [2, 3]], n_items=4)
    model = Remembers().fit(X, relevance, queries=[[10.0], [11.0], [12.0], [13.0]])
    np.testing.assert_array_equal(model.queries_, [[11.0], [13.0]])
    assert [list(found) for found in model.lists_] == [[0], [2, 3]]


BAD = {
    "NaN": ([[np.nan], [1.0]], [0, 1], "contains NaN"),
    "infinity": ([[np.inf], [1.0]], [0, 1], "contains infinity"),
    "empty": (np.empty((0, 2)), [], "0 sample"),
    "wrong length": ([[0.0], [1.0]], [0, 1, 1], "inconsistent numbers of samples"),
    "one class": ([[0.0], [1.0]], [0, 0], "Class labels need more than one class"),
    "continuous": ([[0.0], [1.0]], [0.5, 1.5], "not continuous values: got 0.5"),
    "one-hot": ([[0.0], [1.0]], np.eye(2), r"pass y\.argmax\(axis=1\)"),
    "-1 beside others": (
        [[0.0], [1.0], [2.0]],
        [-1, 0, 1],
        r"from_labels\(y, unlabelled=-1\)",
    ),
    "every row a class": ([[0.0], [1.0]], [0, 1], "and two rows of one of them"),
    "no labels": ([[0.0], [1.0]], None, "the target y is None"),
    "relevance of another size": (
        [[0.0], [1.0]],
        Relevance.from_labels([0, 1, 1]),
        "one item for each row of X: got 3 items and 2 rows",
    ),
    "queries without vectors": (
        [[0.0], [1.0]],
        Relevance.from_lists([[0]], n_items=2),
        "Pass their vectors as queries=",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    X, y, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        Weighted().fit(X, y)


@pytest.mark.parametrize("queries", [[[0.0], [1.0]], [[0.0, 1.0]]])
def test_queries_of_the_wrong_shape(queries):
    relevance = Relevance.from_lists([[0]], n_items=2)
    with pytest.raises(ValueError, match=r"so shape \(1, 1\): got \("):
        Weighted().fit([[0.0], [1.0]], relevance, queries=queries)


def test_score_of_judged_items_is_that_of_the_whole_ranking():
    """Where the unjudged are ignored only judged items are sorted, with the same result."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    lists = [rng.permutation(50)[:9] for _ in range(20)]
    relevance = Relevance.from_lists(
        [row[:3] for row in lists],
        [row[3:] for row in lists],
        n_items=50,
        query_rows=range(20),
        unjudged="ignore",
    )
    model = Weighted(3.0).fit(X, relevance)
    whole = model.rank(X[:20], X)
    assert model.score(X, relevance) == evaluate(whole, relevance, "map").means["map"]
