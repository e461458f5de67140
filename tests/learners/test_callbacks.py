"""Callbacks of scikit-learn: progress, the score of each round, early stopping."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold, cross_val_score

from rankspace import FRML, MLR, GraphMLR, KernelMLR, RobustMLR, scorer

callback = pytest.importorskip("sklearn.callback")

LEARNERS = [
    FRML(2, n_triplets=1280, check_every=320, random_state=0),
    MLR(measure="auc", tol=1e-3),
    MLR(measure="auc", batch_size=30, max_iter=10, random_state=0),
    RobustMLR(measure="auc"),
    GraphMLR(measure="auc"),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
every_learner = pytest.mark.parametrize(
    "model", LEARNERS, ids=lambda model: type(model).__name__
)


class Recorder:
    """Keeps what each hook was called with, and stops after some rounds."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.begun, self.models, self.ended, self.torn_down = 0, [], 0, 0

    def setup(self, estimator, context):
        self.most = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None):
        self.begun += 1
        self.metadata = metadata

    def on_fit_task_end(self, estimator, context, *, X, fitted_estimator=None):
        if context.parent is None:
            self.ended += 1
            return False
        self.models.append((fitted_estimator, fitted_estimator.transform(X[:3])))
        return len(self.models) == self.stop_after


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@every_learner
def test_each_round_is_reported_with_its_metric(model, iris):
    recorder = Recorder()
    model = clone(model).set_callbacks(recorder)
    model.fit(*iris, sample_weight=np.ones(150))
    assert len(recorder.models) == len(model.history_) <= recorder.most
    assert recorder.begun == len(recorder.models) + 1
    assert (recorder.ended, recorder.torn_down) == (1, 1)
    assert list(recorder.metadata) == ["sample_weight"]
    _, points = recorder.models[-1]
    if (
        not isinstance(model, RobustMLR)
        and model.get_params().get("batch_size") is None
    ):
        expected = points
        np.testing.assert_allclose(model.transform(iris[0][:3]), expected, atol=1e-9)
    assert "_rounds" not in vars(model)


@every_learner
def test_callbacks_stop_a_fit(model, iris, tmp_path):
    model = clone(model).set_params(checkpoint=tmp_path / "run.ckpt", random_state=0)
    recorder = Recorder(stop_after=2)
    model.set_callbacks(recorder).fit(*iris)
    assert len(model.history_) == len(recorder.models) == 2
    assert recorder.ended == 1
    resumed = clone(model).fit(*iris)
    whole = clone(model).set_params(checkpoint=None).fit(*iris)
    np.testing.assert_array_equal(resumed.components_, whole.components_)


def test_scores_of_rounds(iris):
    monitor = callback.ScoringMonitor(
        scoring={"p@3": scorer("p@3"), "map": scorer("map")}
    )
    model = clone(LEARNERS[0]).set_callbacks(monitor)
    model.fit(*iris)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "round"]
    assert len(rows) == 4
    best = max(range(4), key=lambda at: model.history_[at]["score"])
    assert rows[best]["map"] == pytest.approx(model.score(*iris), abs=1e-6)
    assert 0 < rows[best]["p@3"] <= 1


def test_rounds_of_kernels_have_kernel_metrics(iris):
    recorder = Recorder(stop_after=2)
    model = KernelMLR(measure="auc", n_landmarks=20, random_state=0, tol=1e-4)
    model.set_callbacks(recorder).fit(*iris)
    assert len(model.history_) == len(recorder.models) == 2
    fitted, points = recorder.models[-1]
    assert fitted.metric_.kernels == model.metric_.kernels
    np.testing.assert_allclose(points, model.transform(iris[0][:3]), rtol=1e-9)
    assert "_rounds" not in {**vars(model), **vars(model.model_)}


def test_callbacks_in_cross_validation(iris):
    monitor = callback.ScoringMonitor(scoring={"map": scorer("map")})
    model = clone(LEARNERS[0]).set_callbacks(monitor)
    folds = KFold(2, shuffle=True, random_state=0)
    plain = cross_val_score(clone(LEARNERS[0]), *iris, cv=folds)
    np.testing.assert_array_equal(cross_val_score(model, *iris, cv=folds), plain)


def test_parameters_that_are_no_counts_are_refused_by_name(iris):
    for model, name in (
        (MLR(max_iter=np.nan), "max_iter"),
        (FRML(check_every=0), "check_every"),
    ):
        with pytest.raises(ValueError, match=name):
            model.fit(*iris)


def test_a_failing_fit_is_torn_down(iris):
    recorder = Recorder()
    with pytest.raises(ValueError, match="C == -1"):
        MLR(-1.0).set_callbacks(recorder).fit(*iris)
    assert (recorder.ended, recorder.torn_down) == (0, 1)
