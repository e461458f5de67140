"""Pictures: what is drawn is what the numbers say."""

import sys

import numpy as np
import pytest

from rankspace import LMNN, MLR, Euclidean, LinearMetric
from rankspace.datasets import load_wine

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("agg")

from rankspace.plots import (  # noqa: E402
    ConvergenceDisplay,
    SpectrumDisplay,
    curves,
    grouped_bars,
    n_directions,
    panels,
)


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
        with pytest.raises(ValueError, match=r"history_ of bounds, .*: got (Euclidean|LMNN)\(\)"):
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
    [([4, 3, 2, 1], 0.4, 1), ([4, 3, 2, 1], 0.41, 2), ([1, 0, 0], 1.0, 1), ([0, 0], 0.95, 0),
     ([1, 1, 1, 1], 0.95, 4), ([1, 1, 1, 1], 1.0, 4)],
)  # fmt: skip
def test_directions_that_hold_a_share(spectrum, mass, n):
    assert n_directions(spectrum, mass) == n


def test_a_zero_metric_has_a_picture():
    assert SpectrumDisplay.from_metric(LinearMetric([[0.0, 0.0]])).n_directions_ == 0


def test_bars_stand_side_by_side():
    figure = grouped_bars(["a", "b"], {"x": [1.0, 2.0], "y": [3.0, 4.0]}, "size")
    bars = figure.axes[0].patches
    assert [bar.get_height() for bar in bars] == [1.0, 2.0, 3.0, 4.0]
    lefts = sorted(bar.get_x() for bar in bars)
    assert np.diff(lefts).min() > 0.3


def test_panels_show_every_point_in_its_colour():
    points = np.arange(8.0).reshape(4, 2)
    figure = panels({"before": points, "after": -points}, [0, 1, 0, 1])
    before, after = figure.axes
    np.testing.assert_array_equal(before.lines[1].get_xydata(), points[1::2])
    np.testing.assert_array_equal(after.lines[0].get_xydata(), -points[::2])
    assert [ax.get_title() for ax in figure.axes] == ["before", "after"]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'rankspace\[plot\]'"):
        SpectrumDisplay([1.0]).plot()
    with pytest.raises(ImportError, match=r"rankspace\[plot\]"):
        panels({"a": [[0.0, 1.0]]}, [0])


def test_curves_have_a_line_for_each_name():
    ax = curves([1, 10], {"a": [0.1, 0.2], "b": [0.3, np.nan]}, "n", "MAP", log=True).axes[0]
    assert [line.get_label() for line in ax.lines] == ["a", "b"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.1, 0.2])
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_ylabel()) == ("log", "linear", "MAP")
