"""Estimators in a recipe: names of rankspace, and any class by its dotted path."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import load_recipe, reproduce
from experiments.methods import find_estimator, fit_metric, fit_ranker
from rankspace import MLR, BaseRanker, LinearMetric
from rankspace.datasets import load_wine

pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")


class VerticalAxis:
    """Somebody's own method: it keeps the second feature only."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def fit(self, X, y):
        self.components_ = self.weight * np.eye(X.shape[1])[1:2]
        return self


class Scaled(BaseRanker):
    """A ranker of one's own, built on the base class of rankspace."""

    def _fit_metric(self, X, relevance, queries):
        return LinearMetric(np.diag(1 / X.std(axis=0)))


def test_a_class_of_ones_own_stands_in_a_published_table(tmp_path):
    recipe = load_recipe("mlr-figure-1").with_options({"n_samples": 60, "against": ""})
    mine = {
        "label": "mine",
        "estimator": f"{__name__}.VerticalAxis",
        "fixed": {"weight": 2.0},
    }
    methods = [recipe.content["methods"][0], mine]
    recipe = replace(recipe, content={**recipe.content, "methods": methods})
    (table,) = reproduce(recipe, tmp_path, n_jobs=1).tables
    euclidean, own = table.rows
    assert own[:2] == ("mine", 1.0)
    assert own[2] > euclidean[2] + 0.2


def test_names_and_dotted_paths_are_imported():
    assert find_estimator("MLR") is MLR
    assert find_estimator("rankspace.MLR") is MLR
    assert find_estimator(f"{__name__}.Scaled") is Scaled


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("NoSuchLearner", "has no attribute 'NoSuchLearner'"),
        ("no_such_package.MyLearner", "No module named 'no_such_package'"),
        ("sklearn.decomposition.NoSuch", "has no attribute 'NoSuch'"),
    ],
)
def test_paths_that_cannot_be_imported(name, cause):
    with pytest.raises(ValueError, match="can be imported: got") as caught:
        find_estimator(name)
    assert repr(name) in str(caught.value)
    assert cause in str(caught.value)
    assert "or put its folder on PYTHONPATH" in str(caught.value)


def test_a_wrong_path_is_refused_before_the_first_job(tmp_path):
    recipe = load_recipe("mlr-table-2")
    method = {"label": "mine", "estimator": "no_such_package.MyLearner", "shown": ""}
    recipe = replace(recipe, content={**recipe.content, "methods": [method]})
    with pytest.raises(ValueError, match=r"got 'no_such_package\.MyLearner'"):
        reproduce(recipe, tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_a_protocol_needs_of_an_estimator():
    wine = load_wine()
    metric = fit_metric(f"{__name__}.VerticalAxis", {}, wine.X, wine.labels)
    assert metric.components.shape == (1, 13)
    assert isinstance(fit_ranker(f"{__name__}.Scaled", {}, wine.X, wine.labels), Scaled)
    with pytest.raises(ValueError, match=r"a subclass of rankspace\.BaseRanker"):
        fit_ranker(f"{__name__}.VerticalAxis", {}, wine.X, wine.labels)
    with pytest.raises(ValueError, match="must learn a linear metric"):
        fit_metric("sklearn.preprocessing.StandardScaler", {}, wine.X, wine.labels)
