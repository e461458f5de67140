"""Data sets to learn from.

``load_`` needs no file, ``fetch_`` looks into the data folder and else downloads, ``read_`` takes
files in the formats of the field, ``make_`` draws synthetic ones. All but runs are a `Dataset`.
"""

from ._beir import read_beir
from ._bundled import (
    load_balance_scale,
    load_digits,
    load_scifact_sample,
    load_wdbc,
    load_wine,
)
from ._dataset import Dataset
from ._fetch_lists import (
    fetch_lightgbm_example,
    fetch_mq2008,
    fetch_mslr_sample,
    fetch_ohsumed,
)
from ._fetch_pairs import fetch_cal500, fetch_speed_dating
from ._fetch_retrieval import fetch_cranfield, fetch_nfcorpus, fetch_npl, fetch_scifact
from ._fetch_tables import (
    fetch_binary_alphadigits,
    fetch_covertype,
    fetch_imagenet_frml,
    fetch_ionosphere,
    fetch_isolet,
    fetch_mnist,
    fetch_umist,
    fetch_usps,
)
from ._fetch_texts import fetch_reuters, fetch_twenty_newsgroups, fetch_webkb
from ._letor import read_letor
from ._listing import DatasetInfo, list_datasets, open_dataset
from ._make import make_gaussian_mixture, make_matching, make_mlr_toy
from ._trec import read_trec_run, write_trec_run

__all__ = [
    "Dataset",
    "DatasetInfo",
    "fetch_binary_alphadigits",
    "fetch_cal500",
    "fetch_covertype",
    "fetch_cranfield",
    "fetch_imagenet_frml",
    "fetch_ionosphere",
    "fetch_isolet",
    "fetch_lightgbm_example",
    "fetch_mnist",
    "fetch_mq2008",
    "fetch_mslr_sample",
    "fetch_nfcorpus",
    "fetch_npl",
    "fetch_ohsumed",
    "fetch_reuters",
    "fetch_scifact",
    "fetch_speed_dating",
    "fetch_twenty_newsgroups",
    "fetch_umist",
    "fetch_usps",
    "fetch_webkb",
    "list_datasets",
    "load_balance_scale",
    "load_digits",
    "load_scifact_sample",
    "load_wdbc",
    "load_wine",
    "make_gaussian_mixture",
    "make_matching",
    "make_mlr_toy",
    "open_dataset",
    "read_beir",
    "read_letor",
    "read_trec_run",
    "write_trec_run",
]
