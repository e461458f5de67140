"""The command ``rankspace fit``: learn a metric with one estimator."""

from __future__ import annotations

import argparse
import time
from typing import Any

from .card import fitted_card
from .options import (
    add_cluster,
    add_training_data,
    add_verb,
    as_json,
    warnings_as_notes,
)
from .parameters import check_parameters, parse_parameter
from .progress import Progress, on_cluster

# Options of the command, and the parameters of estimators that they set.
PARAMETERS = {
    "n_components": "n_components",
    "trade_off": "C",
    "measure": "measure",
    "sides": "sides",
}


def add_fit(verbs: Any) -> None:
    """Add the verb ``fit``."""
    parser = add_verb(
        verbs,
        fit,
        "learn a metric with one method",
        "Learn a metric from vectors and judgments with one method and given parameters, and "
        "write it to a file.",
        "rankspace fit scifact_sample --split train --method listwise --output my.safetensors",
    )
    add_training_data(parser)
    parser.add_argument(
        "--method",
        default="frml",
        help="estimator in lower case, such as frml, mlr, mlrcv, listwise, lmnn, oasis",
    )
    parser.add_argument("--n-components", type=int, help="rank of the metric")
    parser.add_argument(
        "-C",
        dest="trade_off",
        type=float,
        help="weight of the loss against the regulariser",
    )
    parser.add_argument(
        "--measure",
        help="measure to optimise or to stop early by, such as map or ndcg@10",
    )
    parser.add_argument(
        "--sides",
        help="which side a listwise map maps: shared, query or separate",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="any other parameter of the estimator, such as max_iter=50; none stands for None",
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed")
    add_cluster(parser)
    parser.add_argument("--output", required=True, help="metric file to write")


def fit(options: argparse.Namespace) -> str:
    """Learn a metric with one method."""
    from .inputs import split_notes, training_data

    estimator = _estimator(options)
    name = type(estimator).__name__
    with Progress("rankspace fit") as progress:
        progress.say(f"reading {options.data}")
        dataset = training_data(options)
        progress.say(f"fitting {name} to {dataset.X.shape[0]} items")
        start = time.perf_counter()
        with on_cluster(options, progress):
            y = dataset.relevance if dataset.labels is None else dataset.labels
            with warnings_as_notes() as notes:
                estimator.fit(dataset.X, y, queries=dataset.queries)
    seconds = time.perf_counter() - start
    notes = split_notes(options, dataset) + notes
    estimator.metric_.card = fitted_card(estimator, dataset, options)
    _keep_query_sample(estimator.metric_, dataset)
    estimator.metric_.save(options.output)
    n_items, n_features = dataset.X.shape
    if options.json:
        return as_json(
            {
                "method": name,
                "parameters": _plain_parameters(estimator),
                "shape": [n_items, n_features],
                "seconds": seconds,
                "notes": notes,
                "output": options.output,
            }
        )
    sentence = (
        f"fitted {name} on {n_items} items of {n_features} features in {seconds:.1f} s: wrote "
        f"{estimator.metric_!r} to {options.output}"
    )
    return "\n".join([sentence, *(f"note: {note}" for note in notes)])


def _keep_query_sample(metric: Any, dataset: Any) -> None:
    """Let a metric keep a sample of the queries; candidates have no queries with vectors."""
    from .._engine.projections import MAX_SAMPLE, evenly_spaced

    if dataset.queries is not None:
        metric.keep_query_sample(dataset.queries)
    elif not dataset.relevance.has_candidate_lists:
        items = dataset.relevance.query_items
        metric.keep_query_sample(
            dataset.X[items[evenly_spaced(len(items), MAX_SAMPLE)]]
        )


def _estimator(options: argparse.Namespace) -> Any:
    """The estimator of ``--method``, with its parameters."""
    methods = _methods()
    if options.method not in methods:
        raise ValueError(
            f"--method must be one of {', '.join(methods)}: got {options.method!r}."
        )
    estimator = methods[options.method]()
    known = estimator.get_params()
    parameters = {}
    if "random_state" in known:
        parameters["random_state"] = options.seed
    for option, parameter in PARAMETERS.items():
        value = getattr(options, option)
        if value is not None:
            parameters[parameter] = value
    parameters.update(parse_parameter(text) for text in options.set)
    return estimator.set_params(**check_parameters(type(estimator), parameters))


def _methods() -> dict[str, type]:
    """All public estimators by their names in lower case."""
    import rankspace

    from ..learners.base import BaseRanker
    from ..learners.linear import LinearRanker

    methods = {}
    for name in rankspace.__all__:
        thing = getattr(rankspace, name)
        is_estimator = isinstance(thing, type) and issubclass(thing, BaseRanker)
        if is_estimator and thing not in (BaseRanker, LinearRanker):
            methods[name.removesuffix("Map").lower()] = thing
    return dict(sorted(methods.items()))


def _plain_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that JSON can hold."""
    plain = (bool, int, float, str, list, tuple, type(None))
    parameters = estimator.get_params()
    return {name: v for name, v in parameters.items() if isinstance(v, plain)}
