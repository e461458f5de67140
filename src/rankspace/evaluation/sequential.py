"""Sequential test of wins: which of two rankings users prefer, valid at any time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..relevance.rows import whole_numbers

# The alternative is a share of wins drawn from a beta distribution with these two parameters: a
# standard deviation of 6 points about a half, as of rankings that differ noticeably.
PRIOR = 30.0


class Preference(NamedTuple):
    """Outcome of a sequential test of wins.

    Parameters
    ----------
    outcome : {"better", "worse", "undecided"}
        Whether the other ranking is preferred to the first.
    share : float
        Its share of the wins.
    interval : tuple of float
        Confidence sequence of this share: it holds the true share at all checks together with the
        promised probability.
    p_value : float
        The anytime-valid p-value of no preference.
    n_wins, n_losses : int
        Impressions that the other ranking has won and lost.
    level : float
        Promised rate of errors.

    Examples
    --------
    >>> from rankspace.evaluation import check_preference
    >>> print(check_preference(60, 40))
    undecided: 60 of 100 impressions won (60.0 %, at any time 45.5 % to 73.4 %, p = 0.464)
    """

    outcome: str
    share: float
    interval: tuple[float, float]
    p_value: float
    n_wins: int
    n_losses: int
    level: float

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python objects."""
        return {**self._asdict(), "interval": list(self.interval)}

    def __str__(self) -> str:
        if not self.n_wins + self.n_losses:
            return f"{self.outcome}: no impression has a winner yet"
        low, high = self.interval
        return (
            f"{self.outcome}: {self.n_wins} of {self.n_wins + self.n_losses} impressions won "
            f"({self.share:.1%}, at any time {low:.1%} to {high:.1%}, p = {self.p_value:.3f})"
        ).replace("%", " %")


def check_preference(n_wins: int, n_losses: int, *, level: float = 0.05) -> Preference:
    """Test by the wins of an interleaving which ranking is preferred, valid at any time.

    The test is a mixture martingale: however often it is made, and whenever the experiment
    is stopped, the probability of ever finding a preference where there is none is at most
    ``level``. Impressions without a winner do not count.

    Parameters
    ----------
    n_wins, n_losses : int
        Impressions that the other ranking has won and lost so far: in `Interleaving.wins`, the
        numbers of 1 and of -1.
    level : float, default=0.05
        Rate of errors.

    Returns
    -------
    Preference

    Examples
    --------
    >>> from rankspace.evaluation import check_preference
    >>> check_preference(30, 20).outcome
    'undecided'
    >>> check_preference(300, 200).outcome
    'better'
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1: got {level}.")
    counts = whole_numbers([n_wins, n_losses], "n_wins and n_losses")
    if counts.min() < 0:
        raise ValueError(
            f"n_wins and n_losses must not be negative: got {n_wins} and {n_losses}."
        )
    wins, losses = counts.tolist()
    log_evidence = float(log_martingale(wins, losses, 0.5))
    p_value = float(np.exp(-max(0.0, log_evidence)))
    share = wins / (wins + losses) if wins + losses else float("nan")
    outcome = "undecided"
    if p_value <= level:
        outcome = "better" if wins > losses else "worse"
    interval = confidence_sequence(wins, losses, level)
    return Preference(outcome, share, interval, p_value, wins, losses, level)


def log_martingale(wins: Any, losses: Any, share: float) -> np.ndarray:
    """Logarithm of the martingale of wins and losses if the true share of wins is this one.

    The likelihood under shares drawn from the prior, over the likelihood under the true one. It
    begins at 1 and never has a larger mean, so that it ever exceeds 1 / level with probability
    ``level`` at most (Ville's inequality).
    """
    from scipy.special import betaln, xlog1py, xlogy

    wins = np.asarray(wins, dtype=float)
    losses = np.asarray(losses, dtype=float)
    mixture = betaln(PRIOR + wins, PRIOR + losses) - betaln(PRIOR, PRIOR)
    evidence: np.ndarray = mixture - xlogy(wins, share) - xlog1py(losses, -share)
    return evidence


def confidence_sequence(wins: int, losses: int, level: float) -> tuple[float, float]:
    """The shares of wins that the martingale does not rule out."""
    from scipy.optimize import brentq

    if not wins + losses:
        return 0.0, 1.0

    def excess(share: float) -> float:
        return float(log_martingale(wins, losses, share)) + np.log(level)

    # The evidence falls to its minimum at the observed share, and rises again.
    centre = wins / (wins + losses)
    tiny = np.finfo(float).tiny
    low, high = 0.0, 1.0
    if wins and excess(tiny) > 0:
        low = brentq(excess, tiny, centre)
    if losses and excess(1 - np.finfo(float).epsneg) > 0:
        high = brentq(excess, centre, 1 - np.finfo(float).epsneg)
    return low, high
