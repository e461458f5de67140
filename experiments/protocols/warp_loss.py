"""WARP loss with early stopping of the draws: the loss by rank, and its expectation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..pictures import curves
from ..recipe import Recipe
from ..run import Jobs, Outcome, Table

HEADER = ["rank k", "L(k)", "cut at gamma", "expected", "specification"]


def run(recipe: Recipe, jobs: Jobs) -> Outcome:
    """The loss of each rank, cut below gamma, and its expectation over the draws."""
    n = recipe.options["n_irrelevant"]
    full = rank_loss(n)
    ranks = np.arange(1, n + 1)
    tables, views = [], {}
    for gamma in recipe.options["gammas"]:
        lines = {
            "L": full,
            "cut at gamma": truncated(full, gamma),
            "expected": expected(full, gamma),
        }
        published = _published(recipe.content["paper_values"], gamma)
        rows = [_row(k, lines, published) for k in recipe.options["shown"]]
        tables.append(Table(f"gamma = {gamma}, {n} irrelevant items", HEADER, rows))
        views[f"gamma = {gamma}"] = {
            name: (ranks, values[1:]) for name, values in lines.items()
        }
    pictures = {"loss": partial(curves, views, "irrelevant items too near")}
    return Outcome(recipe, tables, list(recipe.content["notes"]), pictures)


def _published(values: Mapping[str, Any], gamma: float) -> dict[int, float]:
    """Expected loss of the specification by rank, if it has this gamma."""
    if gamma != values["gamma"]:
        return {}
    return dict(zip(values["rank"], values["expected"], strict=True))


def _row(
    k: int, lines: Mapping[str, np.ndarray], published: Mapping[int, float]
) -> tuple[str, ...]:
    shown = "–"
    if k in published:
        shown = f"{published[k]:.4f}"
    return (str(k), *(f"{values[k]:.4f}" for values in lines.values()), shown)


def rank_loss(n: int) -> np.ndarray:
    """``L(k)``, the sum of 1/i up to k, for each k from 0 to n."""
    return np.concatenate(([0.0], np.cumsum(1 / np.arange(1, n + 1))))


def truncated(levels: np.ndarray, gamma: float) -> np.ndarray:
    """``L_gamma``: so few draws cannot tell a rank below gamma from 0."""
    return np.where(np.arange(levels.size) >= gamma, levels, 0.0)


def expected(levels: np.ndarray, gamma: float) -> Any:
    """``E L_gamma(floor(n / N))`` for each number k of violators among n: N is geometric."""
    n = levels.size - 1
    share = np.arange(n + 1)[:, None] / n
    draws = np.arange(1, max(int(n // gamma), 1) + 1)
    return np.sum(share * (1 - share) ** (draws - 1) * levels[n // draws], axis=1)
