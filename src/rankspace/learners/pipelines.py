"""Separate queries in a scikit-learn Pipeline, which transforms ``X`` but not its other arguments.

Queries that have not been through the same steps as ``X`` look like any others to a learner, so it
looks for the pipeline that calls it.
"""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.pipeline import Pipeline

# Packages whose code runs between a pipeline and the learner that it calls.
BETWEEN = ("sklearn", "joblib", "rankspace")

IN_FIT = (
    "Enable metadata routing, sklearn.set_config(enable_metadata_routing=True), and name the "
    "queries: make_pipeline(..., transform_input=['queries']).fit(X, y, queries=Q)."
)
IN_SCORE = (
    "A Pipeline transforms queries in fit only: call pipeline[-1].score("
    "pipeline[:-1].transform(X), y, queries=pipeline[:-1].transform(Q))."
)


def check_same_steps(learner: Any, name: str = "queries") -> None:
    """Raise if a pipeline passes vectors that have not been through the same steps as ``X``."""
    step = learner
    for pipeline, method in _calling_pipelines(learner):
        named = name in (pipeline.transform_input or ())
        transformed = named and method != "score"
        if _has_steps_before(pipeline, step) and not transformed:
            raise ValueError(
                f"{name} must go through the same steps of a Pipeline as X: got {name} that it did "
                f"not transform. {advice(learner).replace('queries', name)}"
            )
        step = pipeline


def advice(learner: Any) -> str:
    """How to pass separate queries to this learner, alone or in the pipeline that calls it."""
    methods = [method for _, method in _calling_pipelines(learner)]
    if not methods:
        return "Pass their vectors as queries=...."
    return IN_SCORE if "score" in methods else IN_FIT


def _calling_pipelines(learner: Any) -> list[tuple[Pipeline, str]]:
    """Pipelines that are calling a learner, innermost first, and their methods that do so."""
    pipelines = []
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        package = frame.f_globals.get("__name__", "").split(".")[0]
        if isinstance(caller, Pipeline):
            pipelines.append((caller, frame.f_code.co_name))
        elif package not in BETWEEN and caller is not learner:
            # The user's own code, which may transform what it likes.
            break
        frame = frame.f_back
    return pipelines


def _has_steps_before(pipeline: Pipeline, step: Any) -> bool:
    """Whether a pipeline transforms ``X`` before it calls a step."""
    for _, estimator in pipeline.steps:
        if estimator is step:
            return False
        if estimator is not None and estimator != "passthrough":
            return True
    return False
