"""The thirteen labelled sets that learners are compared on, and how each is prepared.

Large sets are 1,000 random rows. Principal components and scales are those of the training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from experiments.data.images import fetch_umist
from experiments.data.texts import fetch_twenty_newsgroups
from rankspace import datasets

SAMPLE = 1000


class Problem(NamedTuple):
    """Labelled rows, and the steps that prepare them once they are fitted to training rows."""

    X: Any
    y: np.ndarray
    steps: Pipeline

    def prepared(self) -> tuple[np.ndarray, np.ndarray]:
        """All rows, prepared by themselves."""
        return self.steps.fit_transform(self.X), self.y


def _iris() -> Any:
    return load_iris(return_X_y=True)


def _labelled(fetch: Callable[[], Any]) -> Callable[[], Any]:
    def rows() -> Any:
        dataset = fetch()
        return dataset.X, dataset.labels

    return rows


def _standard(*steps: Any) -> Callable[[], Pipeline]:
    return lambda: make_pipeline(*steps, StandardScaler())


def _raw(*steps: Any) -> Callable[[], Pipeline]:
    return lambda: make_pipeline(*steps or [FunctionTransformer()])


ROWS = {
    "iris": _iris,
    "wine": _labelled(datasets.load_wine),
    "WDBC": _labelled(datasets.load_wdbc),
    "balance": _labelled(datasets.load_balance_scale),
    "ionosphere": _labelled(datasets.fetch_ionosphere),
    "digits": _labelled(datasets.load_digits),
    "UMIST": _labelled(fetch_umist),
    "USPS": _labelled(datasets.fetch_usps),
    "IsoLet": _labelled(datasets.fetch_isolet),
    "News": _labelled(fetch_twenty_newsgroups),
}
STEPS = {
    "UMIST": _standard(PCA(60, random_state=0)),
    "IsoLet": _standard(PCA(100, random_state=0)),
    "News": _standard(TruncatedSVD(50, random_state=0)),
    "raw wine": _raw(),
    "raw WDBC": _raw(),
    "IsoLet, 170": _raw(PCA(170, random_state=0)),
}
SETS = [*ROWS, "raw wine", "raw WDBC", "IsoLet, 170"]
STANDARDISED = list(ROWS)


def problem(name: str) -> Problem:
    """A set by its name."""
    base = name.removeprefix("raw ").split(",")[0]
    X, y = ROWS[base]()
    rows = np.random.default_rng(0).permutation(len(y))[:SAMPLE]
    steps = STEPS.get(name, _standard())
    return Problem(X[rows].astype(float), np.asarray(y)[rows], steps())
