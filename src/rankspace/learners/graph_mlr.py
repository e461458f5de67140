"""MLR with a graph-Laplacian regulariser: semi-supervised metric learning."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils import check_scalar

from .._engine.files import PathLike
from .._engine.parallel.threads import single_threaded_blas
from .._engine.vectors import power_of_two
from ..metrics.embedding import LinearMetric
from ..relevance.relevance import Relevance
from .mlr import MLR
from .solvers.graph import mutual_neighbors
from .solvers.scaling import Scaling


class GraphMLR(MLR):
    """Semi-supervised MLR: a graph-Laplacian regulariser keeps neighbours near each other.

    The regulariser of `MLR` is ``tr(W (I + graph_reg G))``. G is the mean of ``(x - z)(x - z)'``
    over the edges (x, z) of the graph of mutual nearest neighbours, times the number of features
    over the mean squared distance of all pairs. Rows without a label take part: pass
    ``Relevance.from_labels(y, unlabelled=-1, unjudged="ignore")``.

    This is `MLR` in another basis, so the oracles and the certificate are the same.

    Parameters
    ----------
    C : float or "auto", default=1000.0
        Weight of the violations; see `MLR`. Data are divided by their scale in the new basis.
    graph_reg : float, default=1.0
        Weight of the graph; with 0 this is `MLR`.
    n_neighbors : int, default=5
        Two rows are joined if each is among so many nearest neighbours of the other, by Euclidean
        distance.
    measure, tol, max_iter
        See `MLR`.
    scaling : {"auto", "standard"} or None, default="auto"
        Whether features are standardised, also for the graph; see `MLR`.
    batch_size, n_components, max_memory, checkpoint, random_state
        See `MLR`.

    Attributes
    ----------
    metric_, components_, C_, C_scores_, objective_, gap_, n_iter_, history_, scaling_
        As for `MLR`; the objective has the regulariser of this class.
    n_edges_ : int
        Number of edges of the graph.

    Notes
    -----
    The graph costs a search of n rows in n, and its sum O(n_edges d^2).

    References
    ----------
    D. Lim and G. Lanckriet, Efficient learning of Mahalanobis metrics for ranking, ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from rankspace import GraphMLR, Relevance
    >>> X, y = load_wine(return_X_y=True)
    >>> y[np.arange(178) % 5 > 0] = -1
    >>> relevance = Relevance.from_labels(y, unlabelled=-1, unjudged="ignore")
    >>> model = GraphMLR(measure="auc").fit(scale(X), relevance)
    >>> model.metric_
    LinearMetric(components (13, 13), similarity='euclidean')
    """

    constraint = "psd"
    blocks = None
    regularizer = "trace"
    prior = None

    def __init__(
        self,
        C: float | str = 1000.0,
        *,
        graph_reg: float = 1.0,
        n_neighbors: int = 5,
        measure: str = "map",
        tol: float = 0.01,
        max_iter: int = 200,
        scaling: str | None = "auto",
        batch_size: int | None = None,
        n_components: int | None = None,
        max_memory: int = 512,
        checkpoint: PathLike | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.graph_reg = graph_reg
        self.n_neighbors = n_neighbors
        self.measure = measure
        self.tol = tol
        self.max_iter = max_iter
        self.scaling = scaling
        self.batch_size = batch_size
        self.n_components = n_components
        self.max_memory = max_memory
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _fit_metric(
        self, X: np.ndarray, relevance: Relevance, queries: np.ndarray | None
    ) -> LinearMetric:
        check_scalar(self.graph_reg, "graph_reg", Real, min_val=0)
        check_scalar(self.n_neighbors, "n_neighbors", Integral, min_val=1)
        rows = X.astype(np.float64)
        # How products round depends on the number of their threads, and the fit amplifies it.
        with single_threaded_blas():
            self._basis = self._basis_of(X, rows)
            moved = rows @ self._basis.T
            if queries is not None:
                queries = queries.astype(np.float64) @ self._basis.T
        metric = super()._fit_metric(moved, relevance, queries)
        with single_threaded_blas():
            return self._moved_back(metric, X.dtype)

    def _basis_of(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The basis in which the regulariser is the trace, for rows in their own units."""
        spreads = super()._scaling(X).spreads
        if spreads is None:
            # Squares of very small numbers underflow; the basis does not depend on their unit.
            return self._graph_basis(rows / power_of_two(rows))
        return self._graph_basis(rows / spreads) / spreads

    def _scaling(self, X: np.ndarray) -> Scaling:
        """The scaling of rows in the new basis, which are standardised already."""
        return Scaling.of(X)

    def _moved_back(self, metric: LinearMetric, dtype: Any) -> LinearMetric:
        """The metric for points that are not in the new basis."""
        components = (metric.components @ self._basis).astype(dtype)
        return LinearMetric(components, parameters=metric.parameters)

    def _attributes(
        self, W: np.ndarray, cone: Any, scale: float, dtype: Any
    ) -> dict[str, Any]:
        attributes = super()._attributes(W, cone, scale, dtype)
        metric = self._moved_back(attributes["metric_"], dtype)
        return {**attributes, "metric_": metric, "components_": metric.components}

    def _graph_basis(self, X: np.ndarray) -> np.ndarray:
        """``(I + graph_reg G)^(-1/2)``: in this basis the regulariser is the trace."""
        edges = mutual_neighbors(X, self.n_neighbors)
        self.n_edges_ = len(edges)
        if not len(edges):
            return np.eye(X.shape[1])
        differences = X[edges[:, 0]] - X[edges[:, 1]]
        scatter = differences.T @ differences / len(edges)
        # The mean squared distance over the number of features.
        unit = 2 * X.var(axis=0).mean()
        values, vectors = scipy.linalg.eigh(scatter)
        shares = self.graph_reg * np.maximum(values, 0) / max(unit, 1e-300)
        return (vectors / np.sqrt(1 + shares)) @ vectors.T
