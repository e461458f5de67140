"""Learning-to-rank candidate lists: a sample of MSLR-WEB, and LightGBM's example."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from rankspace import Relevance
from rankspace.datasets import Dataset, read_letor
from rankspace.datasets._folder import check_equal, locate

MSLR_FILES = [
    f"mslr-web/{name}.txt.gz"
    for name in (
        "mslr_fold1_train_sample.from_pickle",
        "ltrjl_train_subset",
        "msn1.fold1.train.5k",
        "mslr_fold1_valid_sample",
        "mslr_fold1_test_sample",
        "msn1.fold1.test.5k",
    )
]
MSLR_SPLITS = ("train", "train", "train", "vali", "test", "test")
LIGHTGBM_FILES = [
    f"lightgbm-lambdarank/rank.{name}"
    for name in ("train.gz", "train.query", "test.gz", "test.query")
]


def fetch_mslr_sample() -> Dataset:
    """Sample of MSLR-WEB: 165 queries, 136 raw features, grades 0 to 4.

    Read from the data folder (``RANKSPACE_DATA``). The six files share 12 queries: a query is
    taken from the first file that has it, in the order of the list of files (training files,
    validation, test), and its rows in later files are dropped. So no query is in two splits.

    Returns
    -------
    Dataset
        With the splits "train", "vali" and "test". The last query of a file that was cut after
        5000 lines may lack documents.
    """
    queries: set[int] = set()
    parts = []
    for path in locate("mslr_sample", MSLR_FILES):
        lists = read_letor(path, n_features=136)
        qid = np.asarray(lists.qid)
        new = ~np.isin(qid, list(queries))
        queries.update(qid.tolist())
        parts.append(lists.part(new))
    check_equal("mslr_sample", "number of queries", 165, len(queries))
    split_of_row = np.repeat(MSLR_SPLITS, [len(part.X) for part in parts])
    return _candidate_lists(
        "mslr_sample",
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.grades for part in parts]),
        np.concatenate([part.qid for part in parts]),
        split_of_row,
    )


def fetch_lightgbm_example() -> Dataset:
    """Ranking example of LightGBM: 3005 + 768 rows, 201 + 50 queries, 300 features.

    Read from the data folder (``RANKSPACE_DATA``). The files give the sizes of the lists; queries
    are numbered from 0 in their order, the test ones after the training ones.

    Returns
    -------
    Dataset
        Grades 0 to 4, with the splits "train" and "test".
    """
    paths = locate("lightgbm_example", LIGHTGBM_FILES)
    tables = [load_svmlight_file(str(path), n_features=300) for path in paths[::2]]
    sizes = [np.loadtxt(path, dtype=np.int64) for path in paths[1::2]]
    n_rows = [X.shape[0] for X, _ in tables]
    check_equal("lightgbm_example", "rows of the parts", [3005, 768], n_rows)
    list_sums = [int(part.sum()) for part in sizes]
    check_equal("lightgbm_example", "sums of the list sizes", n_rows, list_sums)
    counts = np.concatenate(sizes)
    return _candidate_lists(
        "lightgbm_example",
        np.vstack([X.toarray() for X, _ in tables]),
        np.concatenate([grades for _, grades in tables]),
        np.repeat(np.arange(counts.size), counts),
        np.repeat(["train", "test"], n_rows),
    )


def _candidate_lists(
    name: str, X: Any, grades: Any, qid: Any, split_of_row: np.ndarray
) -> Dataset:
    names = dict.fromkeys(split_of_row.tolist())
    return Dataset(
        name,
        X,
        Relevance.from_groups(grades, qid),
        qid=qid,
        grades=grades,
        splits={split: np.flatnonzero(split_of_row == split) for split in names},
    )
