"""Statistical significance: p-values of paired tests, and bootstrap confidence intervals."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

RESAMPLES = 9_999  # random sign flips of a test that cannot try them all
SIGNS_PER_BLOCK = 2**18  # drawn at a time: what a cache can hold


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> float:
    if weights.sum() > 0:
        return float(np.average(values, weights=weights))
    return float("nan")


def bootstrap_interval(
    values: np.ndarray, weights: np.ndarray, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Bootstrap confidence interval of the weighted mean over queries, by percentiles."""
    from scipy.stats import bootstrap

    if values.size < 2 or weights.sum() == 0:
        return weighted_mean(values, weights), weighted_mean(values, weights)

    def mean(v: np.ndarray, w: np.ndarray, axis: int) -> np.ndarray:
        # A resample may hold only queries of weight 0.
        total = np.maximum(w.sum(axis=axis), np.finfo(float).tiny)
        return (v * w).sum(axis=axis) / total

    interval = bootstrap(
        (values, weights),
        mean,
        paired=True,
        confidence_level=level,
        method="percentile",
        n_resamples=2_000,
        vectorized=True,
        batch=max(1, 4_000_000 // values.size),
        **_seeded(bootstrap, seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def randomisation_p_value(
    differences: np.ndarray, weights: np.ndarray, seed: int
) -> float:
    """Two-sided p-value of a paired randomisation test; exact if all sign flips can be tried.

    A matrix product sums the flipped values, many times faster than `permutation_test` of SciPy.
    """
    sizes = np.abs(differences * weights)
    n = sizes.size
    if n == 1 or not sizes.any():
        return 1.0
    # Sums of the same numbers may differ by rounding.
    limit = abs(float(differences @ weights)) - 1e-12 * sizes.sum()
    if 2**n <= RESAMPLES:
        all_signs = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return _n_extreme(all_signs, sizes, limit) / 2**n
    n_extreme = 0
    for signs in _random_signs(np.random.default_rng(seed), RESAMPLES, n):
        n_extreme += _n_extreme(signs, sizes, limit)
    return (n_extreme + 1) / (RESAMPLES + 1)


def _n_extreme(signs: np.ndarray, sizes: np.ndarray, limit: float) -> int:
    """Number of sign flips (rows of 0 and 1) whose sum is at least as far from 0 as the limit."""
    sums = 2 * (signs @ sizes) - sizes.sum()
    return int(np.count_nonzero(np.abs(sums) >= limit))


def _random_signs(
    rng: np.random.Generator, n_rows: int, n: int
) -> Iterator[np.ndarray]:
    """Random rows of n zeros and ones, in blocks that a cache can hold."""
    size = max(1, SIGNS_PER_BLOCK // n)
    n_bytes = -(-n // 8)
    for first in range(0, n_rows, size):
        rows = min(size, n_rows - first)
        drawn = np.frombuffer(rng.bytes(rows * n_bytes), dtype=np.uint8)
        bits = np.unpackbits(drawn.reshape(rows, n_bytes), axis=1, count=n)
        yield bits.astype(np.float64)


def _seeded(function: Any, seed: int) -> dict[str, Any]:
    """The seed as a keyword argument, whose name depends on the version of SciPy."""

    name = "rng" if "rng" in inspect.signature(function).parameters else "random_state"
    return {name: np.random.default_rng(seed)}


class ClusteredMean(NamedTuple):
    """A mean over queries whose values depend on each other within clusters, never across."""

    mean: float
    standard_error: float
    n: int
    n_clusters: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval, by Student's t with a degree of freedom less than clusters."""
        from scipy.stats import t

        half = float(t.ppf(0.975, self.n_clusters - 1)) * self.standard_error
        return self.mean - half, self.mean + half

    @property
    def p_value(self) -> float:
        """One-sided p-value of a mean of 0 or below."""
        from scipy.stats import t

        if self.standard_error == 0:
            return 0.0 if self.mean > 0 else 1.0
        return float(t.sf(self.mean / self.standard_error, self.n_clusters - 1))


def clustered_mean(values: np.ndarray, clusters: np.ndarray) -> ClusteredMean:
    """The mean of all values that are not NaN, with a standard error from sums over clusters."""
    counted = ~np.isnan(values)
    values = values[counted]
    if not values.size:
        return ClusteredMean(np.nan, np.nan, 0, 0)
    _, numbers = np.unique(clusters[counted], return_inverse=True)
    mean = float(values.mean())
    sums = np.bincount(numbers, values - mean)
    n = sums.size
    error = np.nan
    if n > 1:
        error = float(np.sqrt(n / (n - 1) * (sums @ sums))) / values.size
    return ClusteredMean(mean, error, values.size, n)


def queries_needed(gain: float, estimate: ClusteredMean) -> int:
    """Queries that show a true gain with 80 % power, by a one-sided test at the 2.5 % level."""
    from scipy.stats import norm

    bound = float(norm.ppf(0.975))
    deviation = estimate.standard_error * np.sqrt(estimate.n)
    n_queries = ((bound + float(norm.ppf(0.8))) * deviation / gain) ** 2
    # Guenther's correction: the test is by Student's t, with a deviation that is estimated.
    return int(np.ceil(n_queries + bound**2 / 2))


def holm(p_values: list[float], alpha: float) -> list[float]:
    """The level at which each p-value is tested, by Holm's correction for several tests.

    Once one is not significant, all larger ones need its level, which they cannot reach.
    """
    levels = [0.0] * len(p_values)
    failed = False
    level = 0.0
    for place, number in enumerate(np.argsort(p_values, kind="stable")):
        if not failed:
            level = alpha / (len(p_values) - place)
            failed = not p_values[number] <= level
        levels[number] = level
    return levels
