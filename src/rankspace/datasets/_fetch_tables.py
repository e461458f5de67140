"""Labelled vectors: UCI tables, digits, faces."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._checks import check_equal, class_counts
from ._dataset import Dataset, consecutive, labelled
from ._folder import download, files_of, has_files

Table = tuple[np.ndarray, np.ndarray]


class _Recipe(NamedTuple):
    """How to read a table, and the class counts of each of its parts."""

    read: Callable[[list[Path]], Table]
    n_features: int
    counts: dict[str, list[int]]
    description: str
    fetch: Callable[[Path], Table] | None = None


def fetch_ionosphere() -> Dataset:
    """Ionosphere (UCI): 351 radar returns of 34 features, classes "g" and "b".

    Looked for in the data folder (``RANKSPACE_DATA``), else downloaded from OpenML.

    Returns
    -------
    Dataset
        Items are relevant to those of the same class. Column 1 is constant.

    Examples
    --------
    >>> from rankspace.datasets import fetch_ionosphere
    >>> fetch_ionosphere()  # doctest: +SKIP
    Dataset('ionosphere', 351 items x 34 features, 351 queries)
    """
    return _fetch("ionosphere")


def fetch_isolet() -> Dataset:
    """ISOLET (UCI): 7797 spoken letters of 617 features, classes 1 to 26.

    Looked for in the data folder (``RANKSPACE_DATA``), else downloaded from OpenML.

    Returns
    -------
    Dataset
        With the splits "train" (speaker groups 1 to 4) and "test" (group 5).

    Examples
    --------
    >>> from rankspace.datasets import fetch_isolet
    >>> fetch_isolet()  # doctest: +SKIP
    Dataset('isolet', 7797 items x 617 features, 7797 queries)
    """
    return _fetch("isolet")


def fetch_covertype() -> Dataset:
    """Covertype (UCI): 581012 patches of forest of 54 features, classes 1 to 7.

    Looked for in the data folder (``RANKSPACE_DATA``), else downloaded by scikit-learn.

    Returns
    -------
    Dataset
        ``X`` is float32, which holds all values exactly.

    Examples
    --------
    >>> from rankspace.datasets import fetch_covertype
    >>> fetch_covertype()  # doctest: +SKIP
    Dataset('covertype', 581012 items x 54 features, 581012 queries)
    """
    return _fetch("covertype")


def fetch_mnist() -> Dataset:
    """MNIST: 70000 digits of 28 x 28 pixels, 10 classes.

    Looked for in the data folder (``RANKSPACE_DATA``), else downloaded from OpenML.

    Returns
    -------
    Dataset
        Grey values 0 to 255 as float32, with the splits "train" and "test".

    Examples
    --------
    >>> from rankspace.datasets import fetch_mnist
    >>> fetch_mnist()  # doctest: +SKIP
    Dataset('mnist', 70000 items x 784 features, 70000 queries)
    """
    return _fetch("mnist")


def fetch_usps() -> Dataset:
    """USPS: 9298 digits of 16 x 16 pixels, 10 classes.

    Looked for in the data folder (``RANKSPACE_DATA``), else downloaded from OpenML.

    Returns
    -------
    Dataset
        Grey values -1 to 1, with the splits "train" and "test".

    Examples
    --------
    >>> from rankspace.datasets import fetch_usps
    >>> fetch_usps()  # doctest: +SKIP
    Dataset('usps', 9298 items x 256 features, 9298 queries)
    """
    return _fetch("usps")


def fetch_umist() -> Dataset:
    """UMIST: 575 faces of 32 x 32 pixels, 20 persons.

    Looked for in the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        Grey values 0 to 255; items are relevant to those of the same person.

    Examples
    --------
    >>> from rankspace.datasets import fetch_umist
    >>> fetch_umist()  # doctest: +SKIP
    Dataset('umist', 575 items x 1024 features, 575 queries)
    """
    return _fetch("umist")


def fetch_binary_alphadigits() -> Dataset:
    """Binary Alphadigits: 1404 characters of 20 x 16 black or white pixels, 36 classes.

    Looked for in the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        Items are relevant to those of the same character.

    Examples
    --------
    >>> from rankspace.datasets import fetch_binary_alphadigits
    >>> fetch_binary_alphadigits()  # doctest: +SKIP
    Dataset('binary_alphadigits', 1404 items x 320 features, 1404 queries)
    """
    return _fetch("binary_alphadigits")


def fetch_imagenet_frml() -> Dataset:
    """Subset of ImageNet that the FRML paper was tested on: 300 images, 3 classes, 5 folds.

    Looked for in the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        ``X`` holds histograms of 1000 visual words that sum to 1. ``dataset.fold(i)`` gives the
        rows of fold 1 to 5: 180 "train", 60 "vali", 60 "test".

    References
    ----------
    Lim and Lanckriet. Efficient learning of Mahalanobis metrics for ranking. ICML 2014.

    Examples
    --------
    >>> from rankspace.datasets import fetch_imagenet_frml
    >>> fetch_imagenet_frml()  # doctest: +SKIP
    Dataset('imagenet_frml', 300 items x 1000 features, 300 queries)
    """
    from scipy.io import loadmat

    folds = loadmat(files_of("imagenet_frml")[0])["folds"][0]
    roles = {"train": "train", "vali": "validation", "test": "test"}
    splits = {
        f"fold{number}.{role}": fold[f"{name}_indices"].ravel().astype(np.int64) - 1
        for number, fold in enumerate(folds, 1)
        for role, name in roles.items()
    }
    order = np.argsort(np.concatenate([splits[f"fold1.{role}"] for role in roles]))
    X = np.hstack([folds[0][name] for name in ("Ktrain", "Kval", "Ktest")]).T[order]
    labels = np.vstack([folds[0][name] for name in ("Ytrain", "Yval", "Ytest")])[
        order, 0
    ]
    check_equal("imagenet_frml", "rows and columns", (300, 1000), X.shape)
    check_equal("imagenet_frml", "class counts", [100, 100, 100], class_counts(labels))
    return labelled(
        "imagenet_frml",
        X,
        labels.astype(np.int64),
        splits=splits,
        description="ImageNet subset of the FRML authors: bags of visual words.",
    )


def _fetch(name: str) -> Dataset:
    recipe = _RECIPES[name]
    if local := recipe.fetch is None or has_files(name):
        X, labels = recipe.read(files_of(name))
    else:
        X, labels = download(name, recipe.fetch)
    sizes = {part: sum(counts) for part, counts in recipe.counts.items()}
    check_equal(
        name, "rows and columns", (sum(sizes.values()), recipe.n_features), X.shape
    )
    totals = np.sum(list(recipe.counts.values()), axis=0).tolist()
    check_equal(name, "class counts", totals, class_counts(labels))
    splits = consecutive(sizes) if len(sizes) > 1 else {}
    found = {part: class_counts(labels[rows]) for part, rows in splits.items()}
    if found and found != recipe.counts:
        if local:
            check_equal(name, "class counts of the parts", recipe.counts, found)
        # OpenML does not promise the order of the rows, and without it there are no parts.
        splits = {}
    return labelled(name, X, labels, splits=splits, description=recipe.description)


def _read_ionosphere(paths: list[Path]) -> Table:
    table = np.loadtxt(paths[0], delimiter=",", dtype=str)
    return table[:, :-1].astype(np.float64), table[:, -1]


def _read_isolet(paths: list[Path]) -> Table:
    table = np.vstack([np.loadtxt(path, delimiter=",") for path in paths])
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)


def _read_covertype(paths: list[Path]) -> Table:
    table = np.loadtxt(paths[0], delimiter=",", dtype=np.float32)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)


def _read_usps(paths: list[Path]) -> Table:
    table = np.vstack([np.loadtxt(path) for path in paths])
    return np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(np.int64)


def _read_mnist(paths: list[Path]) -> Table:
    images = [_read_idx(path, header=16).reshape(-1, 784) for path in paths[::2]]
    labels = [_read_idx(path, header=8) for path in paths[1::2]]
    return np.vstack(images).astype(np.float32), np.concatenate(labels).astype(np.int64)


def _read_idx(path: Path, header: int) -> np.ndarray:
    with gzip.open(path, "rb") as stream:
        return np.frombuffer(stream.read(), dtype=np.uint8, offset=header)


def _read_mat(paths: list[Path]) -> Table:
    from scipy.io import loadmat

    table = loadmat(paths[0])
    return table["fea"].astype(np.float64), table["gnd"].ravel().astype(np.int64)


def _openml(
    data_id: int, shift: int = 0, dtype: type = np.float64
) -> Callable[[Path], Table]:
    """A download of whole-numbered classes, the numbers moved by `shift`."""

    def fetch(home: Path) -> Table:
        X, labels = _openml_table(data_id, home)
        return X.astype(dtype), labels.astype(np.float64).astype(np.int64) + shift

    return fetch


def _openml_table(data_id: int, home: Path) -> Table:
    from sklearn.datasets import fetch_openml

    parser = "pandas" if find_spec("pandas") else "liac-arff"
    bunch = fetch_openml(
        data_id=data_id,
        data_home=home,
        as_frame=False,
        n_retries=1,
        delay=0.1,
        parser=parser,
    )
    return bunch.data, bunch.target.astype(str)


def _sklearn_covertype(home: Path) -> Table:
    from sklearn.datasets import fetch_covtype

    bunch = fetch_covtype(data_home=home, n_retries=1, delay=0.1)
    return bunch.data.astype(np.float32), bunch.target.astype(np.int64)


_RECIPES = {
    "ionosphere": _Recipe(
        _read_ionosphere,
        34,
        {"all": [126, 225]},
        "Ionosphere (UCI): radar returns.",
        lambda home: _openml_table(59, home),
    ),
    "isolet": _Recipe(
        _read_isolet,
        617,
        {"train": [240] * 5 + [238] + [240] * 20, "test": [60] * 12 + [59] + [60] * 13},
        "ISOLET (UCI): spoken letters.",
        _openml(300),
    ),
    "covertype": _Recipe(
        _read_covertype,
        54,
        {"all": [211840, 283301, 35754, 2747, 9493, 17367, 20510]},
        "Covertype (UCI): forest cover from cartographic variables.",
        _sklearn_covertype,
    ),
    "mnist": _Recipe(
        _read_mnist,
        784,
        {
            "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
            "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        },
        "MNIST: handwritten digits, grey values 0 to 255.",
        _openml(554, dtype=np.float32),
    ),
    "usps": _Recipe(
        _read_usps,
        256,
        {
            "train": [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644],
            "test": [359, 264, 198, 166, 200, 160, 170, 147, 166, 177],
        },
        "USPS: digits of postal codes, grey values -1 to 1.",
        # OpenML numbers the digits 0 to 9 from 1 to 10.
        _openml(41082, shift=-1),
    ),
    "umist": _Recipe(
        _read_mat,
        1024,
        {
            "all": [
                38,
                35,
                26,
                24,
                26,
                23,
                19,
                22,
                20,
                32,
                34,
                34,
                26,
                30,
                19,
                26,
                26,
                33,
                48,
                34,
            ]
        },
        "UMIST: faces of 32 x 32 pixels, from profile to front.",
    ),
    "binary_alphadigits": _Recipe(
        _read_mat,
        320,
        {"all": [39] * 36},
        "Binary Alphadigits: 0 to 9 and A to Z.",
    ),
}
