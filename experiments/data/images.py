"""Labelled images: faces, characters, and the ImageNet subset of the FRML paper."""

from __future__ import annotations

import numpy as np
from scipy.io import loadmat

from rankspace import Relevance
from rankspace.datasets import Dataset
from rankspace.datasets._folder import check_equal, class_counts, locate

UMIST_COUNTS = [
    38, 35, 26, 24, 26, 23, 19, 22, 20, 32, 34, 34, 26, 30, 19, 26, 26, 33, 48, 34
]  # fmt: skip


def fetch_umist() -> Dataset:
    """UMIST: 575 faces of 32 x 32 pixels, 20 persons.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        Grey values 0 to 255; items are relevant to those of the same person.
    """
    return _read_mat("umist", "umist/UMIST_32x32.mat", 1024, UMIST_COUNTS)


def fetch_binary_alphadigits() -> Dataset:
    """Binary Alphadigits: 1404 characters of 20 x 16 black or white pixels, 36 classes.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        Items are relevant to those of the same character.
    """
    file = "binaryalphadigs/binaryalphadigs.mat"
    return _read_mat("binary_alphadigits", file, 320, [39] * 36)


def _read_mat(name: str, file: str, n_features: int, counts: list[int]) -> Dataset:
    table = loadmat(locate(name, [file])[0])
    X = table["fea"].astype(np.float64)
    labels = table["gnd"].ravel().astype(np.int64)
    check_equal(name, "rows and columns", (sum(counts), n_features), X.shape)
    check_equal(name, "class counts", counts, class_counts(labels))
    return Dataset(name, X, Relevance.from_labels(labels), labels=labels)


def fetch_imagenet_frml() -> Dataset:
    """Subset of ImageNet that the FRML paper was tested on: 300 images, 3 classes, 5 folds.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        ``X`` holds histograms of 1000 visual words that sum to 1. ``dataset.fold(i)`` gives the
        rows of fold 1 to 5: 180 "train", 60 "vali", 60 "test".

    References
    ----------
    Lim and Lanckriet. Efficient learning of Mahalanobis metrics for ranking. ICML 2014.
    """
    (path,) = locate("imagenet_frml", ["imagenet-frml/IN300_folds.mat"])
    folds = loadmat(path)["folds"][0]
    roles = {"train": "train", "vali": "validation", "test": "test"}
    splits = {
        f"fold{number}.{role}": fold[f"{name}_indices"].ravel().astype(np.int64) - 1
        for number, fold in enumerate(folds, 1)
        for role, name in roles.items()
    }
    # The file orders the rows by the first fold: undo that.
    order = np.argsort(np.concatenate([splits[f"fold1.{role}"] for role in roles]))
    X = np.hstack([folds[0][name] for name in ("Ktrain", "Kval", "Ktest")]).T[order]
    labels = np.vstack([folds[0][name] for name in ("Ytrain", "Yval", "Ytest")])
    labels = labels[order, 0].astype(np.int64)
    check_equal("imagenet_frml", "rows and columns", (300, 1000), X.shape)
    check_equal("imagenet_frml", "class counts", [100, 100, 100], class_counts(labels))
    relevance = Relevance.from_labels(labels)
    return Dataset("imagenet_frml", X, relevance, labels=labels, splits=splits)
