"""Data sets to learn from.

``load_`` needs no file, ``fetch_`` reads from the data folder or downloads, ``read_`` reads files
in the formats of the field, ``make_`` draws synthetic data. All return a `Dataset`, but for runs.
"""

from ._beir import read_beir, read_corpus
from ._bundled import (
    load_balance_scale,
    load_digits,
    load_scifact_sample,
    load_wdbc,
    load_wine,
)
from ._catalogue import DatasetInfo, list_datasets, open_dataset
from ._dataset import Dataset
from ._download import download_dataset
from ._embed import embed_beir, embed_texts
from ._fetch_lists import fetch_mq2008, fetch_ohsumed
from ._fetch_retrieval import fetch_cranfield, fetch_nfcorpus, fetch_npl, fetch_scifact
from ._fetch_tables import (
    fetch_covertype,
    fetch_ionosphere,
    fetch_isolet,
    fetch_mnist,
    fetch_usps,
)
from ._letor import read_letor
from ._make import make_matching
from ._texts import read_texts
from ._trec import read_trec_run, write_trec_run

__all__ = [
    "Dataset",
    "DatasetInfo",
    "download_dataset",
    "embed_beir",
    "embed_texts",
    "fetch_covertype",
    "fetch_cranfield",
    "fetch_ionosphere",
    "fetch_isolet",
    "fetch_mnist",
    "fetch_mq2008",
    "fetch_nfcorpus",
    "fetch_npl",
    "fetch_ohsumed",
    "fetch_scifact",
    "fetch_usps",
    "list_datasets",
    "load_balance_scale",
    "load_digits",
    "load_scifact_sample",
    "load_wdbc",
    "load_wine",
    "make_matching",
    "open_dataset",
    "read_beir",
    "read_corpus",
    "read_letor",
    "read_texts",
    "read_trec_run",
    "write_trec_run",
]
