"""Catalogue of the data sets: the list of them, their files, and any of them by its name."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from ._dataset import Dataset
from ._folder import has_files
from ._origins import list_origins


class Entry(NamedTuple):
    """One line of the catalogue; files are relative to the data folder."""

    kind: str
    size: str
    source: str
    files: tuple[str, ...] = ()


BUNDLED = "comes with scikit-learn"
COMPUTED = "computed from its rule"
OWN = "comes with rankspace"
FOLDER = "data folder"
OPENML = "data folder, else OpenML"
SKLEARN = "data folder, else scikit-learn's download"


def _retrieval(folder: str, *qrels: str) -> tuple[str, ...]:
    names = ("corpus.jsonl.gz", "queries.jsonl.gz", "corpus_minilm_f16.npy")
    return tuple(
        f"{folder}/{name}" for name in (*names, "queries_minilm_f16.npy", *qrels)
    )


CATALOGUE = {
    "balance_scale": Entry("classes", "625 x 4, 3 classes", COMPUTED),
    "digits": Entry("classes", "1797 x 64, 10 classes", BUNDLED),
    "scifact_sample": Entry("retrieval", "2500 x 384, 1109 queries", OWN),
    "wdbc": Entry("classes", "569 x 30, 2 classes", BUNDLED),
    "wine": Entry("classes", "178 x 13, 3 classes", BUNDLED),
    "covertype": Entry(
        "classes", "581012 x 54, 7 classes", SKLEARN, ("uci-covertype/covtype.data.gz",)
    ),
    "ionosphere": Entry(
        "classes", "351 x 34, 2 classes", OPENML, ("uci-ionosphere/ionosphere.data",)
    ),
    "isolet": Entry(
        "classes",
        "6238 + 1559 x 617, 26 classes",
        OPENML,
        ("uci-isolet/isolet1+2+3+4.data.gz", "uci-isolet/isolet5.data.gz"),
    ),
    "mnist": Entry(
        "classes",
        "60000 + 10000 x 784, 10 classes",
        OPENML,
        tuple(
            f"mnist/{part}-{what}-ubyte.gz"
            for part in ("train", "t10k")
            for what in ("images-idx3", "labels-idx1")
        ),
    ),
    "usps": Entry(
        "classes",
        "7291 + 2007 x 256, 10 classes",
        OPENML,
        ("usps/zip.train.gz", "usps/zip.test.gz"),
    ),
    "mq2008": Entry(
        "lists",
        "15211 x 46, 784 queries, 5 folds",
        FOLDER,
        tuple(f"letor4-mq2008/S{part}.txt.gz" for part in range(1, 6)),
    ),
    "ohsumed": Entry(
        "lists",
        "16140 x 45, 106 queries, 5 folds, 2 versions",
        FOLDER,
        # The test file of fold 2 is part S1, and so on: fold 1 tests on S5.
        tuple(
            f"letor3-ohsumed/{folder}/Fold{fold}.{name}.txt.gz"
            for folder, name in (("QueryLevelNorm", "test"), ("Feature-min", "testset"))
            for fold in (2, 3, 4, 5, 1)
        ),
    ),
    "cranfield": Entry(
        "retrieval",
        "1400 texts x 384, 225 queries",
        FOLDER,
        _retrieval("ir-cran", "qrels.tsv"),
    ),
    "nfcorpus": Entry(
        "retrieval",
        "3395 texts x 384, 2563 + 324 + 323 queries",
        FOLDER,
        _retrieval("ir-nfcorpus", "qrels/train.tsv", "qrels/dev.tsv", "qrels/test.tsv"),
    ),
    "npl": Entry(
        "retrieval",
        "11426 texts x 384, 93 queries",
        FOLDER,
        _retrieval("ir-npl", "qrels.tsv"),
    ),
    "scifact": Entry(
        "retrieval",
        "5183 texts x 384, 809 + 300 queries",
        FOLDER,
        _retrieval("ir-scifact", "qrels/train.tsv", "qrels/test.tsv"),
    ),
}


class DatasetInfo(NamedTuple):
    """One row of `list_datasets`."""

    name: str
    kind: str
    size: str
    source: str
    available: bool
    licence: str
    origin: str


def list_datasets() -> list[DatasetInfo]:
    """List the data sets with a ``load_`` or ``fetch_`` function.

    Returns
    -------
    list of DatasetInfo
        Name, kind ("classes", "lists" or "retrieval"), size, source, whether it is available
        without a download, and licence and origin of the files of the data folder.

    Examples
    --------
    >>> from rankspace.datasets import list_datasets
    >>> [row.name for row in list_datasets() if row.source == "comes with scikit-learn"]
    ['digits', 'wdbc', 'wine']
    """
    origins = list_origins()
    rows = []
    for name, entry in CATALOGUE.items():
        licence = origin = ""
        if entry.files:
            licence = origins[entry.files[0]].licence
            origin = origins[entry.files[0]].source
        facts = (entry.kind, entry.size, entry.source, has_files(entry.files))
        rows.append(DatasetInfo(name, *facts, licence, origin))
    return rows


def open_dataset(name: str) -> Dataset:
    """Load or fetch a data set by name.

    Parameters
    ----------
    name : str
        One of `list_datasets`; hyphens may stand for underscores.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from rankspace.datasets import open_dataset
    >>> open_dataset("wine")
    Dataset('wine', 178 items x 13 features, 178 queries)
    """
    functions = import_module(__package__)
    for prefix in ("load_", "fetch_"):
        function = getattr(functions, prefix + name.replace("-", "_"), None)
        if function is not None:
            return function()
    raise ValueError(
        f"{name!r} is not a folder, a file of vectors or a data set. 'rankspace datasets' lists "
        "the data sets."
    )
