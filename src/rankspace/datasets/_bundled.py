"""Small data sets that need no download: from scikit-learn, by rule, or bundled."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ._beir import read_beir
from ._dataset import Dataset, labelled


def load_wine() -> Dataset:
    """Wine: 178 chemical analyses, 3 cultivars.

    Returns
    -------
    Dataset
        Items are relevant to those of the same class.

    Examples
    --------
    >>> from rankspace.datasets import load_wine
    >>> load_wine()
    Dataset('wine', 178 items x 13 features, 178 queries)
    """
    from sklearn.datasets import load_wine as load

    return _from_bunch(
        "wine", load(), "Wine recognition (UCI): 13 chemical measurements."
    )


def load_wdbc() -> Dataset:
    """Breast cancer Wisconsin (diagnostic): 569 cell images, 2 classes.

    Returns
    -------
    Dataset
        Items are relevant to those of the same class.

    Examples
    --------
    >>> from rankspace.datasets import load_wdbc
    >>> load_wdbc().X.shape
    (569, 30)
    """
    from sklearn.datasets import load_breast_cancer as load

    return _from_bunch("wdbc", load(), "Breast cancer Wisconsin, diagnostic (UCI).")


def load_digits() -> Dataset:
    """Digits: 1797 images of 8 x 8 pixels, 10 classes.

    Returns
    -------
    Dataset
        Items are relevant to those of the same class.

    Examples
    --------
    >>> from rankspace.datasets import load_digits
    >>> load_digits().X.shape
    (1797, 64)
    """
    from sklearn.datasets import load_digits as load

    return _from_bunch(
        "digits", load(), "Handwritten digits (UCI): grey values 0 to 16."
    )


def load_balance_scale() -> Dataset:
    """Balance scale: all 625 ways to load a scale, 3 classes.

    The torque of a side is weight times distance, and the label says which side is heavier: "L",
    "R", or "B" for balance. No linear metric separates the classes.

    Returns
    -------
    Dataset
        In the order of the UCI file. Items are relevant to those of the same class.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace.datasets import load_balance_scale
    >>> np.unique(load_balance_scale().labels, return_counts=True)
    (array(['B', 'L', 'R'], dtype='<U1'), array([ 49, 288, 288]))
    """
    X = np.array(list(itertools.product(range(1, 6), repeat=4)), dtype=np.float64)
    side = np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]).astype(int)
    names = ["left weight", "left distance", "right weight", "right distance"]
    return labelled(
        "balance_scale",
        X,
        np.array(["B", "L", "R"])[side],
        feature_names=names,
        description="Balance scale (UCI), computed from its rule.",
    )


def load_scifact_sample() -> Dataset:
    """SciFact, a sample: 1,109 scientific claims and 2,500 abstracts that may support them.

    Unit-length MiniLM embeddings. Claims are under CC BY 4.0, abstracts under ODC-By 1.0
    (Wadden et al., EMNLP 2020).

    Returns
    -------
    Dataset
        With the splits "train" and "test" of the claims, and titles as texts.

    Examples
    --------
    >>> from rankspace.datasets import load_scifact_sample
    >>> load_scifact_sample()
    Dataset('scifact_sample', 2500 items x 384 features, 1109 queries)
    """
    folder = Path(__file__).with_name("scifact_sample")
    rounded = read_beir(folder, name="scifact_sample")
    return replace(
        rounded,
        X=_unit(rounded.X),
        queries=_unit(rounded.queries),
        description="A sample of SciFact: claims, titles of abstracts, MiniLM embeddings.",
    )


def _unit(rounded: np.ndarray) -> np.ndarray:
    vectors = rounded.astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _from_bunch(name: str, bunch: Any, description: str) -> Dataset:
    return labelled(
        name,
        bunch.data,
        bunch.target,
        feature_names=[str(f) for f in bunch.feature_names],
        description=description,
    )
