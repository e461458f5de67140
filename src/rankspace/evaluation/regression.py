"""Regression test of two rankings: has a measure dropped by more than a tolerance?"""

from __future__ import annotations

from typing import Any, NamedTuple

from .report import Report, aligned, paired_values
from .significance import bootstrap_interval, weighted_mean

# With fewer even the same sign in all of them is no evidence: 0.5^4 > 0.05.
MIN_QUERIES = 5


class Regression(NamedTuple):
    """Outcome of a regression test.

    Parameters
    ----------
    outcome : {"worse", "inconclusive", "passed"}
        Worse: the drop exceeds the tolerance, and the one-sided 95 % bound of the change is below
        0. Inconclusive: the 95 % interval holds both no change and a drop of the tolerance.
    measure : str
        The measure that decides.
    change : float
        Mean change over the queries; negative if the second ranking is worse.
    interval : tuple of float
        95 % bootstrap confidence interval of the change.
    upper_bound : float
        One-sided 95 % bound of the change.
    tolerance : float
        The drop that is tolerated.
    n_queries : int
        Number of queries.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Report
    >>> from rankspace.evaluation import check_regression
    >>> before = Report({"map": np.linspace(0.3, 0.9, 20)})
    >>> after = Report({"map": np.linspace(0.2, 0.8, 20)})
    >>> check_regression(before, after, 0.01).outcome
    'worse'
    """

    outcome: str
    measure: str
    change: float
    interval: tuple[float, float]
    upper_bound: float
    tolerance: float
    n_queries: int

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python objects."""
        return {**self._asdict(), "interval": list(self.interval)}

    def __str__(self) -> str:
        low, high = self.interval
        change = (
            f"{self.measure} changed by {self.change:+.4f} (95 % interval {low:+.4f} to "
            f"{high:+.4f}, tolerance {self.tolerance:g}, {self.n_queries} queries)"
        )
        return f"{self.outcome}: {change}"


def check_regression(
    before: Report,
    after: Report,
    tolerance: float,
    *,
    measure: str | None = None,
    random_state: int = 0,
) -> Regression:
    """Test whether a ranking is worse than another by more than a tolerance.

    Parameters
    ----------
    before, after : Report
        Reports of the same queries.
    tolerance : float
        The drop that is tolerated.
    measure : str, optional
        The measure that decides; by default the first one of ``before``.
    random_state : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    Regression

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Report
    >>> from rankspace.evaluation import check_regression
    >>> scores = np.linspace(0, 1, 30)
    >>> print(check_regression(Report({"map": scores}), Report({"map": scores}), 0.01))
    passed: map changed by +0.0000 (95 % interval +0.0000 to +0.0000, tolerance 0.01, 30 queries)
    """
    if not 0 <= tolerance < float("inf"):
        raise ValueError(f"tolerance must be a number from 0 on: got {tolerance}.")
    name = measure or next(iter(before.values))
    if name not in before.values or name not in after.values:
        raise ValueError(f"measure must be in both reports: {name!r} is not.")
    after = aligned(before, after)
    old, new, weights = paired_values(before, after, name)
    if old.size < MIN_QUERIES:
        raise ValueError(
            f"a regression test needs at least {MIN_QUERIES} queries: got {old.size}."
        )
    gains = old - new if name in before.smaller_is_better else new - old
    change = weighted_mean(gains, weights)
    low, high = bootstrap_interval(gains, weights, random_state)
    # The upper end of a two-sided interval of 90 %.
    bound = bootstrap_interval(gains, weights, random_state, 0.9)[1]
    outcome = _outcome_of(change, (low, high), bound, tolerance)
    return Regression(outcome, name, change, (low, high), bound, tolerance, old.size)


def _outcome_of(
    change: float, interval: tuple[float, float], bound: float, tolerance: float
) -> str:
    low, high = interval
    if change < -tolerance and bound < 0:
        return "worse"
    if low < -tolerance and high >= 0:
        return "inconclusive"
    return "passed"
