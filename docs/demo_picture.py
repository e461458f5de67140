"""Draws `_static/demo.svg`: what `rankspace demo` measures, before and after.

Run it from a checkout, with the extra `plot`: python docs/demo_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from rankspace import Index, Report, compare, evaluate, tune
from rankspace.datasets import load_scifact_sample
from rankspace.relevance.splits import share_known

MEASURE = "ndcg-linear@10"
COLOURS = {"better": "#0072b2", "worse": "#d55e00"}  # distinct for the colour-blind


def reports() -> tuple[Report, Report, dict[str, np.ndarray]]:
    """Reports before and after on the test claims, and the groups of these claims."""
    sample = load_scifact_sample()
    train, test = sample.part("train"), sample.part("test")
    tuned = tune(
        train.X, train.relevance, queries=train.queries, n_folds=3, random_state=0
    )
    before = Index(test.X, similarity="cosine").rank(test.queries, 100)
    after = Index(test.X, tuned.metric).rank(test.queries, 100)
    known = share_known(train.relevance, test.relevance)
    groups = {
        "all held-out claims": np.full(known.shape, True),
        "abstract judged before": known == 1,
        "abstract new": known == 0,
    }
    judged = test.relevance
    return (
        evaluate(before, judged, MEASURE),
        evaluate(after, judged, MEASURE),
        groups,
    )


def draw_bars(axes: plt.Axes, before: Report, after: Report, groups: dict) -> None:
    """The mean of each group, before and after."""
    for place, (name, members) in enumerate(groups.items()):
        values = [report.values[MEASURE][members].mean() for report in (before, after)]
        axes.plot(values, [place, place], color="0.75", linewidth=3, zorder=1)
        axes.scatter(values[0], place, s=70, color="0.45", zorder=2)
        axes.scatter(values[1], place, s=70, color=COLOURS["better"], zorder=2)
        middle = (values[0] + values[1]) / 2
        label = f"{name} ({members.sum()}): {values[0]:.3f} → {values[1]:.3f}"
        axes.annotate(
            label, (middle, place - 0.22), ha="center", va="bottom", fontsize=9
        )
    axes.set_ylim(len(groups) - 0.6, -0.7)
    axes.set_yticks([])
    axes.set_xlim(0.55, 1.05)
    axes.set_xlabel("NDCG@10, before (grey) and after (blue)")
    axes.set_title("300 claims that tuning never saw", fontsize=10)


def draw_gains(axes: plt.Axes, before: Report, after: Report) -> None:
    """The gain of every claim, sorted."""
    gains = np.sort(after.values[MEASURE] - before.values[MEASURE])[::-1]
    places = np.arange(gains.size)
    for name, sign in (("better", 1), ("worse", -1)):
        part = sign * gains > 1e-12
        label = f"{part.sum()} {name}"
        axes.vlines(places[part], 0, gains[part], color=COLOURS[name], label=label)
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set_xlabel("claims, sorted by gain")
    axes.set_ylabel("gain in NDCG@10")
    axes.set_title("Who gains, and who loses", fontsize=10)
    axes.set_xlim(-2, gains.size + 1)
    axes.legend(frameon=False)


def draw(path: Path) -> None:
    """Write the picture."""
    before, after, groups = reports()
    print(compare(before, after))
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "demo"})
    plt.rcParams["font.family"] = "sans-serif"
    figure, axes = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
    draw_bars(axes[0], before, after, groups)
    draw_gains(axes[1], before, after)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].spines["left"].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_name("_static") / "demo.svg")
