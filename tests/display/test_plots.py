"""Plots: the drawn data are the given numbers."""

import sys

import numpy as np
import pytest

from rankspace import (
    LMNN,
    MLR,
    Euclidean,
    LinearMetric,
    LogisticPARCA,
    Relevance,
    Report,
    evaluate,
)
from rankspace.datasets import load_wine

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("agg")

from rankspace.display import (  # noqa: E402
    ConvergenceDisplay,
    GainsDisplay,
    LearningCurveDisplay,
    PixelClustersDisplay,
    SpaceDisplay,
    SpectrumDisplay,
    TopicsDisplay,
    n_directions,
)
from rankspace.display.figures import project_to_plane  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def test_the_bounds_of_a_run():
    wine = load_wine()
    model = MLR(measure="auc").fit(wine.X, wine.labels)
    display = ConvergenceDisplay.from_estimator(model)
    upper, lower = (line.get_ydata() for line in display.ax_.get_lines())
    np.testing.assert_array_equal(upper, [row["upper"] for row in model.history_])
    np.testing.assert_array_equal(lower, [row["lower"] for row in model.history_])
    assert (upper >= lower).all()
    assert display.figure_ is display.ax_.figure
    again = ConvergenceDisplay.from_estimator(model, ax=display.ax_)
    assert again.ax_ is display.ax_


def test_what_has_no_bounds_is_refused():
    for model in (Euclidean(), LMNN()):
        with pytest.raises(
            ValueError, match=r"history_ of bounds, .*: got (Euclidean|LMNN)\(\)"
        ):
            ConvergenceDisplay.from_estimator(model)


def test_the_spectrum_of_a_metric():
    rng = np.random.default_rng(0)
    L = rng.normal(size=(3, 5))
    display = SpectrumDisplay.from_metric(LinearMetric(L), mass=0.8)
    values = np.linalg.eigvalsh(L.T @ L)[::-1][:3]
    np.testing.assert_allclose(
        [bar.get_height() for bar in display.ax_.patches], values / values.sum()
    )
    assert display.n_directions_ == n_directions(values, 0.8)
    assert "hold 80%" in display.ax_.get_title()


@pytest.mark.parametrize(
    ("spectrum", "mass", "n"),
    [
        ([4, 3, 2, 1], 0.4, 1),
        ([4, 3, 2, 1], 0.41, 2),
        ([1, 0, 0], 1.0, 1),
        ([0, 0], 0.95, 0),
        ([1, 1, 1, 1], 0.95, 4),
        ([1, 1, 1, 1], 1.0, 4),
    ],
)
def test_directions_that_hold_a_share(spectrum, mass, n):
    assert n_directions(spectrum, mass) == n


def test_a_zero_metric_has_a_picture():
    assert SpectrumDisplay.from_metric(LinearMetric([[0.0, 0.0]])).n_directions_ == 0


def test_a_space_shows_every_point_in_its_colour():
    points = np.arange(8.0).reshape(4, 2)
    display = SpaceDisplay({"before": points, "after": -points}, [0, 1, 0, 1]).plot()
    before, after = display.axes_
    np.testing.assert_array_equal(before.lines[1].get_xydata(), points[1::2])
    np.testing.assert_array_equal(after.lines[0].get_xydata(), -points[::2])
    assert [ax.get_title() for ax in display.axes_] == ["before", "after"]


def test_a_hundred_classes_look_different():
    (ax,) = SpaceDisplay({"all": np.zeros((100, 2))}, np.arange(100)).plot().axes_
    assert len({(line.get_color(), line.get_marker()) for line in ax.lines}) == 100


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'rankspace\[plot\]'"):
        SpectrumDisplay([1.0]).plot()
    with pytest.raises(ImportError, match=r"rankspace\[plot\]"):
        SpaceDisplay({"a": [[0.0, 1.0]]}, [0]).plot()


# ---------------------------------------------------------------------- spaces and features


def test_spaces_show_held_out_points_with_their_error():
    wine = load_wine()
    train, test = wine.part(range(0, 178, 2)), wine.part(range(1, 178, 2))
    metrics = {
        "all": LinearMetric.identity(13),
        "two": LinearMetric(np.eye(2, 13)),
        "one": LinearMetric(np.eye(1, 13)),
    }
    display = SpaceDisplay.from_metrics(
        metrics, train.X, train.labels, test.X, test.labels
    )
    relevance = Relevance.from_labels(train.labels, query_labels=test.labels)
    for name, ax in zip(metrics, display.axes_, strict=True):
        report = evaluate(
            metrics[name].rank(test.X, train.X), relevance, "ranking-error"
        )
        assert display.errors[name] == pytest.approx(report.means["ranking-error"])
        assert ax.get_title() == f"{name}: ranking error {display.errors[name]:.3f}"
        assert sum(len(line.get_xdata()) for line in ax.lines) == len(test.X)
    first_class = display.axes_[1].lines[0].get_xydata()
    np.testing.assert_allclose(
        first_class, test.X[test.labels == np.unique(test.labels)[0], :2]
    )
    assert (display.views["one"][:, 1] == 0).all()


def test_the_plane_of_many_dimensions_is_that_of_the_largest_spread():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1.0, 5.0, 3.0]
    projected = project_to_plane(X)
    spread = np.linalg.eigvalsh(np.cov(X.T, bias=True))[::-1]
    np.testing.assert_allclose(projected.var(axis=0), spread[:2])


def test_views_of_the_wrong_shape_are_refused():
    with pytest.raises(
        ValueError, match=r"each of 3 points in the plane: 'a' has shape \(3, 3\)"
    ):
        SpaceDisplay({"a": np.eye(3)}, [0, 1, 2])


def test_learning_curves_have_means_and_intervals():
    errors = {"a": [[0.4, 0.6], [0.1, 0.3]], "b": [[0.5], [0.4]]}
    display = LearningCurveDisplay([0.02, 0.1], errors, title="sets").plot()
    first, second = display.ax_.get_lines()
    np.testing.assert_allclose(first.get_xydata(), [[2, 0.5], [10, 0.2]])
    np.testing.assert_allclose(second.get_ydata(), [0.5, 0.4])
    (band,) = display.ax_.collections
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(0.7)
    with pytest.raises(ValueError, match=r"each of 2 ratios: 'a' has shape \(1, 2\)"):
        LearningCurveDisplay([0.1, 0.2], {"a": [[1.0, 2.0]]})


def test_gains_of_queries():
    def report(values, smaller=()):
        return Report({"map": np.array(values)}, frozenset(smaller))

    before, after = report([0.1, 0.5, 0.3]), report([0.4, 0.2, 0.3])
    display = GainsDisplay.from_reports(before, after)
    better, worse = (steps.get_data().values for steps in display.ax_.patches)
    np.testing.assert_allclose(better + worse, [0.3, 0.0, -0.3])
    assert (better >= 0).all()
    assert display.ax_.get_title() == "1 better, 1 worse"
    smaller = (report([0.1, 0.5], ["map"]), report([0.0, 0.7], ["map"]))
    assert GainsDisplay.from_reports(*smaller).gains == pytest.approx([0.1, -0.2])


def test_topics_are_lists_of_words():
    rng = np.random.default_rng(0)
    model = LogisticPARCA(2, 0.1, random_state=0).fit(
        rng.random((30, 5)), np.arange(30) % 3
    )
    names = [f"word{i}" for i in range(5)]
    display = TopicsDisplay.from_estimator(model, names, n=2)
    words = [text.get_text() for text in display.ax_.texts]
    sizes = np.bincount(model.cluster_of_feature_, minlength=2)
    expected = []
    for k, topic in enumerate(model.topics(names, 2)):
        expected += [f"topic {k + 1} ({sizes[k]})", *topic]
    assert words == expected


def test_pixels_have_the_colour_of_their_cluster():
    shares = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]])
    weights = [1.0, 1.0, 0.0]
    display = PixelClustersDisplay(shares, (1, 3), weights=weights).plot()
    image = np.asarray(display.ax_.images[0].get_array())
    colours = matplotlib.colormaps["tab10"]
    np.testing.assert_allclose(image[0, 0, :3], colours(0)[:3])
    np.testing.assert_allclose(image[0, 1, :3], colours(1)[:3])
    assert image[0, 2, 3] == 0
    with pytest.raises(ValueError, match=r"shape must have 3 pixels: got \(2, 2\)"):
        PixelClustersDisplay(shares, (2, 2))


def test_pixels_of_an_estimator():
    rng = np.random.default_rng(0)
    model = LogisticPARCA(2, 0.1, random_state=0).fit(
        rng.random((30, 6)), np.arange(30) % 3
    )
    display = PixelClustersDisplay.from_estimator(model, (2, 3))
    assert display.ax_.images[0].get_array().shape == (2, 3, 4)
    np.testing.assert_array_equal(display.membership, model.membership_)
