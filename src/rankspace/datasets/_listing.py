"""The list of data sets for people to read, and any of them by its name."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from ._catalogue import CATALOGUE
from ._dataset import Dataset
from ._folder import has_files


class DatasetInfo(NamedTuple):
    """One row of `list_datasets`."""

    name: str
    kind: str
    size: str
    source: str
    available: bool


def list_datasets() -> list[DatasetInfo]:
    """List the data sets with a ``load_`` or ``fetch_`` function.

    Returns
    -------
    list of DatasetInfo
        Name, kind ("classes", "texts", "lists", "retrieval" or "pairs"), size, where it comes
        from, and whether it can be had without a download.

    Examples
    --------
    >>> from rankspace.datasets import list_datasets
    >>> [row.name for row in list_datasets() if row.source == "comes with scikit-learn"]
    ['digits', 'wdbc', 'wine']
    """
    return [
        DatasetInfo(name, entry.kind, entry.size, entry.source, has_files(name))
        for name, entry in CATALOGUE.items()
    ]


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
        f"there is no file, folder or data set {name!r}. 'rankspace datasets' lists the data sets."
    )
