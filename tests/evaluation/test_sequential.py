"""The sequential test of wins against integrals, its martingale property, and its errors."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from rankspace.evaluation import check_preference
from rankspace.evaluation.sequential import PRIOR, confidence_sequence, log_martingale


def integral(wins, losses, share):
    """The martingale by numerical integration over the prior."""

    def likelihood(p):
        ratio = (p / share) ** wins * ((1 - p) / (1 - share)) ** losses
        return ratio * beta.pdf(p, PRIOR, PRIOR)

    return quad(likelihood, 0, 1, epsabs=0, limit=200)[0]


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (3, 9), (40, 20)])
@pytest.mark.parametrize("share", [0.5, 0.3])
def test_the_martingale_is_the_integral(wins, losses, share):
    found = np.exp(log_martingale(wins, losses, share))
    assert found == pytest.approx(integral(wins, losses, share), rel=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_its_mean_stays_the_same(share):
    for wins, losses in [(0, 0), (2, 7), (30, 11)]:
        now = np.exp(log_martingale(wins, losses, share))
        won = np.exp(log_martingale(wins + 1, losses, share))
        lost = np.exp(log_martingale(wins, losses + 1, share))
        assert share * won + (1 - share) * lost == pytest.approx(now)


@pytest.mark.parametrize(("wins", "losses"), [(3, 9), (0, 12), (12, 0), (400, 300)])
def test_the_interval_holds_the_shares_that_are_not_ruled_out(wins, losses):
    low, high = confidence_sequence(wins, losses, 0.05)
    shares = np.linspace(0.001, 0.999, 999)
    evidence = np.array([log_martingale(wins, losses, share) for share in shares])
    kept = shares[evidence < np.log(20)]
    assert low == pytest.approx(kept.min(), abs=0.0011)
    assert high == pytest.approx(kept.max(), abs=0.0011)


def test_outcomes():
    tested = check_preference(300, 200)
    assert tested.outcome == "better"
    assert check_preference(200, 300).outcome == "worse"
    assert check_preference(30, 20).outcome == "undecided"
    low, high = tested.interval
    assert 0.5 < low < 0.6 < high
    assert check_preference(200, 300).p_value == pytest.approx(tested.p_value)
    assert str(tested).startswith("better: 300 of 500 impressions won (60.0 %, ")
    nothing = check_preference(0, 0)
    assert (nothing.outcome, nothing.interval) == ("undecided", (0.0, 1.0))
    assert str(nothing) == "undecided: no impression has a winner yet"
    assert nothing.p_value == 1
    assert nothing.to_dict()["interval"] == [0.0, 1.0]


def test_looking_always_keeps_the_promise():
    rng = np.random.default_rng(0)
    wins = np.cumsum(rng.random((400, 2000)) < 0.5, axis=1)
    losses = np.arange(1, 2001) - wins
    false = (log_martingale(wins, losses, 0.5) >= np.log(10)).any(axis=1)
    # At most 40 are promised at the level 0.1; more than 60 have a probability below 0.001.
    assert 0 < false.sum() <= 60


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ((1, -1), {}, "must not be negative: got 1 and -1"),
        ((1, 1), {"level": 0}, "level must be between 0 and 1: got 0"),
        ((1.5, 1), {}, "n_wins and n_losses must"),
    ],
)
def test_bad_arguments(counts, options, message):
    with pytest.raises(ValueError, match=message):
        check_preference(*counts, **options)
