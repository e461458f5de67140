"""Retrieval collections: texts, queries and judgments, with sentence embeddings."""

from __future__ import annotations

from ._beir import read_beir
from ._catalogue import CATALOGUE
from ._dataset import Dataset
from ._folder import check_equal, locate

# Number of texts, and of the queries in each split.
SIZES = {
    "scifact": (5183, {"test": 300, "train": 809}),
    "nfcorpus": (3395, {"dev": 324, "test": 323, "train": 2563}),
    "cranfield": (1400, {"all": 225}),
    "npl": (11426, {"all": 93}),
}


def fetch_scifact() -> Dataset:
    """SciFact (BEIR): 5183 abstracts, 809 + 300 claims as queries.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        ``X`` and ``queries`` are unit-length embeddings of all-MiniLM-L6-v2, 384 dimensions; the
        splits "train" and "test" hold row numbers of the queries.

    Examples
    --------
    >>> from rankspace.datasets import fetch_scifact
    >>> fetch_scifact()  # doctest: +SKIP
    Dataset('scifact', 5183 items x 384 features, 1109 queries)
    """
    return _fetch("scifact")


def fetch_nfcorpus() -> Dataset:
    """NFCorpus (BEIR, 93% of its documents): 3395 medical texts, 2563 + 324 + 323 queries.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        Grades 1 and 2; the splits "train", "dev" and "test" hold row numbers of the queries;
        vectors as for `fetch_scifact`.

    Examples
    --------
    >>> from rankspace.datasets import fetch_nfcorpus
    >>> fetch_nfcorpus()  # doctest: +SKIP
    Dataset('nfcorpus', 3395 items x 384 features, 3210 queries)
    """
    return _fetch("nfcorpus")


def fetch_cranfield() -> Dataset:
    """Cranfield: 1400 abstracts on aerodynamics, 225 queries.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        Grades 1 to 4 (a complete answer); vectors as for `fetch_scifact`.

    Examples
    --------
    >>> from rankspace.datasets import fetch_cranfield
    >>> fetch_cranfield()  # doctest: +SKIP
    Dataset('cranfield', 1400 items x 384 features, 225 queries)
    """
    return _fetch("cranfield")


def fetch_npl() -> Dataset:
    """NPL (Vaswani): 11426 abstracts on electronics, 93 queries.

    Read from the data folder (``RANKSPACE_DATA``).

    Returns
    -------
    Dataset
        Relevant or not; vectors as for `fetch_scifact`.

    Examples
    --------
    >>> from rankspace.datasets import fetch_npl
    >>> fetch_npl()  # doctest: +SKIP
    Dataset('npl', 11426 items x 384 features, 93 queries)
    """
    return _fetch("npl")


def _fetch(name: str) -> Dataset:
    folder = locate(name, CATALOGUE[name].files)[0].parent
    dataset = read_beir(folder, name=name)
    n_texts, n_queries = SIZES[name]
    check_equal(name, "shape of the vectors", (n_texts, 384), dataset.X.shape)
    splits = dataset.splits or {"all": dataset.queries}
    sizes = {split: len(queries) for split, queries in splits.items()}
    check_equal(name, "number of queries", n_queries, sizes)
    return dataset
