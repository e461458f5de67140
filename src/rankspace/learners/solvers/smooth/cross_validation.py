"""Cross-validation of a setting: ranking errors of held-out queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....evaluation.measures import evaluate
from ....relevance.splits import Split
from ....search.index import Index


class CrossValidated(NamedTuple):
    """Cross-validation of a setting: the mean error of held-out queries and its standard error."""

    setting: float
    error: float
    standard_error: float

    @classmethod
    def from_errors(cls, setting: float, errors: list[np.ndarray]) -> CrossValidated:
        """From the errors of the held-out queries of each fold."""
        values = np.concatenate(errors)
        if not np.isfinite(values).all():
            return cls(setting, float("inf"), float("nan"))
        standard_error = values.std() / np.sqrt(values.size)
        return cls(setting, float(values.mean()), float(standard_error))


def ranking_errors(split: Split, components: np.ndarray) -> np.ndarray:
    """Ranking errors of the held-out queries that have one; infinite under a map to zero."""
    if not components.any():
        return np.array([np.inf])
    items = np.asarray(split.X @ components.T)
    queries = np.asarray(split.points @ components.T)
    report = evaluate(Index(items).blocks(queries), split.judged, "ranking-error")
    errors = report.values["ranking-error"]
    return errors[np.isfinite(errors)]
