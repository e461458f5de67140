"""The parameter ``scaling`` of learners: whether features are standardised before learning."""

from __future__ import annotations

from functools import cache
from typing import Any

from .base import BaseRanker, logger
from .solvers.scaling import FACTOR, Scaling


def chosen_scaling(
    learner: BaseRanker, X: Any, *, rounded: bool = False, fixed: str | None = None
) -> Scaling:
    """The scaling of training rows that ``learner.scaling`` asks for, noted in ``scaling_``.

    ``fixed`` says why features cannot be standardised, if so: then "auto" does not, and "standard"
    is an error.
    """
    kind: Any = learner.scaling
    if fixed is not None and kind == "standard":
        raise ValueError(
            f"scaling='standard' is impossible {fixed}. Pass scaling='none'."
        )
    if fixed is not None and kind == "auto":
        kind = "none"
    scaling = Scaling.of(X, rounded=rounded, kind=kind)
    learner.scaling_ = scaling.kind
    if kind == "auto" and scaling.kind == "standard":
        say_once(type(learner).__name__)
    return scaling


@cache
def say_once(name: str) -> None:
    """Log what "auto" did, the first time that a learner does it."""
    logger.warning(
        "%s standardises the features, since the largest standard deviation is more than %g times "
        "the median one. scaling='standard' does so without this message, scaling='none' never.",
        name,
        FACTOR,
    )


def scaling_card(learner: BaseRanker) -> dict[str, str]:
    """What the parameters of a metric say of the scaling: something only if there was one."""
    if getattr(learner, "scaling_", "none") == "none":
        return {}
    return {"scaling": learner.scaling_}
