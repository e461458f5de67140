"""Learning-to-rank candidate lists with grades: the LETOR collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ._catalogue import CATALOGUE
from ._dataset import Dataset, consecutive
from ._folder import check_equal, locate
from ._letor import Rows, candidate_lists, read_rows

PARTS = ("S1", "S2", "S3", "S4", "S5")
OHSUMED_FOLDERS = {"query-level-norm": "QueryLevelNorm", "minimum": "Feature-min"}


def fetch_mq2008() -> Dataset:
    """MQ2008 (LETOR 4.0): 15211 documents of 784 queries, 46 features, grades 0 to 2.

    Read from the data folder (``RANKSPACE_DATA``). Features are scaled to 0..1 per query.

    Returns
    -------
    Dataset
        With the splits "S1" to "S5", and ``dataset.fold(i)`` for the rows of fold 1 to 5. The
        comment that names the document of a row is its entry in ``texts``.

    References
    ----------
    Qin and Liu. Introducing LETOR 4.0 datasets. arXiv:1306.2597, 2013.

    Examples
    --------
    >>> from rankspace.datasets import fetch_mq2008
    >>> fetch_mq2008()  # doctest: +SKIP
    Dataset('mq2008', 15211 items x 46 features, 784 queries)
    """
    files = CATALOGUE["mq2008"].files
    dataset = _fetch_parts("mq2008", files, "MQ2008, query-level normalised.")
    _check_lists(dataset, (15211, 46), 784)
    return dataset


def fetch_ohsumed(
    version: Literal["query-level-norm", "minimum"] = "query-level-norm",
) -> Dataset:
    """OHSUMED (LETOR 3.0): 16140 documents of 106 queries, 45 features, grades 0 to 2.

    Read from the data folder (``RANKSPACE_DATA``).

    Parameters
    ----------
    version : {"query-level-norm", "minimum"}, default="query-level-norm"
        Features scaled to 0..1 per query, or raw with the query's minimum for missing values.

    Returns
    -------
    Dataset
        With the splits "S1" to "S5", and ``dataset.fold(i)`` for the rows of fold 1 to 5. The
        comment that names the document of a row is its entry in ``texts``.

    Examples
    --------
    >>> from rankspace.datasets import fetch_ohsumed
    >>> fetch_ohsumed()  # doctest: +SKIP
    Dataset('ohsumed', 16140 items x 45 features, 106 queries)
    """
    if version not in OHSUMED_FOLDERS:
        raise ValueError(
            f"version must be one of {', '.join(OHSUMED_FOLDERS)}: got {version!r}."
        )
    folder = OHSUMED_FOLDERS[version]
    files = [file for file in CATALOGUE["ohsumed"].files if folder in file]
    dataset = _fetch_parts("ohsumed", files, f"OHSUMED, {version}.")
    _check_lists(dataset, (16140, 45), 106)
    return dataset


def _fetch_parts(name: str, files: Sequence[str], description: str) -> Dataset:
    """Read the parts S1 to S5, and stack them."""
    parts = [read_rows(path, comments=True) for path in locate(name, files)]
    comments = [comment for part in parts for comment in part.comments or ()]
    rows = Rows(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.grades for part in parts]),
        np.concatenate([part.qid for part in parts]),
        comments,
    )
    sizes = [part.qid.size for part in parts]
    splits = consecutive(dict(zip(PARTS, sizes, strict=True)))
    return candidate_lists(name, rows, splits=splits, description=description)


def _check_lists(dataset: Dataset, shape: tuple[int, int], n_queries: int) -> None:
    check_equal(dataset.name, "rows and columns", shape, dataset.X.shape)
    got = np.unique(np.asarray(dataset.qid)).size
    check_equal(dataset.name, "number of queries", n_queries, got)
