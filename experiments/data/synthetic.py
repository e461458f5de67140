"""Synthetic data sets of the papers whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.stats

from rankspace import Relevance
from rankspace.datasets import Dataset


def make_mlr_toy(
    n_samples: int = 200,
    *,
    n_classes: int = 2,
    noise: float = 30.0,
    spread: float = 0.2,
    random_state: Any = None,
) -> Dataset:
    """Points of the plane whose class depends on the vertical axis alone.

    The horizontal axis is noise of a large scale, which rules the Euclidean distance; a good
    metric ignores it. In the manner of figure 1 of the MLR paper.

    Parameters
    ----------
    n_samples : int, default=200
        Number of points, the same for each class up to one.
    n_classes : int, default=2
        Class ``c`` lies around height ``c``.
    noise : float, default=30.0
        Standard deviation of the horizontal axis.
    spread : float, default=0.2
        Standard deviation of the heights of a class.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Dataset

    References
    ----------
    McFee and Lanckriet. Metric learning to rank. ICML 2010.

    Examples
    --------
    >>> from experiments.data import make_mlr_toy
    >>> dataset = make_mlr_toy(100, random_state=0)
    >>> bool(dataset.X[:, 0].std() > 10 * dataset.X[:, 1].std())
    True
    """
    _check_count("n_classes", n_classes, 2)
    _check_count("n_samples", n_samples, n_classes)
    rng = np.random.default_rng(random_state)
    labels = rng.permutation(np.arange(n_samples) % n_classes)
    heights = labels + spread * rng.standard_normal(n_samples)
    X = np.column_stack([noise * rng.standard_normal(n_samples), heights])
    return Dataset(
        "mlr-toy",
        X,
        Relevance.from_labels(labels),
        labels=labels,
        feature_names=["noise", "signal"],
        description="The class depends on the second column, the first is large noise.",
    )


def make_gaussian_mixture(
    n_centers: int = 3,
    *,
    n_classes: int = 3,
    n_samples: int = 600,
    n_features: int = 2,
    n_queries: int = 10,
    spread: float = 1.0,
    random_state: Any = None,
) -> Dataset:
    """Candidate lists drawn from a Gaussian mixture with several centres for each grade.

    The grade of a point is the number of its class. With more than one centre a class, no single
    linear metric serves everywhere, but local ones do. In the manner of figure 2 of the L-GMML
    paper.

    Parameters
    ----------
    n_centers : int, default=3
        Centres of each class, uniform in a box of width ``10 * (n_centers * n_classes) **
        (1 / n_features)``.
    n_classes : int, default=3
        Grades 0 to ``n_classes - 1``.
    n_samples : int, default=600
        Number of points, the same for each centre up to one.
    n_features : int, default=2
        Dimension.
    n_queries : int, default=10
        Number of lists; each gets its points at random.
    spread : float, default=1.0
        Standard deviation around a centre.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Dataset
        With ``grades``, ``qid``, and the grades as whole ``labels``.

    References
    ----------
    Su, King and Lyu. Learning to rank using localized geometric mean metrics. SIGIR 2017.

    Examples
    --------
    >>> from experiments.data import make_gaussian_mixture
    >>> make_gaussian_mixture(2, n_samples=60, n_queries=3, random_state=0)
    Dataset('gaussian-mixture', 60 items x 2 features, 3 queries)
    """
    _check_count("n_centers", n_centers, 1)
    _check_count("n_classes", n_classes, 2)
    _check_count("n_queries", n_queries, 1)
    _check_count("n_features", n_features, 1)
    _check_count("n_samples", n_samples, max(n_centers * n_classes, n_queries))
    rng = np.random.default_rng(random_state)
    n_all = n_centers * n_classes
    centers = rng.uniform(0, 10 * n_all ** (1 / n_features), (n_all, n_features))
    center = rng.permutation(np.arange(n_samples) % n_all)
    X = centers[center] + spread * rng.standard_normal((n_samples, n_features))
    labels = center % n_classes
    qid = np.sort(np.arange(n_samples) % n_queries)
    return Dataset(
        "gaussian-mixture",
        X,
        Relevance.from_groups(labels, qid),
        labels=labels,
        qid=qid,
        grades=labels.astype(np.float64),
        description="Gaussian mixture; the grade is the number of the class.",
    )


def make_class_mixture(
    n_classes: int = 10,
    *,
    n_samples: int = 2000,
    n_features: int = 10,
    width: float = 3.0,
    random_state: Any = None,
) -> Dataset:
    """A normal mixture whose label is the number of the class, for queries by example.

    Each class has a centre and a covariance of its own, and its points lie within the ellipsoid
    that holds 95 % of its normal distribution. Items are relevant to those of their class. In the
    manner of figure 2 of the L-GMML paper, which names the classes, the label and the 95 %, and no
    sizes.

    Parameters
    ----------
    n_classes : int, default=10
        Number of classes, each with one centre, uniform in a box.
    n_samples : int, default=2000
        Number of points, the same for each class up to one.
    n_features : int, default=10
        Dimension.
    width : float, default=3.0
        Width of the box of centres. Standard deviations of a class are between 0.1 and 3.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Dataset
        With ``labels``.

    References
    ----------
    Su, King and Lyu. Learning to rank using localized geometric mean metrics. SIGIR 2017.

    Examples
    --------
    >>> from experiments.data import make_class_mixture
    >>> make_class_mixture(4, n_samples=60, random_state=0)
    Dataset('class-mixture', 60 items x 10 features, 60 queries)
    """
    _check_count("n_classes", n_classes, 2)
    _check_count("n_features", n_features, 1)
    _check_count("n_samples", n_samples, 2 * n_classes)
    rng = np.random.default_rng(random_state)
    labels = rng.permutation(np.arange(n_samples) % n_classes)
    centers = rng.uniform(0, width, (n_classes, n_features))
    limit = scipy.stats.chi2.ppf(0.95, n_features)
    X = np.empty((n_samples, n_features))
    for label, center in enumerate(centers):
        rows = np.flatnonzero(labels == label)
        axes = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
        spread = np.exp(rng.uniform(np.log(0.1), np.log(3), n_features))
        # 95 % lie within: twice as many, and 20, are enough.
        drawn = rng.standard_normal((2 * rows.size + 20, n_features))
        within = drawn[np.sum(drawn**2, axis=1) <= limit][: rows.size]
        X[rows] = center + (within * spread) @ axes.T
    return Dataset(
        "class-mixture",
        X,
        Relevance.from_labels(labels),
        labels=labels,
        description="Normal mixture; items are relevant to those of their class.",
    )


def _check_count(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be at least {least}: got {value}.")
