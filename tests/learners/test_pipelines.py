"""Separate queries in scikit-learn's pipelines: transformed as ``X`` is, or refused."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from rankspace import FRML, Euclidean, Relevance

IN_FIT = r"got queries that it did not transform.*transform_input=\['queries'\]"
IN_SCORE = r"queries in fit only: call pipeline\[-1\].score"


@pytest.fixture
def retrieval(rng):
    """Items, queries and judgments that need scaling: the largest feature tells nothing."""
    scales = np.array([1000.0, 1.0, 1.0])
    X, Q = 5 + rng.normal(size=(80, 3)) * scales, 5 + rng.normal(size=(20, 3)) * scales
    squares = np.sum((Q[:, None, 1:] - X[None, :, 1:]) ** 2, axis=2)
    return X, Relevance.from_lists(np.argsort(squares)[:, :5], n_items=80), Q


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def learner():
    return FRML(2, n_triplets=300, random_state=0)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("nested", [False, True])
def test_named_queries_are_transformed_as_by_hand(nested, retrieval):
    X, relevance, Q = retrieval
    last = learner()
    if nested:
        last = make_pipeline(learner(), transform_input=["queries"])
    model = make_pipeline(StandardScaler(), last, transform_input=["queries"])
    model.fit(X, relevance, queries=Q)
    fitted = model[-1][-1] if nested else model[-1]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scaled_queries = (Q - X.mean(axis=0)) / X.std(axis=0)
    by_hand = learner().fit(Z, relevance, queries=scaled_queries)
    np.testing.assert_allclose(fitted.components_, by_hand.components_, rtol=1e-6)


def pipelines():
    scaler = StandardScaler()
    yield "last", Pipeline([("a", scaler), ("b", learner())]), "b__queries"
    yield (
        "in the middle",
        Pipeline([("a", scaler), ("b", learner()), ("c", scaler)]),
        "b__queries",
    )
    inner = Pipeline([("c", learner())])
    yield "nested", Pipeline([("a", scaler), ("b", inner)]), "b__c__queries"


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("case", list(pipelines()), ids=lambda case: case[0])
def test_queries_past_the_steps_are_refused(case, method, retrieval):
    X, relevance, Q = retrieval
    _, model, name = case
    with pytest.raises(ValueError, match=IN_FIT):
        getattr(model, method)(X, relevance, **{name: Q})


def test_also_where_steps_are_cached(retrieval, tmp_path):
    X, relevance, Q = retrieval
    steps = [StandardScaler(), learner(), StandardScaler()]
    with pytest.raises(ValueError, match=IN_FIT):
        make_pipeline(*steps, memory=str(tmp_path)).fit(X, relevance, frml__queries=Q)


@pytest.mark.usefixtures("routing")
def test_routing_alone_is_not_enough(retrieval):
    X, relevance, Q = retrieval
    with pytest.raises(ValueError, match=IN_FIT):
        make_pipeline(StandardScaler(), learner()).fit(X, relevance, queries=Q)


def test_score_of_a_pipeline_says_how(retrieval):
    X, relevance, Q = retrieval
    model = make_pipeline(StandardScaler(), learner(), transform_input=["queries"])
    with sklearn.config_context(enable_metadata_routing=True):
        model.fit(X, relevance, queries=Q)
        with pytest.raises(ValueError, match=IN_SCORE):
            model.score(X, relevance, queries=Q)
    with pytest.raises(ValueError, match=IN_SCORE):
        model.score(X, relevance)
    with pytest.raises(ValueError, match=IN_SCORE):
        model.score(X, relevance, queries=Q)  # which scikit-learn drops
    pipeline, y = model, relevance
    score = pipeline[-1].score(
        pipeline[:-1].transform(X), y, queries=pipeline[:-1].transform(Q)
    )
    assert score > 0.7


@pytest.mark.parametrize("first", ["passthrough", None])
def test_a_pipeline_that_transforms_nothing_needs_no_care(first, retrieval):
    X, relevance, Q = retrieval
    model = Pipeline([("a", first), ("b", learner())]).fit(X, relevance, b__queries=Q)
    expected = learner().fit(X, relevance, queries=Q)
    np.testing.assert_array_equal(model[-1].components_, expected.components_)


class Own(BaseEstimator):
    """The last step of a pipeline, which has queries of its own."""

    def fit(self, X, y):
        relevance = Relevance.from_lists([[0]], n_items=len(X))
        self.inner_ = Euclidean().fit(X, relevance, queries=X[:1])
        return self


def test_other_code_in_a_pipeline_may_pass_queries(retrieval):
    model = make_pipeline(StandardScaler(), Own()).fit(retrieval[0], None)
    assert model[-1].inner_.components_.shape == (3, 3)


def test_searches_point_to_tune(retrieval):
    X, relevance, Q = retrieval
    message = r"Use rankspace\.tune, which splits the queries"
    model = make_pipeline(StandardScaler(), learner())
    search = GridSearchCV(model, {"frml__reg": [0.0, 0.1]}, error_score="raise")
    with pytest.raises(ValueError, match=message):
        search.fit(X, relevance, frml__queries=Q)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=message),
    ):
        search.fit(X, relevance, queries=Q)
