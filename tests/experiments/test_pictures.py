"""Plots of the experiments, and that they are written small."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("agg")

import matplotlib.pyplot as plt  # noqa: E402

from experiments.pictures import curves, grouped_bars, save_png  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_bars_stand_side_by_side():
    figure = grouped_bars(["a", "b"], {"x": [1.0, 2.0], "y": [3.0, 4.0]}, "size")
    bars = figure.axes[0].patches
    assert [bar.get_height() for bar in bars] == [1.0, 2.0, 3.0, 4.0]
    lefts = sorted(bar.get_x() for bar in bars)
    assert np.diff(lefts).min() > 0.3


def test_curves_have_a_line_for_each_name():
    lines = {"a": ([1, 10], [0.1, 0.2]), "b": ([1, 10], [0.3, np.nan])}
    drawn = curves({"MAP": lines, "seconds": {}}, "n", log=("seconds",), log_x=True)
    first, second = drawn.axes
    assert [line.get_label() for line in first.lines] == ["a", "b"]
    np.testing.assert_array_equal(first.lines[0].get_ydata(), [0.1, 0.2])
    assert (first.get_xscale(), first.get_yscale(), first.get_title()) == (
        "log",
        "linear",
        "MAP",
    )
    assert second.get_yscale() == "log"


def test_a_picture_is_a_small_file_and_its_figure_is_closed(tmp_path):
    figure = grouped_bars(["a", "b"], {"x": [1.0, 2.0], "y": [3.0, 4.0]}, "size")
    save_png(figure, tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "bars.png").stat().st_size < 10_000
    assert not plt.get_fignums()
