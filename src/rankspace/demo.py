"""The main job in one call: choose a metric on held-out data, judge it on other held-out data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._text import PathLike
from .datasets import Dataset
from .frml import FRML
from .measures import Comparison, Report, compare, evaluate
from .metric import LinearMetric
from .mlr import MLR
from .ranking import Ranking
from .relevance import Relevance
from .report import write_report
from .search import Index

MEASURES = "map ndcg@10 p@10 auc"
MAX_ROWS = 3000  # of a larger set a sample is shown, for time


def candidates(n_classes: int, random_state: int) -> dict[str, Any]:
    """Our learners and two of scikit-learn's maps, each on scaled features."""
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    maps = {
        "PCA": PCA(0.9),
        "LDA": LinearDiscriminantAnalysis(n_components=n_classes - 1),
        "MLR": MLR(measure="auc"),
        "FRML": FRML(random_state=random_state, max_triplets=100_000),
    }
    return {name: make_pipeline(StandardScaler(), step) for name, step in maps.items()}


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found, and where its page is."""

    comparison: Comparison
    chosen: str
    validation: dict[str, float]
    page: Path
    n_queries: int


@dataclass(frozen=True)
class Part:
    """Items to search and queries of known class."""

    items: np.ndarray
    item_labels: np.ndarray
    queries: np.ndarray
    query_labels: np.ndarray

    @property
    def relevance(self) -> Relevance:
        """Queries want items of their class."""
        return Relevance.from_labels(self.item_labels, query_labels=self.query_labels)

    def rank(self, metric: LinearMetric) -> Ranking:
        """All items for each query."""
        return Index(self.items, metric).rank(self.queries)


def run_demo(
    dataset: Dataset,
    page: PathLike,
    *,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> DemoResult:
    """Learn on one part, choose on the second, judge on the third, and write a page about it.

    Parameters
    ----------
    dataset : Dataset
        A set with class labels.
    page : path
        Where the HTML page goes.
    random_state : int, default=0
        Seed of the split and of the learners.
    progress : callable, optional
        Told the name of each step.

    Returns
    -------
    DemoResult
    """
    if dataset.labels is None or not isinstance(dataset.X, np.ndarray):
        raise ValueError(
            f"the demonstration needs dense vectors with classes: {dataset.name} has none."
        )
    train, validation, test = _split(dataset.X, dataset.labels, random_state)
    before = LinearMetric.from_transformer(_scaler(train.items))
    scores, metrics = {}, {}
    for name, learner in candidates(np.unique(dataset.labels).size, random_state).items():
        progress(f"learning {name}")
        metrics[name] = LinearMetric.from_transformer(learner.fit(train.items, train.item_labels))
        ranking = validation.rank(metrics[name])
        scores[name] = evaluate(ranking, validation.relevance, "map").means["map"]
    chosen = max(scores, key=lambda name: scores[name])
    progress("judging")
    rankings = (test.rank(before), test.rank(metrics[chosen]))
    reports = [evaluate(ranking, test.relevance, MEASURES) for ranking in rankings]
    others = {
        name: evaluate(test.rank(metric), test.relevance, MEASURES)
        for name, metric in metrics.items()
        if name != chosen
    }
    path = _write(page, dataset, test, (before, metrics[chosen]), rankings, reports, chosen, others)
    return DemoResult(compare(*reports), chosen, scores, path, test.queries.shape[0])


def _split(X: np.ndarray, labels: np.ndarray, seed: int) -> tuple[Part, Part, Part]:
    """Half of the rows to learn and search, a quarter each of queries to choose and to judge by."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(X))
    if rows.size > MAX_ROWS:
        rows, _ = train_test_split(rows, train_size=MAX_ROWS, stratify=labels, random_state=seed)
    train, rest = train_test_split(rows, test_size=0.5, stratify=labels[rows], random_state=seed)
    choose, judge = train_test_split(rest, test_size=0.5, stratify=labels[rest], random_state=seed)
    first, second, third = (
        Part(X[train], labels[train], X[part], labels[part]) for part in (train, choose, judge)
    )
    return first, second, third


def _scaler(X: np.ndarray) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit(X)


def flat_view(metric: LinearMetric, items: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The two directions in which the mapped items spread most, of other points."""
    from sklearn.decomposition import PCA

    pca = PCA(min(2, len(metric.components))).fit(metric.transform(items))
    view = pca.transform(metric.transform(points))
    return np.pad(view, ((0, 0), (0, 2 - view.shape[1])))


def _write(
    page: PathLike, dataset: Dataset, test: Part, metrics: tuple[LinearMetric, LinearMetric],
    rankings: tuple[Ranking, Ranking], reports: list[Report], chosen: str,
    others: dict[str, Report],
) -> Path:  # fmt: skip
    before, after = (flat_view(metric, test.items, test.queries) for metric in metrics)
    return write_report(
        page,
        title=f"rankspace: {dataset.name}",
        before=reports[0],
        after=reports[1],
        names=("Euclidean", chosen),
        rankings=rankings,
        relevance=test.relevance,
        views=(before, after),
        view_labels=test.query_labels,
        describe_item=lambda item: f"class {test.item_labels[item]}, item {item}",
        describe_query=lambda query: f"class {test.query_labels[query]}",
        notes=(
            f"{chosen} was chosen among {', '.join([chosen, *others])} on other held-out queries.",
            f"{len(test.items)} items are searched; of larger sets a sample of {MAX_ROWS} rows is "
            "shown.",
            "The pictures of held-out points show the two directions in which the mapped items "
            "spread most.",
        ),
        others=others,
    )
