"""A linear map that pulls queries and their relevant items together, away from all others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, check_scalar

from ._base import BaseRanker
from ._choices import check_choice
from ._near_items import enough_unjudged, nearest_items
from ._scaling import Scaled, in_blocks, partly_white, scale_data
from ._solvers.pair_loss import GAINS, Grouped, Listwise, PairLoss, QueryLoss
from .metric import BilinearMetric, EmbeddingMetric, LinearMetric
from .relevance import Relevance
from .search import Index
from .two_map_metric import TwoMapMetric

SIDES = {"both": PairLoss, "query": QueryLoss}
MOST_QUERIES = 200  # that settle the temperature
# Pull times the number of queries that suits held-out queries in the training parts of Cranfield
# (144 queries, best pull 0.03 to 0.1), SciFact (648, 0.003 to 0.01) and NFCorpus (2,051, 0.003).
TOTAL_PULL = 8.0


class ListwiseMap(BaseRanker):
    """A map near the identity that makes relevant items likely neighbours of their query.

    Minimises the divergence of softmax neighbours, ``p(x | q)`` in proportion to
    ``exp(-|L q - L x|^2 / temperature)``, from the relevant items in proportion to their gain,
    plus ``pull |L - I|^2``, where directions of large spread were made a little shorter before.
    The loss is smooth: no pairs are sampled, and L-BFGS needs no step size. For embeddings that
    are good already, few judgments suffice.

    Parameters
    ----------
    pull : float, optional
        How strongly L is drawn to the identity. Larger is safer with few judgments; by default 8
        over the number of queries.
    side : {"both", "query", "each"}, default="both"
        Map queries and items alike, or queries only: then items stay as they are, and are ranked by
        their inner product with the mapped query, which for vectors of unit length is the cosine
        up to a factor. Or learn both, and take the mean of the squared distance and of minus twice
        the product: that is a map for each side, and often errs less than either. The last two are
        for vectors of one length.
    whiten : float, default=0.2
        How far the items are brought to equal spread in all directions before: not at all (0),
        until they are white (1), or beyond, up to 2. Needs no judgments, so it holds for new items
        too.
    temperature : float, optional
        In units of the mean squared distance of two items; by default the one of least loss
        before anything is learned.
    sharpness : float or sequence of float, default=(1.0, 2.0)
        Divides the temperature: more looks more at the nearest items. Of several, the mean of the
        losses is taken.
    gain : {"exponential", "linear", "binary"}, default="exponential"
        What a relevant item counts: ``2^grade - 1``, its grade, or 1.
    tol : float, default=3e-3
        Stop when a step lowers the loss by no more than this share of it.
    max_iter : int, default=100
        Steps of L-BFGS at most.
    max_unjudged : int, optional
        Of the items that no judgment names so many take part at most: those nearest to a query,
        in turn for all queries. The others are hardly ever neighbours. By default two for each
        query, from 1,000 to 2,000.
    max_items : int, default=20000
        If there are more items, queries are taken in groups, whose judged and nearest items are so
        many together. If the items are the queries too, so many of them are drawn at random.
    max_memory : int, default=512
        Working memory in MiB.
    random_state : int, RandomState or None, default=None
        Seed of the items that are kept.

    Attributes
    ----------
    metric_ : LinearMetric, BilinearMetric or TwoMapMetric
        The learned map of both sides, of the queries only, or of each.
    components_ : ndarray of shape (n_features, n_features)
        L, if it maps both sides.
    parts_ : dict of str to ListwiseMap
        The fitted maps "both" and "query", if ``side="each"``; else empty.
    pull_ : float
        The pull.
    loss_ : float
        The loss at the end; of "each" that of both parts.
    n_iter_ : int
        Steps; of "each" those of both parts.
    temperature_ : float
        The temperature before it is divided; of "each" see the parts.
    history_ : list of float
        The loss after each step; of "each" see the parts.

    Notes
    -----
    A step costs two products of n_queries x n_items x n_features.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import Euclidean, ListwiseMap
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)
    >>> before = Euclidean().fit(X, y).score(X, y)
    >>> bool(ListwiseMap().fit(X, y).score(X, y) > before + 0.1)
    True
    """

    def __init__(
        self,
        pull: float | None = None,
        *,
        side: str = "both",
        whiten: float = 0.2,
        temperature: float | None = None,
        sharpness: float | Sequence[float] = (1.0, 2.0),
        gain: str = "exponential",
        tol: float = 3e-3,
        max_iter: int = 100,
        max_unjudged: int | None = None,
        max_items: int = 20_000,
        max_memory: int = 512,
        random_state: Any = None,
    ) -> None:
        self.pull = pull
        self.side = side
        self.whiten = whiten
        self.temperature = temperature
        self.sharpness = sharpness
        self.gain = gain
        self.tol = tol
        self.max_iter = max_iter
        self.max_unjudged = max_unjudged
        self.max_items = max_items
        self.max_memory = max_memory
        self.random_state = random_state

    @property
    def _metric_kind(self) -> type:  # type: ignore[override]
        return {"query": BilinearMetric, "each": TwoMapMetric}.get(self.side, LinearMetric)

    def _learn(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> EmbeddingMetric:
        self._check_params()
        if self.side == "each":
            return self._learn_each(X, relevance, queries)
        if queries is None:
            X, relevance = self._fewer_rows(X, relevance)
        data = scale_data(X, relevance, queries)
        white = partly_white(data.X, self.whiten)
        data = data._replace(
            X=in_blocks(data.X, white), Q=in_blocks(data.Q, white),
            mean=(white @ (data.mean / data.scale)).astype(X.dtype),
        )  # fmt: skip
        groups = self._groups(relevance, X, queries)
        losses = [self._loss(data, relevance, *group) for group in groups]
        self.pull_ = TOTAL_PULL / relevance.n_queries if self.pull is None else float(self.pull)
        self.temperature_ = self._temperature(losses[0])
        temperatures = self.temperature_ / np.atleast_1d(self.sharpness)
        rows = [Listwise(loss.relevance, temperatures.tolist(), self.gain) for loss in losses]
        found = Grouped(losses).minimise(
            rows, np.eye(X.shape[1]), tol=self.tol, floor=0.0, max_iter=self.max_iter,
            pull=self.pull_,
        )  # fmt: skip
        if not found.converged:
            warnings.warn(
                f"ListwiseMap stopped after {self.max_iter} steps while its loss still fell by "
                f"more than tol={self.tol} of itself. Raise max_iter, tol or pull.",
                ConvergenceWarning, stacklevel=3,
            )  # fmt: skip
        self.loss_, self.history_, self.n_iter_ = found.loss, found.losses, len(found.losses)
        self.parts_: dict[str, ListwiseMap] = {}
        return self._metric(found.components @ white, white, X.dtype)

    def _learn_each(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> TwoMapMetric:
        """What the map of both sides and that of the queries make together.

        With L and M, ``|L q - L x|^2 - 2 (M q)'x`` is ``|A q - L x|^2`` but for what no item
        changes, where ``A = L + inv(L)' M``.
        """
        self.parts_ = {
            side: clone(self).set_params(side=side).fit(X, relevance, queries=queries)
            for side in SIDES
        }
        self.pull_ = self.parts_["both"].pull_
        self.loss_ = sum(part.loss_ for part in self.parts_.values())
        self.n_iter_ = sum(part.n_iter_ for part in self.parts_.values())
        metrics = [cast(EmbeddingMetric, part.metric_) for part in self.parts_.values()]
        right, of_queries = (metric.left.astype(float) for metric in metrics)
        left = right + np.linalg.solve(right.T, of_queries)
        left, right = ((map_ / np.sqrt(2)).astype(X.dtype) for map_ in (left, right))  # the mean
        return TwoMapMetric(left, right, parameters=self._parameters)

    def _loss(
        self, data: Scaled, relevance: Relevance, queries: np.ndarray, items: np.ndarray | None
    ) -> PairLoss:
        """The loss of some queries, over some or all of the items."""
        kind, part, Q = SIDES[self.side], relevance.take_queries(queries), data.Q[queries]
        if self.side == "query":  # a product with the queries, so these count from where zero is
            Q = Q + data.mean
        if items is None:
            return kind(data.X, Q, part, self.max_memory)
        return kind(data.X[items], Q, part._take_items(items), self.max_memory)

    def _metric(self, L: np.ndarray, white: np.ndarray, dtype: Any) -> EmbeddingMetric:
        """A map of white vectors, as a metric of vectors as they are."""
        if self.side == "both":
            return LinearMetric(L.astype(dtype), parameters=self._parameters)
        unmapped = np.eye(len(L), dtype=dtype)
        return BilinearMetric((white @ L).astype(dtype), unmapped, parameters=self._parameters)

    @property
    def _parameters(self) -> dict[str, Any]:
        return {"method": "ListwiseMap", "side": self.side, "pull": self.pull_}

    def _temperature(self, loss: PairLoss) -> float:
        """The one given, or the one of least loss before anything is learned."""
        if self.temperature is not None:
            return float(self.temperature)
        few = loss.thinned(min(MOST_QUERIES, max(1, self.max_memory * 2**15 // len(loss.X))))
        everyone = np.arange(few.relevance.n_queries)
        distances, states = few.unmapped(everyone), few.states(everyone)

        def value(log_temperature: float) -> float:
            rows = Listwise(few.relevance, [float(np.exp(log_temperature))], self.gain)
            return float(few.weights @ rows(distances, states, everyone)[0])

        found = minimize_scalar(value, bounds=(np.log(1e-4), np.log(10.0)), options={"xatol": 0.05})
        return float(np.exp(found.x))

    def _fewer_rows(self, X: np.ndarray, relevance: Relevance) -> tuple[np.ndarray, Relevance]:
        """At most ``max_items`` rows, which are the queries too."""
        if len(X) <= self.max_items:
            return X, relevance
        order = check_random_state(self.random_state).permutation(len(X))
        rows = np.sort(order[: self.max_items])
        part = relevance[rows]
        return X[rows], part.take_queries(part.trainable)

    def _groups(
        self, relevance: Relevance, X: np.ndarray, queries: np.ndarray | None
    ) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Queries in order, cut where their judgments would fill half of the items; and the items.

        All judged items of a group take part, and of the others those nearest to its queries.
        """
        numbers = np.arange(relevance.n_queries)
        if queries is None or (relevance.own_items >= 0).any():
            return [(numbers, None)]
        group_of = np.zeros_like(numbers)
        if relevance.n_items > self.max_items:
            sizes = np.diff(relevance.indptr)[relevance.rows]
            group_of = (np.cumsum(sizes) - sizes) // max(1, self.max_items // 2)
        enough = self.max_unjudged
        enough = enough_unjudged(numbers.size) if enough is None else enough
        unmapped = np.eye(X.shape[1], dtype=X.dtype)
        index = Index(X, BilinearMetric(unmapped, unmapped) if self.side == "query" else None)
        groups: list[tuple[np.ndarray, np.ndarray | None]] = []
        for group in np.unique(group_of):
            members = numbers[group_of == group]
            judged = np.unique(relevance.take_queries(members).items)
            most = min(enough, max(0, self.max_items - judged.size))
            if judged.size + most >= relevance.n_items:
                groups.append((members, None))
                continue
            others = nearest_items(index, queries[members], judged, most)
            groups.append((members, np.sort(np.concatenate((judged, others)))))
        return groups

    def _check_params(self) -> None:
        check_choice(self.side, "side", (*SIDES, "each"))
        if self.pull is not None:
            check_scalar(self.pull, "pull", Real, min_val=0)
        check_scalar(self.tol, "tol", Real, min_val=0)
        check_scalar(self.whiten, "whiten", Real, min_val=0, max_val=2)
        if np.size(self.sharpness) == 0:
            raise ValueError("sharpness must be a number or several: got none.")
        for sharpness in np.atleast_1d(self.sharpness).tolist():
            check_scalar(sharpness, "sharpness", Real, min_val=0, include_boundaries="neither")
        check_choice(self.gain, "gain", GAINS)
        if self.max_unjudged is not None:
            check_scalar(self.max_unjudged, "max_unjudged", Integral, min_val=0)
        for name in ("max_iter", "max_items", "max_memory"):
            check_scalar(getattr(self, name), name, Integral, min_val=1)
        if self.temperature is not None:
            check_scalar(
                self.temperature, "temperature", Real, min_val=0, include_boundaries="neither"
            )
