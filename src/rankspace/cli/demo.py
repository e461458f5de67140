"""The command ``rankspace demo``: tune on a small collection and write a page."""

from __future__ import annotations

import argparse
from typing import Any

from .._engine.files import PathLike
from .options import add_verb, as_json
from .progress import Progress

MEASURES = "ndcg-linear@10 map r@10 mrr"
DEPTH = 100
N_FOLDS = 3


def add_demo(verbs: Any) -> None:
    """Add the verb ``demo``."""
    parser = add_verb(
        verbs,
        demo,
        "tune a metric on a small collection",
        "Learn a metric from scientific claims and the abstracts that support or refute them, "
        "evaluate it on other claims, print the tables and write an HTML page. Needs no download.",
        "rankspace demo --output demo.html",
    )
    parser.add_argument(
        "--output", default="rankspace-demo.html", help="HTML page to write"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed")


def demo(options: argparse.Namespace) -> str:
    """Tune a metric on a small collection."""
    from ..datasets import load_scifact_sample

    dataset = load_scifact_sample()
    with Progress("rankspace demo") as progress:
        tuned = _tune(dataset, options.seed, progress)
        progress.say("evaluating")
        comparison, page = _write_page(dataset, tuned, options.output)
    if options.json:
        return as_json(
            {
                "tuned": tuned.report.to_dict(),
                "comparison": comparison.to_dict(),
                "page": str(page.resolve()),
            }
        )
    n_train = len(dataset.splits["train"])
    n_test = len(dataset.splits["test"])
    return "\n".join(
        [
            f"{dataset!r}: scientific claims and abstracts that support or refute them.",
            f"Tuning on {n_train} claims, {N_FOLDS}-fold cross-validation:",
            "",
            str(tuned),
            "",
            f"The result on {n_test} other claims:",
            "",
            str(comparison),
            "",
            f"page: {page.resolve()}",
        ]
    )


def _tune(dataset: Any, seed: int, progress: Progress) -> Any:
    from ..tuning.tuner import tune

    train = dataset.part("train")
    return tune(
        train.X,
        train.relevance,
        queries=train.queries,
        n_folds=N_FOLDS,
        random_state=seed,
        progress=lambda step, fraction: progress.say(f"{fraction:4.0%} {step}"),
    )


def _write_page(dataset: Any, tuned: Any, path: PathLike) -> tuple[Any, Any]:
    """Evaluate the test queries, and write the page about them."""
    from ..display.page.report import write_report
    from ..evaluation.measures import compare, evaluate
    from ..search.index import Index

    test = dataset.part("test")
    rankings = (
        Index(test.X, similarity=tuned.report.similarity).rank(test.queries, DEPTH),
        Index(test.X, tuned.metric).rank(test.queries, DEPTH),
    )
    before = evaluate(rankings[0], test.relevance, MEASURES)
    after = evaluate(rankings[1], test.relevance, MEASURES)
    n_train = len(dataset.splits["train"])
    page = write_report(
        path,
        title="rankspace: scientific claims and abstracts that support or refute them",
        before=before,
        after=after,
        names=("unchanged", "tuned"),
        rankings=rankings,
        relevance=test.relevance,
        groups=_groups(dataset),
        n_extremes=3,
        describe_item=test.texts.__getitem__,
        describe_query=test.query_texts.__getitem__,
        notes=[
            f"Tuned on {n_train} other claims. {tuned.report.sentence}",
            "An abstract is known if it is relevant to one of these claims, otherwise new. Claims "
            "with relevant abstracts of both kinds count in the first row only.",
            "Claims (CC BY 4.0) and abstracts (ODC-By 1.0) of SciFact, Wadden et al. 2020; "
            "embeddings by all-MiniLM-L6-v2.",
        ],
    )
    return compare(before, after), page


def _groups(dataset: Any) -> dict[str, Any]:
    """Masks of the test queries for abstracts that training queries made known, and for new."""
    from ..relevance.splits import share_known

    known = share_known(dataset.part("train").relevance, dataset.part("test").relevance)
    return {"for known abstracts": known == 1, "for new abstracts": known == 0}
