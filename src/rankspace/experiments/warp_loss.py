"""What WARP minimises when it stops drawing early: the loss by rank, and what draws make of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..display.plots import curves
from ..learners.solvers.warp.sampling import rank_weights
from ._recipe import Recipe
from ._run import Jobs, Outcome, Table


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """The loss of each rank, cut below gamma, and its expectation over the draws."""
    n, gammas = recipe.options["n_irrelevant"], recipe.options["gammas"]
    shown, published = recipe.options["shown"], recipe.content["paper_values"]
    full = rank_weights("reciprocal", n)
    tables, views = [], {}
    for gamma in gammas:
        cut, mean = truncated(full, gamma), expected(full, gamma)
        known = dict(zip(published["rank"], published["expected"], strict=True))
        rows = [
            (
                str(k),
                f"{full[k]:.4f}",
                f"{cut[k]:.4f}",
                f"{mean[k]:.4f}",
                f"{known[k]:.4f}"
                if gamma == published["gamma"] and k in known
                else "–",
            )
            for k in shown
        ]
        tables.append(Table(f"gamma = {gamma}, {n} irrelevant items", HEADER, rows))
        ranks = np.arange(1, n + 1)
        lines = {"L": full, "cut at gamma": cut, "expected": mean}
        views[f"gamma = {gamma}"] = {
            name: (ranks, values[1:]) for name, values in lines.items()
        }
    pictures = {"loss": lambda: curves(views, "irrelevant items too near")}
    return Outcome(recipe, tables, list(recipe.content["notes"]), pictures)


HEADER = ["rank k", "L(k)", "cut at gamma", "expected", "specification"]


def truncated(levels: np.ndarray, gamma: float) -> np.ndarray:
    """``L_gamma``: no rank below gamma can be told from 0 by so few draws."""
    return np.where(np.arange(levels.size) >= gamma, levels, 0.0)


def expected(levels: np.ndarray, gamma: float) -> Any:
    """``E L_gamma(floor(n / N))`` for each number k of violators among n: N is geometric."""
    n = levels.size - 1
    share = np.arange(n + 1)[:, None] / n
    draws = np.arange(1, max(int(n // gamma), 1) + 1)
    return np.sum(share * (1 - share) ** (draws - 1) * levels[n // draws], axis=1)
