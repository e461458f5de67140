"""The verbs that learn a metric and apply it: ``fit`` and ``transform``."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from .cluster import add_cluster, on_cluster
from .options import add_taught_data, add_verb, as_json, change
from .progress import Progress

# Words of the command, and the parameters of estimators that they are.
PARAMETERS = {"components": "n_components", "trade_off": "C", "measure": "measure"}


def add_fit(verbs: Any) -> None:
    """The words of ``fit``."""
    parser = add_verb(
        verbs,
        fit,
        "learn a metric",
        "Learn a metric from vectors and judgments with one method and given parameters, and "
        "write it to a file.",
        "rankspace fit scifact --split train --method listwise --output scifact.safetensors",
    )
    add_taught_data(parser)
    parser.add_argument(
        "--method",
        default="frml",
        help="an estimator in small letters, such as frml, mlr, "
        "mlrcv, listwise, lmnn, oasis",
    )
    parser.add_argument("--components", type=int, help="rank of the metric")
    parser.add_argument(
        "-C", dest="trade_off", type=float, help="weight of the judgments"
    )
    parser.add_argument(
        "--measure", help="what to optimise, or to stop by, such as map or ndcg@10"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="any other parameter of the estimator, such as max_iter=50",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of a learner that draws"
    )
    add_cluster(parser)
    parser.add_argument("--output", required=True, help="the metric file to write")


def fit(options: argparse.Namespace) -> str:
    """Learn a metric."""
    from .inputs import taught_by

    estimator = _estimator(options)
    with Progress("rankspace fit") as progress:
        progress.say(f"reading {options.data}")
        dataset = taught_by(options)
        X, judgments = (
            dataset.X,
            dataset.relevance if dataset.labels is None else dataset.labels,
        )
        name, start = type(estimator).__name__, time.perf_counter()
        progress.say(f"learning {name} on {X.shape[0]} items")
        with (
            warnings.catch_warnings(record=True) as caught,
            on_cluster(options, progress),
        ):
            warnings.simplefilter("always")
            estimator.fit(X, judgments, queries=dataset.queries)
    seconds = time.perf_counter() - start
    estimator.metric_.save(options.output)
    notes = list(dict.fromkeys(str(each.message) for each in caught))
    if options.json:
        parameters = {k: v for k, v in estimator.get_params().items() if _is_plain(v)}
        return as_json(
            {
                "method": name,
                "parameters": parameters,
                "shape": list(X.shape),
                "seconds": seconds,
                "notes": notes,
                "output": options.output,
            }
        )
    sentence = (
        f"fitted {name} on {X.shape[0]} items of {X.shape[1]} features in {seconds:.1f} s: wrote "
        f"{estimator.metric_!r} to {options.output}"
    )
    return "\n".join([sentence, *(f"note: {note}" for note in notes)])


def _estimator(options: argparse.Namespace) -> Any:
    """The estimator that a command names, with its parameters."""
    methods = _methods()
    if options.method not in methods:
        raise ValueError(
            f"--method must be one of {', '.join(methods)}: got {options.method!r}."
        )
    estimator = methods[options.method]()
    known = estimator.get_params()
    words = {
        PARAMETERS[n]: vars(options)[n]
        for n in PARAMETERS
        if vars(options)[n] is not None
    }
    chosen = {**words, **dict(map(change, options.set))}
    for parameter in chosen:
        if parameter not in known:
            raise ValueError(
                f"{type(estimator).__name__} has no parameter {parameter!r}: it has "
                f"{', '.join(known)}."
            )
    if "random_state" in known:
        chosen = {"random_state": options.seed, **chosen}
    return estimator.set_params(**chosen)


def _methods() -> dict[str, type]:
    """Every public estimator that learns, by its name in small letters."""
    import rankspace

    from ..learners.base import BaseRanker

    found = {}
    for name in rankspace.__all__:
        thing = getattr(rankspace, name)
        if (
            isinstance(thing, type)
            and issubclass(thing, BaseRanker)
            and thing is not BaseRanker
        ):
            found[name.removesuffix("Map").lower()] = thing
    return dict(sorted(found.items()))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | tuple)


def add_transform(verbs: Any) -> None:
    """The words of ``transform``."""
    parser = add_verb(
        verbs,
        transform,
        "map vectors by a metric",
        "Map the vectors of a file by a metric and write them to a .npy, block by block: a .npy "
        "may be larger than the memory. Search what comes out by Euclidean distance, or by "
        "inner product if the metric is bilinear.",
        "rankspace transform scifact.safetensors corpus.npy --output mapped.npy",
    )
    parser.add_argument("metric", metavar="METRIC", help="a metric file")
    parser.add_argument("vectors", metavar="VECTORS", help="a file of vectors")
    parser.add_argument(
        "--side",
        choices=("items", "queries"),
        default="items",
        help="what the vectors are; a linear metric maps both alike",
    )
    parser.add_argument("--block-size", type=int, default=8192, help="rows at a time")
    parser.add_argument("--output", required=True, help="the .npy file to write")


def transform(options: argparse.Namespace) -> str:
    """Map vectors by a metric."""
    import numpy as np

    from ..export import to_npy
    from ..metrics import load_metric

    metric: Any = load_metric(options.metric)
    with Progress("rankspace transform") as progress:
        to_npy(
            metric,
            options.vectors,
            options.output,
            side=options.side,
            block_size=options.block_size,
            progress=progress.show,
        )
    n_rows, width = np.load(options.output, mmap_mode="r").shape
    if options.json:
        return as_json({"shape": [n_rows, width], "output": options.output})
    return f"mapped {n_rows} vectors to {width} components: wrote {options.output}"
