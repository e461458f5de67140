"""Data sets that only the experiments need; all others come from `rankspace.datasets`."""

from __future__ import annotations

from typing import Any

from rankspace import datasets
from rankspace.datasets import Dataset

from .collections import (
    fetch_checkthat,
    fetch_clinc,
    fetch_crowdflower,
    fetch_stackfaq,
    open_second_vectors,
)
from .images import fetch_binary_alphadigits, fetch_imagenet_frml, fetch_umist
from .lists import fetch_lightgbm_example, fetch_mslr_sample
from .pairs import fetch_cal500, fetch_speed_dating
from .synthetic import make_class_mixture, make_gaussian_mixture, make_mlr_toy
from .texts import fetch_reuters, fetch_twenty_newsgroups, fetch_webkb

__all__ = [
    "FETCHERS",
    "fetch_binary_alphadigits",
    "fetch_cal500",
    "fetch_checkthat",
    "fetch_clinc",
    "fetch_crowdflower",
    "fetch_imagenet_frml",
    "fetch_lightgbm_example",
    "fetch_mslr_sample",
    "fetch_reuters",
    "fetch_speed_dating",
    "fetch_stackfaq",
    "fetch_twenty_newsgroups",
    "fetch_umist",
    "fetch_webkb",
    "make_class_mixture",
    "make_gaussian_mixture",
    "make_mlr_toy",
    "open_dataset",
    "open_second_vectors",
]

FETCHERS = {
    "binary_alphadigits": fetch_binary_alphadigits,
    "cal500": fetch_cal500,
    "checkthat": fetch_checkthat,
    "clinc": fetch_clinc,
    "crowdflower": fetch_crowdflower,
    "imagenet_frml": fetch_imagenet_frml,
    "lightgbm_example": fetch_lightgbm_example,
    "mslr_sample": fetch_mslr_sample,
    "reuters": fetch_reuters,
    "speed_dating": fetch_speed_dating,
    "stackfaq": fetch_stackfaq,
    "twenty_newsgroups": fetch_twenty_newsgroups,
    "umist": fetch_umist,
    "webkb": fetch_webkb,
}


def open_dataset(name: str, **options: Any) -> Dataset:
    """Fetch a data set of the experiments by name, or open one of rankspace.

    Parameters
    ----------
    name : str
        One of `FETCHERS`, or a name that `rankspace.datasets.open_dataset` knows.
    **options
        Passed to the function of `FETCHERS`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from experiments.data import open_dataset
    >>> open_dataset("wine")
    Dataset('wine', 178 items x 13 features, 178 queries)
    """
    if name in FETCHERS:
        return FETCHERS[name](**options)
    return datasets.open_dataset(name)
