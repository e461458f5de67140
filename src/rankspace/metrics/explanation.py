"""Explanations of scores: the directions, fields and training judgments that moved one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._engine.fields import field_slices
from .._engine.rows import check_n_features, float_rows
from .._engine.similarity import is_sparse, unit_rows
from .._engine.vectors import as_rows, power_of_two
from ..relevance.relevance import Relevance

UNCHANGED = "unchanged"
# Directions of a smaller share of the largest value are rounding errors.
NEGLIGIBLE = 1e-14
# Ridge of the regression on judgments, in units of the mean square of a pair. Near duplicates share
# their contribution; a lower one would play them off against each other.
RIDGE = 0.1
# The judgments of the nearest queries that take part, and of each the nearest items.
NEAREST_QUERIES = 200
NEAREST_ITEMS = 5


class Part(NamedTuple):
    """What a direction, a field or a training judgment contributes to a score."""

    name: str
    contribution: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """The score of an item for a query, and what moved it from that of a baseline.

    Parameters
    ----------
    score : float
        The score: minus the distance.
    baseline : float
        The score under the baseline, or 0 without one.
    directions : list of Part
        Contributions of directions, largest first; their sum is ``score - baseline``.
    fields : list of Part
        Contributions of the fields of the item, if the metric was learned from fields; their sum is
        the same.
    judgments : list of Part
        Contributions of training judgments, largest first, and of the rest; their sum is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import LinearMetric
    >>> print(LinearMetric([[2.0, 0.0], [0.0, 1.0]]).explain([0.0, 0.0], [3.0, 4.0], "unchanged"))
    score -7.2111, baseline -5.0000, difference -2.2111
      direction 0  -2.2111
    """

    score: float
    baseline: float
    directions: list[Part]
    fields: list[Part]
    judgments: list[Part]

    @property
    def difference(self) -> float:
        """The score less that of the baseline."""
        return self.score - self.baseline

    def top(self, n: int = 5) -> list[Part]:
        """The largest contributions of directions, and that of all others together."""
        return top_parts(self.directions, n, "other directions")

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python objects."""
        names = ("directions", "fields", "judgments")
        parts = {n: [part._asdict() for part in getattr(self, n)] for n in names}
        return {"score": self.score, "baseline": self.baseline, **parts}

    def __str__(self) -> str:
        lines = [
            f"score {self.score:.4f}, baseline {self.baseline:.4f}, difference "
            f"{self.difference:+.4f}"
        ]
        shown = [*self.top(), *self.fields]
        shown += top_parts(self.judgments, 5, "other judgments")
        width = max((len(name) for name, _ in shown), default=0)
        lines += [f"  {name:<{width}}  {value:+.4f}" for name, value in shown]
        return "\n".join(lines)


def top_parts(parts: Sequence[Part], n: int, others: str) -> list[Part]:
    """The first n parts, and the sum of the others."""
    rest = sum(part.contribution for part in parts[n:])
    return [*parts[:n], *([Part(others, rest)] if len(parts) > n else [])]


def by_size(parts: Iterator[Part] | Sequence[Part]) -> list[Part]:
    """Parts with the largest first."""
    return sorted(parts, key=_minus_size)


def _minus_size(part: Part) -> float:
    return -abs(part.contribution)


def one_row(x: Any, name: str, n_features: int) -> np.ndarray:
    """One vector as a matrix of a row, in double precision."""
    rows = x if is_sparse(x) else np.atleast_2d(np.asarray(x))
    rows = float_rows(rows, name, accept_sparse=("csr", "csc"), allow_nan=True)
    check_n_features(rows, n_features, name)
    if rows.shape[0] != 1:
        raise ValueError(f"{name} must be one vector: got {rows.shape[0]} rows.")
    dense = rows.toarray() if is_sparse(rows) else rows
    return np.asarray(dense, dtype=np.float64)


def score_of(metric: Any, q: np.ndarray, x: np.ndarray) -> float:
    """Minus the distance of a query and an item."""
    return 0.0 - float(metric.distances(q, x)[0, 0])


# ---------------------------------------------------------------------- maps


class Maps(NamedTuple):
    """The maps of a metric, in double precision."""

    query: np.ndarray
    item: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, metric: Any) -> Maps:
        """The maps of an embedding metric."""
        arrays = (metric.query_map, metric.item_map, metric.query_offset)
        return cls(*(np.asarray(array, dtype=np.float64) for array in arrays))

    @property
    def stacked(self) -> np.ndarray:
        """The map of (query, item, 1) to the difference of the mapped vectors."""
        return np.hstack([self.query, -self.item, self.offset[:, None]])


class ScoreForm:
    """The difference of the scores of two metrics as a bilinear form of vectors.

    By inner product it is ``q'K x`` and a term of the offset; by Euclidean distance, where
    ``d0 - d = (d0^2 - d^2) / (d0 + d)``, it is ``-y'K y / (d0 + d)``, with ``y = q - x`` for one
    map of both sides and ``y = (q, x, 1)`` otherwise. K is the difference of both forms, and its
    singular vectors are the directions.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The metric.
    baseline : metric of the same form, "unchanged" or None
        What is compared with; None is a score of 0.
    """

    def __init__(self, metric: Any, baseline: Any) -> None:
        self.metric = metric
        self.baseline = baseline
        self.by_product = metric.inner_product
        self.unit = metric.similarity == "cosine"
        maps = Maps.of(metric)
        others = _baseline_maps(metric, baseline)
        self.n_query_features = maps.query.shape[1]
        self.n_features = maps.item.shape[1]
        self.is_shared = metric.symmetric and getattr(baseline, "symmetric", True)
        self.offset = np.zeros(self.n_features)
        if self.by_product:
            self.offset = maps.item.T @ maps.offset
            matrix = maps.query.T @ maps.item
            if others is not None:
                self.offset -= others.item.T @ others.offset
                matrix -= others.query.T @ others.item
            left, values, right = np.linalg.svd(matrix, full_matrices=False)
            self._keep(left.T, values, right)
        else:
            self._keep(*_quadratic_directions(self._factor(maps), self._factor(others)))

    def _factor(self, maps: Maps | None) -> Any:
        """The map whose squared length is the squared distance."""
        if maps is None:
            return None
        return maps.item if self.is_shared else maps.stacked

    def _keep(self, left: np.ndarray, values: np.ndarray, right: np.ndarray) -> None:
        """Keep all directions but rounding errors."""
        sizes = np.abs(values)
        kept = sizes > NEGLIGIBLE * sizes.max(initial=0.0)
        self.left, self.values, self.right = left[kept], values[kept], right[kept]

    def sides(self, Q: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both vectors of the form for rows of queries and items."""
        if self.unit:
            Q, X = unit_rows(Q, "q"), unit_rows(X, "x")
        if self.by_product:
            return Q, X
        if self.is_shared:
            return Q - X, Q - X
        rows = np.hstack([Q, X, np.ones((len(Q), 1))])
        return rows, rows

    def values_at(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The contribution (n, n_directions) of each direction to the form of rows."""
        parts: np.ndarray = (left @ self.left.T) * self.values * (right @ self.right.T)
        return parts

    def offset_at(self, x: np.ndarray) -> float:
        """What the offset of mapped queries adds to the score of an item."""
        if not self.offset.any():
            return 0.0
        rows = unit_rows(x, "x") if self.unit else x
        return float(rows[0] @ self.offset)

    @cached_property
    def widths(self) -> dict[str, int]:
        """The fields and their widths, if the metric was learned from fields."""
        fields = self.metric.parameters.get("fields")
        if not isinstance(fields, Mapping):
            return {}
        # A file may hold anything here.
        if not all(isinstance(width, int) and width > 0 for width in fields.values()):
            return {}
        sides = {self.n_features, self.n_query_features}
        return dict(fields) if sides == {sum(fields.values())} else {}

    def by_field(self, left: np.ndarray, right: np.ndarray) -> dict[str, float]:
        """The contribution of each field of the item (by distance, of both) to the form."""
        whole = ((left @ self.left.T) * self.values) @ self.right * right
        found = {}
        slices = field_slices(tuple(self.widths.values()))
        for name, columns in zip(self.widths, slices, strict=True):
            found[name] = float(whole[0, columns].sum())
            if whole.shape[1] > self.n_features:
                of_item = whole[0, self.n_query_features :]
                found[name] += float(of_item[columns].sum())
        if whole.shape[1] > self.n_features:
            found["offset"] = float(whole[0, -1])
        return found


def _baseline_maps(metric: Any, baseline: Any) -> Maps | None:
    if baseline is None:
        return None
    if not isinstance(baseline, str):
        return Maps.of(baseline)
    n, n_query = metric.n_features, metric.query_map.shape[1]
    if n != n_query:
        raise ValueError(
            "unchanged vectors can only be compared if queries and items have equally many "
            f"features: got {n_query} and {n}. Pass a metric as baseline."
        )
    return Maps(np.eye(n), np.eye(n), np.zeros(n))


def _quadratic_directions(
    factor: np.ndarray, other: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions and values of the difference of two squared lengths."""
    if other is None:
        _, values, directions = np.linalg.svd(factor, full_matrices=False)
        return directions, values**2, directions
    values, vectors = np.linalg.eigh(factor.T @ factor - other.T @ other)
    order = np.argsort(-np.abs(values), kind="stable")
    directions = vectors.T[order]
    return directions, values[order], directions


def has_same_form(metric: Any, baseline: Any) -> bool:
    """Whether both scores are the same form of the same vectors."""
    if baseline is None or baseline == UNCHANGED:
        return True
    if not hasattr(baseline, "item_map"):
        return False
    return (
        metric.inner_product == baseline.inner_product
        and metric.similarity == baseline.similarity
        and metric.item_map.shape[1] == baseline.item_map.shape[1]
        and metric.query_map.shape[1] == baseline.query_map.shape[1]
    )


def check_baseline(baseline: Any) -> None:
    """Raise unless a baseline is a metric, "unchanged" or None."""
    if baseline is None or hasattr(baseline, "distances"):
        return
    if not isinstance(baseline, str) or baseline != UNCHANGED:
        raise ValueError(
            f'baseline must be a metric, "unchanged" or None: got {baseline!r}.'
        )


def explain_form(
    form: ScoreForm, q: np.ndarray, x: np.ndarray, training: Any
) -> Explanation:
    """The explanation of a score by the directions of a form."""
    score = score_of(form.metric, q, x)
    before = _score_before(form, q, x)
    left, right = form.sides(q, x)
    factor = 1.0
    if not form.by_product:
        # A power of two rounds nothing, and keeps squares from underflow and overflow.
        unit = power_of_two(left)
        left = right = left / unit
        length = -(score + before)
        factor = -unit * (unit / length) if length else 0.0
    values = factor * form.values_at(left, right)[0]
    directions = [Part(f"direction {i}", float(v)) for i, v in enumerate(values)]
    offset = form.offset_at(x)
    if form.offset.any():
        directions.append(Part("offset", offset))
    fields = []
    if form.widths:
        own = form.by_field(left, right)
        fields = [Part(name, factor * value) for name, value in own.items()]
        if form.offset.any():
            fields.append(Part("offset", offset))
    judgments = []
    if training is not None:
        judgments = _judgments(form, q, x, training, score - before)
    return Explanation(score, before, by_size(directions), fields, judgments)


def _score_before(form: ScoreForm, q: np.ndarray, x: np.ndarray) -> float:
    """The score under the baseline."""
    if form.baseline is None:
        return 0.0
    if not isinstance(form.baseline, str):
        return score_of(form.baseline, q, x)
    Q, X = (unit_rows(q, "q"), unit_rows(x, "x")) if form.unit else (q, x)
    if form.by_product:
        return float(Q[0] @ X[0])
    return 0.0 - float(np.linalg.norm(Q[0] - X[0]))


def explain_with_other(
    explained: Explanation, metric: Any, q: np.ndarray, x: np.ndarray
) -> Explanation:
    """An explanation without baseline, with one of another form as a part."""
    before = score_of(metric, q, x)
    part = Part("baseline", -before)
    return Explanation(
        explained.score,
        before,
        by_size([*explained.directions, part]),
        [*explained.fields, part] if explained.fields else [],
        [*explained.judgments, part] if explained.judgments else [],
    )


# ---------------------------------------------------------------------- training judgments


def _judgments(
    form: ScoreForm, q: np.ndarray, x: np.ndarray, training: Any, total: float
) -> list[Part]:
    """Contributions of training judgments by leverage.

    The change of score is a linear function of the pair (query, item). Ridge regression of the
    changes of the judged pairs predicts that of this one as a sum over judgments: the leverage of
    each on this pair, times its own change. What is not predicted is the rest.
    """
    names, Q, X = _nearest_judgments(form, q, x, training)
    left, right = form.sides(Q, X)
    here = form.sides(q, x)
    products = (left @ left.T) * (right @ right.T)
    ridge = RIDGE * max(float(np.trace(products)) / len(Q), np.finfo(float).tiny)
    across = (left @ here[0][0]) * (right @ here[1][0])
    leverage = np.linalg.solve(products + ridge * np.eye(len(Q)), across)
    own = form.values_at(left, right).sum(axis=1)
    change = float(form.values_at(*here).sum())
    # From the form to the score, which by distance is a quotient.
    scale = (total - form.offset_at(x)) / change if change else 0.0
    parts = [
        Part(name, float(value))
        for name, value in zip(names, scale * leverage * own, strict=True)
    ]
    rest = total - sum(part.contribution for part in parts)
    return [*by_size(parts), Part("rest", rest)]


def _nearest_judgments(
    form: ScoreForm, q: np.ndarray, x: np.ndarray, training: Any
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names and vectors of the judged pairs nearest to a pair, relevant ones only."""
    X, relevance, queries = _checked_training(form, training)
    rows = relevance.query_items if queries is None else np.arange(len(queries))
    points = X if queries is None else queries
    closeness = _cosines(points, q)[rows]
    names, of_queries, of_items = [], [], []
    for query in np.argsort(-closeness, kind="stable")[:NEAREST_QUERIES].tolist():
        relevant = relevance.relevant(query)
        order = np.argsort(-_cosines(X[relevant], x), kind="stable")[:NEAREST_ITEMS]
        for item in relevant[order].tolist():
            names.append(_pair_name(relevance, query, item))
            of_queries.append(int(rows[query]))
            of_items.append(item)
    if not names:
        raise ValueError("training must have a relevant judgment: got none.")
    Q = np.asarray(points[of_queries], dtype=np.float64)
    return names, Q, np.asarray(X[of_items], dtype=np.float64)


def _checked_training(
    form: ScoreForm, training: Any
) -> tuple[Any, Relevance, np.ndarray | None]:
    """Items, judgments and queries that a metric was learned from."""
    if not isinstance(training, tuple) or len(training) != 3:
        raise ValueError(
            "training must be (X, relevance, queries), with queries None if they are items: got "
            f"{type(training).__name__}."
        )
    X, relevance, queries = training
    X = as_rows(X)
    check_n_features(X, form.n_features, "X")
    if not isinstance(relevance, Relevance):
        raise ValueError(
            f"relevance must be a Relevance: got {type(relevance).__name__}."
        )
    if queries is not None:
        queries = as_rows(queries, "queries")
        check_n_features(queries, form.n_query_features, "queries")
    return X, relevance, queries


def _cosines(rows: Any, x: np.ndarray) -> np.ndarray:
    """Cosines of rows with a vector, 0 where one is zero."""
    rows = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(x)
    products: np.ndarray = rows @ x[0]
    return np.divide(products, lengths, out=np.zeros(len(rows)), where=lengths > 0)


def _pair_name(relevance: Relevance, query: int, item: int) -> str:
    names = (relevance.query_ids, relevance.item_ids)
    found = [
        n if ids is None else ids[n]
        for n, ids in zip((query, item), names, strict=True)
    ]
    return f"query {found[0]}, item {found[1]}"
