"""Metric learning by a geometric mean (Zadeh, Hosseini and Sra, 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array, check_random_state, check_scalar
from sklearn.utils.validation import validate_data

from .._engine.checks import check_choice, check_finite
from .._engine.parallel import use_backend
from .._engine.vectors import power_of_two
from ..evaluation.measures import evaluate
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from ..relevance.rows import check_weights
from ..relevance.splits import Split, choice_folds, sample_data
from ..search.index import Index
from .base import FLOATS
from .fit_data import WeightedFit
from .linear import LinearRanker
from .solvers.geometric.mean import geodesic, mean_factor
from .solvers.geometric.scatter import Scatter, all_pairs, given_pairs, sampled_pairs
from .solvers.points import lazy_points
from .solvers.scaling import Scaling
from .standardising import chosen_scaling, scaling_card

AUTO = "auto"
# What is used where nothing can be chosen, and what "auto" chooses from.
DEFAULT_T = 0.5
DEFAULT_REG = 0.01
TS = (0.0, 0.25, 0.5, 0.75, 1.0)
REGS = (1e-3, 1e-2, 1e-1, 1.0)
MAX_ITEMS = 1000  # items, and queries, that t and reg are chosen on
SEED = 0  # of the folds, so that equal data give equal metrics


class GMML(WeightedFit, LinearRanker):
    """Metric learning by the geometric mean of two scatter matrices, in closed form.

    With S the mean scatter of similar pairs and D that of dissimilar ones, the metric is
    ``W = inv(S) #_t D``, the point at ``t`` on the geodesic from inv(S) to D. At ``t = 1/2`` it is
    the one solution of ``W S W = D``, which keeps similar pairs near under W and dissimilar ones
    near under inv(W).

    Parameters
    ----------
    t : float or "auto", default="auto"
        Position on the geodesic, from 0 (only similar pairs count) to 1 (only dissimilar ones).
        "auto" chooses 0, 0.25, 0.5, 0.75 or 1 by the MAP of held-out queries, in 3-fold
        cross-validation, on 1,000 random items if there are more. Where that is impossible (pairs,
        or fewer than 10 queries to learn from), it is 0.5.
    reg : float or "auto", default="auto"
        Share of the prior that is added to S and D, relative to their traces. It means the same on
        any scale, and lets S be singular, as when there are more features than pairs. "auto"
        chooses 0.001, 0.01, 0.1 or 1 together with ``t``, or else 0.01.
    prior : array-like of shape (n_features, n_features), optional
        A positive definite matrix to stay near; the larger ``reg``, the nearer. By default the
        identity, on standardised features if they are standardised.
    scaling : {"auto", "standard"} or None, default="auto"
        Whether features are standardised before learning; see `MLR`.
    n_pairs : int, optional
        Number of random pairs of each kind. By default all pairs are used, which costs no more.
    random_state : int, RandomState or None, default=None
        Seed of the random pairs.

    Attributes
    ----------
    metric_ : LinearMetric
        The learned metric.
    components_ : ndarray of shape (n_features, n_features)
        L with ``W = L'L``.
    t_, reg_ : float
        The values used.
    scaling_ : {"standard", "none"}
        Whether features were standardised.

    Notes
    -----
    Fitting n points of d features costs two products O(n d^2), one Cholesky factor and one
    eigenproblem O(d^3). Choosing costs the same again for each ``reg`` and fold, and a search of
    the held-out queries for each pair of values: about a second in all. Graded judgments are
    relevant or not, by ``min_relevant_grade``.

    References
    ----------
    P. Zadeh, R. Hosseini and S. Sra, Geometric mean metric learning, ICML 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import GMML
    >>> X, y = load_wine(return_X_y=True)
    >>> bool(GMML().fit(scale(X), y).score(scale(X), y) > 0.9)
    True
    """

    def __init__(
        self,
        t: float | str = "auto",
        *,
        reg: float | str = "auto",
        prior: Any = None,
        scaling: str | None = "auto",
        n_pairs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.t = t
        self.reg = reg
        self.prior = prior
        self.scaling = scaling
        self.n_pairs = n_pairs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        queries: Any = None,
        qid: Any = None,
    ) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features) or (n_pairs, 2, n_features)
            Items, or pairs of points.
        y : array-like of shape (n_items,) or (n_pairs,), or Relevance
            Class labels or who is relevant to whom; for pairs 1 if they are similar, else -1.
        sample_weight : array-like, optional
            Weight of each query, see `MLR`; for pairs the weight of each pair.
        queries : array-like of shape (n_queries, n_features), optional
            Queries that are not rows of ``X``; then ``y`` must be a `Relevance` with as many.
        qid : array-like of shape (n_items,), optional
            Not supported: queries of candidate lists have no vectors. Use `LGMML`.

        Returns
        -------
        self
        """
        ndim = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
        if ndim == 3:
            return self._fit_pairs(np.asarray(X), y, sample_weight)
        return super().fit(X, y, sample_weight, queries=queries, qid=qid)

    def _fit_pairs(self, pairs: np.ndarray, y: Any, sample_weight: Any) -> Self:
        check_finite(self.get_params(deep=False))
        if pairs.shape[1] != 2:
            raise ValueError(
                f"pairs must have shape (n_pairs, 2, n_features): got {pairs.shape}."
            )
        rows = validate_data(self, pairs.reshape(-1, pairs.shape[2]), dtype=FLOATS)
        signs = np.asarray(y)
        if signs.shape != (len(pairs),) or set(np.unique(signs).tolist()) != {-1, 1}:
            raise ValueError(
                f"y must be 1 or -1 for each of {len(pairs)} pairs, and both must occur: got shape "
                f"{signs.shape} and values {np.unique(signs)[:5]}."
            )
        differences = np.subtract(rows[::2], rows[1::2], dtype=np.float64)
        spreads = None
        if (rows != rows[0]).any():
            spreads = chosen_scaling(self, rows).spreads
        if spreads is not None:
            differences /= spreads
        scale = power_of_two(differences)
        weights = check_weights(sample_weight, len(pairs))
        scatter = given_pairs(differences / scale, signs == 1, weights)
        self._check_params(len(scatter.similar))
        self._choose(None)
        self._store_metric(self._geometric_mean(scatter, scale, spreads, rows.dtype))
        return self

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        self._check_params(X.shape[1])
        scaling = chosen_scaling(self, X)._replace(dtype=np.float64)
        self._choose((X, relevance, queries))
        points = lazy_points(X, relevance, queries, scaling)
        if self.n_pairs is None:
            scatter = all_pairs(points, relevance)
        else:
            check_scalar(self.n_pairs, "n_pairs", Integral, min_val=1)
            random = check_random_state(self.random_state)
            scatter = sampled_pairs(points, relevance, int(self.n_pairs), random)
        return self._geometric_mean(scatter, scaling.scale, scaling.spreads, X.dtype)

    def _geometric_mean(
        self, scatter: Scatter, scale: float, spreads: np.ndarray | None, dtype: Any
    ) -> LinearMetric:
        """The metric, for unscaled data, of the scatter of scaled data."""
        components = mean_factor(*self._ends(scatter, self.reg_, spreads), self.t_)
        parameters = {"method": "GMML", "t": self.t_, "reg": self.reg_}
        parameters |= scaling_card(self)
        # S and D of the data themselves are scale**2 times these.
        components = components / scale ** (1 - 2 * self.t_)
        if spreads is not None:
            components /= spreads
        return LinearMetric(components.astype(dtype), parameters=parameters)

    def _ends(
        self, scatter: Scatter, reg: float, spreads: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The regularised scatters of similar and of dissimilar pairs."""
        prior = self._check_prior(len(scatter.similar))
        if prior is not None and spreads is not None:
            prior = prior * np.multiply.outer(spreads, spreads)
        inverse = None if prior is None else np.linalg.inv(prior)
        return (
            regularised(scatter.similar, reg, inverse),
            regularised(scatter.dissimilar, reg, prior),
        )

    # ------------------------------------------------------------------ t and reg

    def _choose(self, data: tuple[Any, Relevance, Any] | None) -> None:
        """Set ``t_`` and ``reg_``: those given, or those of the best cross-validation score."""
        self.t_ = DEFAULT_T if self.t == AUTO else float(self.t)
        self.reg_ = DEFAULT_REG if self.reg == AUTO else float(self.reg)
        if data is None or AUTO not in (self.t, self.reg):
            return
        ts = TS if self.t == AUTO else (self.t_,)
        regs = REGS if self.reg == AUTO else (self.reg_,)
        scores = np.zeros((len(regs), len(ts)))
        # Folds are small, and workers far away.
        with use_backend("threads"):
            for split in choice_folds(*sample_data(*data, MAX_ITEMS, SEED), SEED):
                scores += self._scores(split, regs, ts)
        if scores.any():
            best, at = np.unravel_index(np.argmax(scores), scores.shape)
            self.reg_ = regs[best]
            self.t_ = ts[at]

    def _scores(
        self, split: Split, regs: Sequence[float], ts: Sequence[float]
    ) -> np.ndarray:
        """MAP of the held-out queries of a fold for each reg and t; 0 if it cannot be learned."""
        scores = np.zeros((len(regs), len(ts)))
        try:
            scaling = Scaling.of(split.X, kind=self.scaling_)
            scaling = scaling._replace(dtype=np.float64)
            points = lazy_points(split.X, split.relevance, split.queries, scaling)
            scatter = all_pairs(points, split.relevance)
            ends = [
                geodesic(*self._ends(scatter, reg, scaling.spreads)) for reg in regs
            ]
        except ValueError:
            # A part of the data may be singular where all are not: the fit itself will say.
            return scores
        items = scaling.apply(split.X)
        held_out = scaling.apply(split.points)
        for i, (rows, values) in enumerate(ends):
            mapped = items @ rows.T, held_out @ rows.T
            for j, t in enumerate(ts):
                stretch = values ** (t / 2)
                blocks = Index(mapped[0] * stretch).blocks(mapped[1] * stretch)
                scores[i, j] = evaluate(blocks, split.judged, "map").means["map"]
        return scores

    def _check_params(self, n_features: int) -> None:
        for name in ("t", "reg"):
            value = getattr(self, name)
            if isinstance(value, str):
                check_choice(value, name, (AUTO,))
        if self.t != AUTO:
            check_scalar(self.t, "t", Real, min_val=0, max_val=1)
        if self.reg != AUTO:
            check_scalar(self.reg, "reg", Real, min_val=0)
        self._check_prior(n_features)

    def _check_prior(self, n_features: int) -> np.ndarray | None:
        if self.prior is None:
            return None
        prior = check_array(self.prior, dtype=np.float64, input_name="prior")
        if prior.shape != (n_features, n_features) or not np.allclose(prior, prior.T):
            raise ValueError(
                f"prior must be a symmetric matrix of {n_features} rows: got shape {prior.shape}."
            )
        if np.linalg.eigvalsh(prior)[0] <= 0:
            raise ValueError(
                "prior must be positive definite: an eigenvalue is not above 0."
            )
        return prior


def regularised(
    scatter: np.ndarray, reg: float, prior: np.ndarray | None
) -> np.ndarray:
    """The scatter, regularised by ``reg`` times its trace of the prior, or of the identity."""
    d = len(scatter)
    trace = np.trace(scatter)
    if not trace > 0:
        raise ValueError(
            "pairs must differ: all similar or all dissimilar pairs are equal points."
        )
    if prior is None:
        return scatter + reg * trace / d * np.eye(d)
    return scatter + reg * trace / np.trace(prior) * prior
