"""Candidate lists with grades: the LETOR collections and their like."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ._checks import check_equal, check_lists
from ._dataset import Dataset, consecutive
from ._folder import files_of
from ._letor import Rows, candidate_lists, read_rows

PARTS = ("S1", "S2", "S3", "S4", "S5")
OHSUMED_FOLDERS = {"query-level-norm": "QueryLevelNorm", "minimum": "Feature-min"}


def fetch_mq2008() -> Dataset:
    """MQ2008 (LETOR 4.0): 15211 documents of 784 queries, 46 features, grades 0 to 2.

    Looked for in the data folder (``RANKSPACE_DATA``). Features are scaled to 0..1 per query.

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
    dataset = _fetch_parts("mq2008", "", "MQ2008, query-level normalised.")
    check_lists("mq2008", dataset.X, dataset.qid, (15211, 46), 784)
    return dataset


def fetch_ohsumed(
    version: Literal["query-level-norm", "minimum"] = "query-level-norm",
) -> Dataset:
    """OHSUMED (LETOR 3.0): 16140 documents of 106 queries, 45 features, grades 0 to 2.

    Looked for in the data folder (``RANKSPACE_DATA``).

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
    dataset = _fetch_parts("ohsumed", OHSUMED_FOLDERS[version], f"OHSUMED, {version}.")
    check_lists("ohsumed", dataset.X, dataset.qid, (16140, 45), 106)
    return dataset


def fetch_mslr_sample() -> Dataset:
    """Sample of MSLR-WEB: 165 queries, 136 raw features, grades 0 to 4.

    Looked for in the data folder (``RANKSPACE_DATA``). The six files share 12 queries: a query is
    taken from the first file that has it, in the order of the list of files (training files,
    validation, test), and its rows in later files are dropped. So no query is in two splits.

    Returns
    -------
    Dataset
        With the splits "train", "vali" and "test". The last query of a file that was cut after
        5000 lines may lack documents.

    Examples
    --------
    >>> from rankspace.datasets import fetch_mslr_sample
    >>> fetch_mslr_sample()  # doctest: +SKIP
    Dataset('mslr_sample', 18224 items x 136 features, 165 queries)
    """
    files = [read_rows(path, n_features=136) for path in files_of("mslr_sample")]
    seen: set[int] = set()
    kept = []
    for rows in files:
        fresh = ~np.isin(rows.qid, list(seen))
        seen.update(rows.qid.tolist())
        kept.append(Rows(rows.X[fresh], rows.grades[fresh], rows.qid[fresh], None))
    check_equal("mslr_sample", "number of queries", 165, len(seen))
    sizes = [rows.qid.size for rows in kept]
    splits = consecutive(
        {"train": sum(sizes[:3]), "vali": sizes[3], "test": sum(sizes[4:])}
    )
    return candidate_lists(
        "mslr_sample",
        _stack(kept),
        splits=splits,
        description="Queries of MSLR-WEB10K and 30K.",
    )


def fetch_lightgbm_example() -> Dataset:
    """Ranking example of LightGBM: 3005 + 768 rows, 201 + 50 queries, 300 features.

    Looked for in the data folder (``RANKSPACE_DATA``). The files give the sizes of the lists;
    queries are numbered from 0 in their order, the test ones after the training ones.

    Returns
    -------
    Dataset
        Grades 0 to 4, with the splits "train" and "test".

    Examples
    --------
    >>> from rankspace.datasets import fetch_lightgbm_example
    >>> fetch_lightgbm_example()  # doctest: +SKIP
    Dataset('lightgbm_example', 3773 items x 300 features, 251 queries)
    """
    paths = files_of("lightgbm_example")
    parts = [read_rows(path, n_features=300, with_qid=False) for path in paths[::2]]
    sizes = [np.loadtxt(path, dtype=np.int64) for path in paths[1::2]]
    rows = {"train": 3005, "test": 768}
    found = dict(zip(rows, (part.qid.size for part in parts), strict=True))
    check_equal("lightgbm_example", "rows", rows, found)
    listed = dict(zip(rows, (int(s.sum()) for s in sizes), strict=True))
    check_equal("lightgbm_example", "sum of the sizes of the lists", rows, listed)
    counts = np.concatenate(sizes)
    stacked = _stack(parts)._replace(qid=np.repeat(np.arange(counts.size), counts))
    return candidate_lists(
        "lightgbm_example",
        stacked,
        splits=consecutive(rows),
        description="LightGBM's example.",
    )


def _fetch_parts(name: str, containing: str, description: str) -> Dataset:
    files = [read_rows(path, comments=True) for path in files_of(name, containing)]
    splits = consecutive(
        dict(zip(PARTS, (rows.qid.size for rows in files), strict=True))
    )
    return candidate_lists(name, _stack(files), splits=splits, description=description)


def _stack(files: list[Rows]) -> Rows:
    comments: Any = None
    if files[0].comments is not None:
        comments = [comment for rows in files for comment in rows.comments or ()]
    X, grades, qid = (np.concatenate([rows[i] for rows in files]) for i in range(3))
    return Rows(X, grades, qid, comments)
