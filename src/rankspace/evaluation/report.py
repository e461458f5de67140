"""What evaluation and comparison give: numbers per query, means, intervals, tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._engine.files import PathLike, write_text
from .._engine.tables import Row, as_csv, as_markdown, as_text

RESAMPLES = 9_999  # sign flips of a test, if there are more
COINS = 2**18  # tossed at a time: what a cache can hold


class _Table:
    """Anything that prints as a table and writes itself to a file."""

    def _header(self) -> list[str]:
        raise NotImplementedError

    def _rows(self) -> list[Row]:
        raise NotImplementedError

    def _notes(self) -> list[str]:
        return []

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join([as_text(self._header(), self._rows()), *self._notes()])

    def to_markdown(self) -> str:
        """A Markdown table."""
        notes = [f"\n{note}" for note in self._notes()]
        return "\n".join([as_markdown(self._header(), self._rows()), *notes])

    def to_csv(self) -> str:
        """The table as comma-separated values."""
        return as_csv(self._header(), self._rows())

    def to_json(self) -> str:
        """Everything as JSON; of a report, the values of each query as well."""
        return json.dumps(self.to_dict(), indent=2)

    def write(self, path: PathLike) -> Path:
        """Write to a file; its ending .json, .md, .csv or .txt says in which form."""
        forms = {
            ".json": self.to_json,
            ".md": self.to_markdown,
            ".csv": self.to_csv,
            ".txt": self.__str__,
        }
        form = forms.get(Path(path).suffix)
        if form is None:
            raise ValueError(
                f"the file must end in one of {', '.join(forms)}: got {path}."
            )
        return write_text(path, form().rstrip("\n") + "\n")


@dataclass(frozen=True, eq=False, repr=False)
class Report(_Table):
    """Measures of many queries.

    Parameters
    ----------
    values : dict of str to ndarray of shape (n_queries,)
        Value of each measure for each query, NaN where a query is left out.
    smaller_is_better : frozenset of str
        Measures that are errors.
    query_ids : ndarray of str, optional
        Names of the queries.
    weights : ndarray of shape (n_queries,), optional
        Weight of each query in the means.
    n_unlisted : int, default=0
        Queries that the ranking had no list for; they score as if it were empty.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Report
    >>> print(Report({"map": np.array([0.5, 0.7, 0.6])}))
    measure    mean     low    high  queries
    ----------------------------------------
    map      0.6000  0.5000  0.7000        3
    """

    values: dict[str, np.ndarray]
    smaller_is_better: frozenset[str] = frozenset()
    query_ids: np.ndarray | None = None
    weights: np.ndarray | None = None
    n_unlisted: int = 0

    @property
    def n_queries(self) -> int:
        """Number of queries, those left out included."""
        return next(iter(self.values.values())).size

    @cached_property
    def means(self) -> dict[str, float]:
        """Weighted mean of each measure over the queries that count; NaN if none does."""
        return {name: _mean(*self._counted(name)) for name in self.values}

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """95 % bootstrap interval of each mean, over queries; always the same for one report."""
        return {name: _interval(*self._counted(name)) for name in self.values}

    @property
    def left_out(self) -> dict[str, int]:
        """How many queries each measure leaves out: nothing relevant, or nothing to compare."""
        return {
            name: int(np.isnan(values).sum()) for name, values in self.values.items()
        }

    def _counted(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        values = self.values[name]
        weights = np.ones(values.size) if self.weights is None else self.weights
        counted = ~np.isnan(values)
        return values[counted], weights[counted]

    def to_dict(self) -> dict[str, Any]:
        """Means, intervals, counts and per-query values as plain Python objects."""
        measures = {}
        for name, mean in self.means.items():
            low, high = self.intervals[name]
            measures[name] = {
                "mean": _plain(mean),
                "low": _plain(low),
                "high": _plain(high),
                "larger_is_better": name not in self.smaller_is_better,
                "left_out": self.left_out[name],
                "per_query": [_plain(value) for value in self.values[name].tolist()],
            }
        ids = None if self.query_ids is None else self.query_ids.tolist()
        return {
            "n_queries": self.n_queries,
            "n_unlisted": self.n_unlisted,
            "query_ids": ids,
            "measures": measures,
        }

    def _header(self) -> list[str]:
        return ["measure", "mean", "low", "high", "queries"]

    def _rows(self) -> list[Row]:
        return [
            (
                name + (" (error)" if name in self.smaller_is_better else ""),
                mean,
                *self.intervals[name],
                self.n_queries - self.left_out[name],
            )
            for name, mean in self.means.items()
        ]

    def _notes(self) -> list[str]:
        notes = []
        if self.n_unlisted:
            what = f"{self.n_unlisted} of {self.n_queries} judged queries"
            notes.append(
                f"{what} have no list in the ranking and score as if it were empty."
            )
        return notes + self._left_out_notes()

    def _left_out_notes(self) -> list[str]:
        left_out = {name: n for name, n in self.left_out.items() if n}
        if not left_out:
            return []
        if len(set(left_out.values())) == 1 and len(left_out) == len(self.values):
            n = next(iter(left_out.values()))
            return [
                f"{n} of {self.n_queries} queries left out: nothing to find or to compare."
            ]
        parts = ", ".join(f"{n} by {name}" for name, n in left_out.items())
        return [
            f"of {self.n_queries} queries left out, nothing to find or to compare: {parts}."
        ]

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={mean:.4f}" for name, mean in self.means.items())
        return f"Report({self.n_queries} queries, {means})"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(_Table):
    """Two reports of the same queries, measure by measure.

    Parameters
    ----------
    before, after : dict of str to float
        Means over the queries that both count.
    difference : dict of str to float
        ``after - before``.
    interval : dict of str to tuple of float
        95 % bootstrap interval of the difference.
    p_value : dict of str to float
        Chance of so large a difference if the two were interchangeable: a paired randomisation
        test that flips the sign of each query's difference.
    n_queries : dict of str to int
        How many queries both count.
    smaller_is_better : frozenset of str
        Measures that are errors.
    """

    before: dict[str, float]
    after: dict[str, float]
    difference: dict[str, float]
    interval: dict[str, tuple[float, float]]
    p_value: dict[str, float]
    n_queries: dict[str, int]
    smaller_is_better: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python objects."""
        return {
            name: {
                "before": _plain(self.before[name]),
                "after": _plain(self.after[name]),
                "difference": _plain(self.difference[name]),
                "low": _plain(self.interval[name][0]),
                "high": _plain(self.interval[name][1]),
                "p_value": self.p_value[name],
                "n_queries": self.n_queries[name],
                "larger_is_better": name not in self.smaller_is_better,
            }
            for name in self.before
        }

    def _header(self) -> list[str]:
        return [
            "measure",
            "before",
            "after",
            "difference",
            "low",
            "high",
            "p-value",
            "queries",
        ]

    def _rows(self) -> list[Row]:
        return [
            (
                name + (" (error)" if name in self.smaller_is_better else ""),
                self.before[name],
                self.after[name],
                self.difference[name],
                *self.interval[name],
                self.p_value[name],
                self.n_queries[name],
            )
            for name in self.before
        ]

    def __repr__(self) -> str:
        parts = (
            f"{n}: {self.difference[n]:+.4f} (p={self.p_value[n]:.4f})"
            for n in self.before
        )
        return f"Comparison({', '.join(parts)})"


def compare(before: Report, after: Report, *, random_state: int = 0) -> Comparison:
    """Test the differences of two reports against chance.

    Parameters
    ----------
    before, after : Report
        Reports of the same queries. Measures that only one of them has are passed over, and so is
        a query that one of them leaves out.
    random_state : int, default=0
        Seed of the resamples of intervals and tests.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Report, compare
    >>> before = Report({"map": np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])})
    >>> after = Report({"map": np.array([0.2, 0.4, 0.4, 0.5, 0.7, 0.7])})
    >>> compare(before, after).p_value
    {'map': 0.03125}
    """
    names = [name for name in before.values if name in after.values]
    if not names:
        raise ValueError(
            f"the reports must share a measure: got {', '.join(before.values)} and "
            f"{', '.join(after.values)}."
        )
    order = same_queries(before, after)
    weights = np.ones(before.n_queries) if before.weights is None else before.weights
    others = np.ones(after.n_queries) if after.weights is None else after.weights
    if not np.array_equal(weights, others[order]):
        raise ValueError(
            "the reports must weight the queries alike: their weights differ."
        )
    columns: dict[str, dict[str, Any]] = {
        f: {} for f in Comparison.__dataclass_fields__
    }
    del columns["smaller_is_better"]
    for name in names:
        a, b = before.values[name], after.values[name][order]
        counted = ~np.isnan(a) & ~np.isnan(b)
        if not counted.any():
            raise ValueError(f"no query counts for {name} in both reports.")
        a, b, w = a[counted], b[counted], weights[counted]
        columns["before"][name] = _mean(a, w)
        columns["after"][name] = _mean(b, w)
        columns["difference"][name] = _mean(b - a, w)
        columns["interval"][name] = _interval(b - a, w, random_state)
        columns["p_value"][name] = _p_value(b - a, w, random_state)
        columns["n_queries"][name] = int(counted.sum())
    return Comparison(**columns, smaller_is_better=before.smaller_is_better)


def same_queries(before: Report, after: Report) -> np.ndarray:
    """Where each query of the first report stands in the second."""
    if before.n_queries != after.n_queries:
        raise ValueError(
            f"the reports must be of the same queries: got {before.n_queries} and "
            f"{after.n_queries}."
        )
    if before.query_ids is None or after.query_ids is None:
        return np.arange(before.n_queries)
    order = np.argsort(after.query_ids)
    place = np.searchsorted(after.query_ids, before.query_ids, sorter=order)
    found = order[np.minimum(place, order.size - 1)]
    if not np.array_equal(after.query_ids[found], before.query_ids):
        raise ValueError(
            "the reports must be of the same queries: their query ids differ."
        )
    return found


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    return (
        float(np.average(values, weights=weights))
        if weights.sum() > 0
        else float("nan")
    )


def _interval(
    values: np.ndarray, weights: np.ndarray, seed: int = 0
) -> tuple[float, float]:
    """Bootstrap the weighted mean over queries, percentile interval."""
    from scipy.stats import bootstrap

    if values.size < 2 or weights.sum() == 0:
        return _mean(values, weights), _mean(values, weights)

    def mean(v: np.ndarray, w: np.ndarray, axis: int) -> np.ndarray:
        return (v * w).sum(axis=axis) / np.maximum(
            w.sum(axis=axis), np.finfo(float).tiny
        )

    found = bootstrap(
        (values, weights),
        mean,
        paired=True,
        method="percentile",
        n_resamples=2_000,
        vectorized=True,
        batch=max(1, 4_000_000 // values.size),
        **_seeded(bootstrap, seed),
    ).confidence_interval
    return float(found.low), float(found.high)


def _p_value(differences: np.ndarray, weights: np.ndarray, seed: int) -> float:
    """Two-sided paired randomisation test; exact where all sign flips can be counted.

    A matrix product sums the flipped values, many times as fast as SciPy's `permutation_test`,
    which looks every one up.
    """
    sizes = np.abs(differences * weights)
    n, observed = sizes.size, abs(float(differences @ weights))
    if n == 1 or not sizes.any():
        return 1.0
    limit = (
        observed - 1e-12 * sizes.sum()
    )  # sums of the same numbers may differ by rounding
    if exact := 2**n <= RESAMPLES:
        blocks = iter([np.arange(2**n)[:, None] >> np.arange(n) & 1])
    else:
        blocks = _coins(np.random.default_rng(seed), RESAMPLES, n)
    as_far = sum(
        np.count_nonzero(np.abs(2 * (heads @ sizes) - sizes.sum()) >= limit)
        for heads in blocks
    )
    return float(as_far / 2**n if exact else (as_far + 1) / (RESAMPLES + 1))


def _coins(rng: np.random.Generator, n_rows: int, n: int) -> Iterator[np.ndarray]:
    """Rows of so many tossed coins, in blocks that a cache can hold."""
    size = max(1, COINS // n)
    for first in range(0, n_rows, size):
        rows = min(size, n_rows - first)
        tossed = np.frombuffer(rng.bytes(rows * -(-n // 8)), dtype=np.uint8).reshape(
            rows, -1
        )
        yield np.unpackbits(tossed, axis=1, count=n).astype(np.float64)


def _seeded(function: Any, seed: int) -> dict[str, Any]:
    """The seed under the name that this version of SciPy gives it."""
    import inspect

    name = "rng" if "rng" in inspect.signature(function).parameters else "random_state"
    return {name: np.random.default_rng(seed)}


def _plain(value: float) -> float | None:
    """JSON has no NaN."""
    return None if value != value else float(value)
