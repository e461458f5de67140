"""Labelled vectors for classification: UCI tables and handwritten digits."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .._engine.files import foreign_bytes
from ._catalogue import CATALOGUE
from ._dataset import Dataset, consecutive, labelled
from ._folder import check_equal, class_counts, download, has_files, locate

TABLE = "a table of numbers"
# Vectors and labels.
Table = tuple[np.ndarray, np.ndarray]

# Published number of rows of each class, by the split.
COUNTS = {
    "ionosphere": {"all": [126, 225]},
    "isolet": {
        "train": [240] * 5 + [238] + [240] * 20,
        "test": [60] * 12 + [59] + [60] * 13,
    },
    "covertype": {"all": [211840, 283301, 35754, 2747, 9493, 17367, 20510]},
    "mnist": {
        "train": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        "test": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    },
    "usps": {
        "train": [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644],
        "test": [359, 264, 198, 166, 200, 160, 170, 147, 166, 177],
    },
}


def fetch_ionosphere() -> Dataset:
    """Ionosphere (UCI): 351 radar returns of 34 features, classes "g" and "b".

    Read from the data folder (``RANKSPACE_DATA``), or downloaded from OpenML.

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
    description = "Ionosphere (UCI): radar returns."
    return _fetch("ionosphere", 34, _read_ionosphere, _openml_ionosphere, description)


def fetch_isolet() -> Dataset:
    """ISOLET (UCI): 7797 spoken letters of 617 features, classes 1 to 26.

    Read from the data folder (``RANKSPACE_DATA``), or downloaded from OpenML.

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
    description = "ISOLET (UCI): spoken letters."
    return _fetch("isolet", 617, _read_isolet, _openml_isolet, description)


def fetch_covertype() -> Dataset:
    """Covertype (UCI): 581012 patches of forest of 54 features, classes 1 to 7.

    Read from the data folder (``RANKSPACE_DATA``), or downloaded by scikit-learn.

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
    description = "Covertype (UCI): forest cover from cartographic variables."
    return _fetch("covertype", 54, _read_covertype, _sklearn_covertype, description)


def fetch_mnist() -> Dataset:
    """MNIST: 70000 digits of 28 x 28 pixels, 10 classes.

    Read from the data folder (``RANKSPACE_DATA``), or downloaded from OpenML.

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
    description = "MNIST: handwritten digits, grey values 0 to 255."
    return _fetch("mnist", 784, _read_mnist, _openml_mnist, description)


def fetch_usps() -> Dataset:
    """USPS: 9298 digits of 16 x 16 pixels, 10 classes.

    Read from the data folder (``RANKSPACE_DATA``), or downloaded from OpenML.

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
    description = "USPS: digits of postal codes, grey values -1 to 1."
    return _fetch("usps", 256, _read_usps, _openml_usps, description)


def _fetch(
    name: str,
    n_features: int,
    read: Callable[[list[Path]], Table],
    fetch: Callable[[Path], Table],
    description: str,
) -> Dataset:
    """Read a table from the data folder or download it, and check its published size."""
    files = CATALOGUE[name].files
    local = has_files(files)
    if local:
        X, labels = read(locate(name, files))
    else:
        X, labels = download(name, files, fetch)
    counts = COUNTS[name]
    sizes = {split: sum(rows) for split, rows in counts.items()}
    shape = (sum(sizes.values()), n_features)
    check_equal(name, "rows and columns", shape, X.shape)
    totals = np.sum(list(counts.values()), axis=0).tolist()
    check_equal(name, "class counts", totals, class_counts(labels))
    splits = {}
    if len(sizes) > 1:
        splits = _checked_splits(name, labels, sizes, local)
    return labelled(name, X, labels, splits=splits, description=description)


def _checked_splits(
    name: str, labels: np.ndarray, sizes: dict[str, int], local: bool
) -> dict[str, np.ndarray]:
    """The published splits, or none if a download came in another order."""
    splits = consecutive(sizes)
    got = {split: class_counts(labels[rows]) for split, rows in splits.items()}
    if local:
        check_equal(name, "class counts of the splits", COUNTS[name], got)
    # OpenML does not promise the order of the rows, and without it there are no splits.
    if got != COUNTS[name]:
        return {}
    return splits


def _read_ionosphere(paths: list[Path]) -> Table:
    with foreign_bytes(paths[0], TABLE):
        table = _read_text(paths[0], delimiter=",", dtype=str)
        return table[:, :-1].astype(np.float64), table[:, -1]


def _read_isolet(paths: list[Path]) -> Table:
    table = np.vstack([_read_numbers(path, delimiter=",") for path in paths])
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)


def _read_numbers(path: Path, **options: Any) -> np.ndarray:
    """The table of a text file, of finite numbers."""
    with foreign_bytes(path, TABLE):
        table = _read_text(path, **options)
        if not np.isfinite(table).all():
            raise ValueError("it has NaN or infinity")
        return table


def _read_text(path: Path, **options: Any) -> np.ndarray:
    with warnings.catch_warnings():
        # NumPy warns of a file without a row; its shape is refused later.
        warnings.simplefilter("ignore")
        return np.loadtxt(path, ndmin=2, **options)


def _read_covertype(paths: list[Path]) -> Table:
    table = _read_numbers(paths[0], delimiter=",", dtype=np.float32)
    return np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)


def _read_usps(paths: list[Path]) -> Table:
    table = np.vstack([_read_numbers(path) for path in paths])
    return np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(np.int64)


def _read_mnist(paths: list[Path]) -> Table:
    images = [_read_idx(path, header=16, width=784) for path in paths[::2]]
    labels = [_read_idx(path, header=8, width=1).ravel() for path in paths[1::2]]
    return np.vstack(images).astype(np.float32), np.concatenate(labels).astype(np.int64)


def _read_idx(path: Path, header: int, width: int) -> np.ndarray:
    with foreign_bytes(path, "a gzipped IDX file"), gzip.open(path, "rb") as stream:
        values = np.frombuffer(stream.read(), dtype=np.uint8, offset=header)
        return values.reshape(-1, width)


def _openml(data_id: int, home: Path) -> Table:
    """Download a table from OpenML; the classes are strings."""
    from sklearn.datasets import fetch_openml

    parser = "liac-arff"
    if find_spec("pandas"):
        parser = "pandas"
    bunch = fetch_openml(
        data_id=data_id,
        data_home=home,
        as_frame=False,
        n_retries=1,
        delay=0.1,
        parser=parser,
    )
    return bunch.data, bunch.target.astype(str)


def _openml_ionosphere(home: Path) -> Table:
    return _openml(59, home)


def _openml_isolet(home: Path) -> Table:
    X, labels = _openml(300, home)
    return X.astype(np.float64), _whole_numbers(labels)


def _openml_mnist(home: Path) -> Table:
    X, labels = _openml(554, home)
    return X.astype(np.float32), _whole_numbers(labels)


def _openml_usps(home: Path) -> Table:
    X, labels = _openml(41082, home)
    # OpenML numbers the digits 0 to 9 from 1 to 10.
    return X.astype(np.float64), _whole_numbers(labels) - 1


def _whole_numbers(labels: np.ndarray) -> np.ndarray:
    return labels.astype(np.float64).astype(np.int64)


def _sklearn_covertype(home: Path) -> Table:
    from sklearn.datasets import fetch_covtype

    bunch = fetch_covtype(data_home=home, n_retries=1, delay=0.1)
    return bunch.data.astype(np.float32), bunch.target.astype(np.int64)
