"""Draws `tune-path.svg`: held-out values along the path of regularisation, and the choice.

Run it from a checkout, with the extra `plot`: python docs/tune_path.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from rankspace import tune
from rankspace.datasets import load_scifact_sample

COLOURS = {"known": "#0072b2", "new": "#d55e00"}  # distinct for the colour-blind


def draw(path: Path) -> None:
    """Write the picture."""
    train = load_scifact_sample().part("train")
    tuned = tune(
        train.X, train.relevance, queries=train.queries, n_folds=3, random_state=0
    )
    rows = tuned.report.path
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "tune"})
    figure, axes = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    places = range(len(rows))
    chosen = next(place for place, row in enumerate(rows) if row.chosen)
    for name, colour in COLOURS.items():
        values = [getattr(row, name) for row in rows]
        label = f"{name} documents"
        axes.plot(places, values, "o-", color=colour, label=label, markersize=4)
        axes.plot(chosen, values[chosen], "o", color=colour, markersize=10)
        axes.axhline(values[0], color=colour, linewidth=0.8, linestyle=":")
    axes.axvline(chosen, color="0.6", linewidth=0.8, zorder=0)
    axes.annotate(
        "chosen", (chosen, 0.84), ha="right", xytext=(-6, 0), textcoords="offset points"
    )
    names = [
        row.strength.removesuffix(" / queries").removeprefix("reg ") for row in rows
    ]
    axes.set_xticks(list(places), names)
    axes.set_xlabel("reg x training queries: strong to weak")
    axes.set_ylabel("held-out NDCG@10")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_name("tune-path.svg"))
