"""Any measure as a scorer of scikit-learn's model selection."""

import numpy as np
import pytest
import sklearn
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from rankspace import (
    GMML,
    LGMML,
    Euclidean,
    Index,
    Ranking,
    Relevance,
    evaluate,
    scorer,
)


def top(grades, ideal):
    """Whether the first item is relevant."""
    return float(grades[0] > 0)


@pytest.mark.parametrize("measure", ["ndcg@10", "first-rank", top])
def test_a_scorer_is_the_mean_of_the_measure(wine, measure):
    X, y = wine
    model = GMML().fit(X, y)
    blocks = Index(X, model.metric_).blocks(X, query_items=np.arange(len(X)))
    mean = next(
        iter(evaluate(blocks, Relevance.from_labels(y), measure).means.values())
    )
    sign = -1 if measure == "first-rank" else 1
    assert scorer(measure)(model, X, y) == pytest.approx(sign * mean)


def test_map_is_the_method_score(wine):
    X, y = wine
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(GMML(), X, y, scoring=scorer("map"), cv=folds)
    np.testing.assert_allclose(scores, cross_val_score(GMML(), X, y, cv=folds))


def test_searches_and_pipelines(wine):
    X, y = wine
    model = make_pipeline(PCA(5), GMML())
    folds = KFold(3, shuffle=True, random_state=0)
    grid = {"gmml__t": [0.0, 0.5]}
    search = GridSearchCV(model, grid, scoring=scorer("p@5"), cv=folds).fit(X, y)
    best = search.best_estimator_
    expected = scorer("p@5")(best[-1], best[:-1].transform(X), y)
    assert scorer("p@5")(search, X, y) == scorer("p@5")(best, X, y) == expected


def test_separate_queries_go_through_the_pipeline(wine):
    X, y = wine
    relevance = Relevance.from_labels(y[50:], query_labels=y[:50])
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(PCA(5), Euclidean(), transform_input=["queries"])
        model.fit(X[50:], relevance, queries=X[:50])
    score = scorer("mrr")(model, X[50:], relevance, queries=X[:50])
    items, queries = model[:-1].transform(X[50:]), model[:-1].transform(X[:50])
    ranking = Index(items).rank(queries)
    assert score == pytest.approx(evaluate(ranking, relevance, "mrr").means["mrr"])


def test_lists_reach_the_scorer_by_routing(rng):
    X, grades = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
    qid = np.arange(80) // 10
    model = LGMML(3, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(2).set_split_request(groups="qid")
        scores = cross_val_score(
            model, X, grades, scoring=scorer("ndcg@3"), cv=cv, params={"qid": qid}
        )
    train, test = next(GroupKFold(2).split(X, grades, qid))
    fitted = model.fit(X[train], grades[train], qid=qid[train])
    ranking = Ranking.from_groups(-fitted.predict(X[test]), qid[test])
    judged = Relevance.from_groups(grades[test], qid[test])
    assert scores[0] == pytest.approx(
        evaluate(ranking, judged, "ndcg@3").means["ndcg@3"]
    )


def test_bad_scorers_stop(wine):
    with pytest.raises(ValueError, match="takes one measure: got map, mrr"):
        scorer("map mrr")
    with pytest.raises(ValueError, match=r"measure must be one of .* got '1\.5'"):
        scorer([1.5])
    with pytest.raises(ValueError, match="measure must be one of"):
        scorer("accuracy")
    with pytest.raises(TypeError, match="ends in one: got Ridge"):
        scorer("map")(Ridge(), *wine)
