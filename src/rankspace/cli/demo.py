"""The main job on a small collection: tune on some queries, judge on others, write a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._engine.files import PathLike
from ..datasets import Dataset, load_scifact_sample
from ..display.page.report import write_report
from ..evaluation.measures import Comparison, compare, evaluate
from ..relevance.splits import hold_out
from ..search.index import Index
from ..tuning.trials import seen_queries
from ..tuning.tuner import Tuned, tune

MEASURES = "ndcg-linear@10 map r@10 mrr"
DEPTH = 100


@dataclass(frozen=True)
class DemoResult:
    """What tuning found, what it is worth on queries that it never saw, and where its page is."""

    dataset: Dataset
    tuned: Tuned
    comparison: Comparison
    page: Path


def run_demo(
    page: PathLike,
    *,
    random_state: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> DemoResult:
    """Tune on claims of the SciFact sample, judge the metric on others, and write a page about it.

    Parameters
    ----------
    page : path
        Where the HTML page goes.
    random_state : int, default=0
        Seed of the folds.
    progress : callable, optional
        Told the name of each step.

    Returns
    -------
    DemoResult
    """
    dataset = load_scifact_sample()
    train, test = dataset.part("train"), dataset.part("test")
    assert test.relevance is not None
    tuned = tune(
        train.X,
        train.relevance,
        queries=train.queries,
        methods=["listwise"],
        n_folds=3,
        random_state=random_state,
        progress=lambda step, share: progress(f"trying {step}"),
    )
    progress("judging")
    rankings = (
        Index(test.X).rank(test.queries, DEPTH),
        Index(test.X, tuned.metric).rank(test.queries, DEPTH),
    )
    before, after = (
        evaluate(ranking, test.relevance, MEASURES) for ranking in rankings
    )
    seen = _seen(dataset)
    texts, claims = test.texts or [], test.query_texts or []
    path = write_report(
        page,
        title="rankspace: scientific claims and the abstracts that settle them",
        before=before,
        after=after,
        names=("as they are", "tuned"),
        rankings=rankings,
        relevance=test.relevance,
        groups={"with seen relevant items": seen, "with new relevant items": ~seen},
        n_extremes=3,
        describe_item=texts.__getitem__,
        describe_query=claims.__getitem__,
        notes=[
            f"Tuned on {len(train.queries)} other claims: {tuned.report.verdict}",
            "A relevant abstract is seen if a claim that was learned from has it too, else new.",
            "Claims (CC BY 4.0) and abstracts (ODC-By 1.0) of SciFact, Wadden et al. 2020; "
            "embeddings by all-MiniLM-L6-v2.",
        ],
    )
    return DemoResult(dataset, tuned, compare(before, after), path)


def _seen(dataset: Dataset) -> np.ndarray:
    """Test queries with a relevant item that the training judgments named."""
    train, test = dataset.splits["train"], dataset.splits["test"]
    assert dataset.relevance is not None
    split = hold_out(dataset.X, dataset.relevance, dataset.queries, train, test)
    return seen_queries([split], [np.arange(len(test))], len(test))
