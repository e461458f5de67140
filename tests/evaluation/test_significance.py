"""Means over queries that depend on each other, beside plain loops and simulations."""

import numpy as np
import pytest
from scipy import stats

from rankspace.evaluation.significance import (
    ClusteredMean,
    clustered_mean,
    queries_needed,
)

SIZES = (1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 10, 12)  # of twelve clusters


def robust_error(values, clusters):
    """The cluster-robust (CR1) standard error of an intercept, as the sandwich of a regression."""
    ones = np.ones((values.size, 1))
    bread = np.linalg.inv(ones.T @ ones)
    residuals = values - values.mean()
    meat = np.zeros((1, 1))
    for cluster in np.unique(clusters):
        score = ones[clusters == cluster].T @ residuals[clusters == cluster]
        meat += np.outer(score, score)
    n = np.unique(clusters).size
    return float(np.sqrt((bread @ meat @ bread)[0, 0] * n / (n - 1)))


def test_standard_error_is_the_cluster_robust_one(rng):
    clusters = rng.permutation(np.repeat(np.arange(12) * 7, SIZES))
    values = rng.normal(size=clusters.size) + 0.3 * (clusters % 3)
    found = clustered_mean(values, clusters)
    assert found.mean == pytest.approx(values.mean())
    assert found.standard_error == pytest.approx(robust_error(values, clusters))
    assert (found.n, found.n_clusters) == (64, 12)
    low, high = found.interval
    half = stats.t.ppf(0.975, 11) * found.standard_error
    assert (low, high) == pytest.approx((found.mean - half, found.mean + half))


def test_clusters_of_one_query_give_the_usual_t_test(rng):
    values = 0.2 + rng.normal(size=40)
    found = clustered_mean(values, np.arange(40))
    expected = stats.ttest_1samp(values, 0, alternative="greater")
    assert found.p_value == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx(
        tuple(stats.ttest_1samp(values, 0).confidence_interval())
    )


def test_queries_without_a_value_do_not_count(rng):
    clusters = np.repeat(np.arange(6), 5)
    values = rng.normal(size=30)
    values[clusters == 2] = np.nan
    values[[0, 7]] = np.nan
    counted = ~np.isnan(values)
    assert clustered_mean(values, clusters) == clustered_mean(
        values[counted], clusters[counted]
    )
    nothing = clustered_mean(np.full(3, np.nan), np.arange(3))
    assert (nothing.n, nothing.n_clusters) == (0, 0)
    assert np.isnan(nothing.mean)
    one = clustered_mean(np.ones(3), np.zeros(3))
    assert np.isnan(one.standard_error)


def test_intervals_cover_the_mean_of_clusters_of_unequal_size():
    """Nominal 95 %; the t interval of sums over few clusters of unequal size is a little short."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(12), SIZES)
    n_covered = 0
    for _ in range(2000):
        values = 0.5 * rng.normal(size=12)[clusters] + rng.normal(size=clusters.size)
        low, high = clustered_mean(values, clusters).interval
        n_covered += low <= 0 <= high
    assert 0.92 <= n_covered / 2000 <= 0.98


def test_no_spread_is_a_sure_gain_or_none():
    assert clustered_mean(np.full(9, 0.1), np.arange(9)).p_value == 0
    assert clustered_mean(np.zeros(9), np.arange(9)).p_value == 1
    assert clustered_mean(np.full(9, -0.1), np.arange(9)).p_value == 1


def test_twins_in_a_cluster_are_worth_one_query(rng):
    values = rng.normal(size=30)
    alone = clustered_mean(values, np.arange(30))
    twice = clustered_mean(np.repeat(values, 2), np.repeat(np.arange(30), 2))
    assert twice.standard_error == pytest.approx(alone.standard_error)
    assert twice.p_value == pytest.approx(alone.p_value)


# ---------------------------------------------------------------------- power


def shown(n_queries, gain, spread, n_trials=1000):
    """Share of trials whose one-sided t-test at 2.5 % shows a gain."""
    rng = np.random.default_rng(1)
    values = gain + spread * rng.normal(size=(n_trials, n_queries))
    errors = values.std(axis=1, ddof=1) / np.sqrt(n_queries)
    p_values = stats.t.sf(values.mean(axis=1) / errors, n_queries - 1)
    return float(np.mean(p_values <= 0.025))


def test_the_queries_needed_show_the_gain_four_times_in_five(rng):
    values = 0.15 * rng.normal(size=5000)
    needed = queries_needed(0.05, clustered_mean(values, np.arange(5000)))
    assert shown(needed, 0.05, values.std(ddof=1)) == pytest.approx(0.8, abs=0.05)
    assert queries_needed(0.025, clustered_mean(values, np.arange(5000))) == (
        pytest.approx(4 * needed, rel=0.05)
    )


def test_queries_that_depend_on_each_other_need_to_be_more(rng):
    """Four queries of a cluster with one value: as many clusters as single queries."""
    values = 0.15 * rng.normal(size=400)
    alone = queries_needed(0.05, clustered_mean(values, np.arange(400)))
    twins = clustered_mean(np.repeat(values, 4), np.repeat(np.arange(400), 4))
    assert queries_needed(0.05, twins) == pytest.approx(4 * alone, rel=0.05)


def test_a_large_gain_is_shown_by_as_few_queries_as_promised():
    """With few queries the quantiles of Student's t are wider than those of the normal."""
    estimate = ClusteredMean(0.1, 0.1 / np.sqrt(50), 50, 50)
    needed = queries_needed(0.1, estimate)
    assert shown(needed, 0.1, 0.1) == pytest.approx(0.8, abs=0.05)
