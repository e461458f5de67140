"""The list of data sets for people to read."""

from __future__ import annotations

from typing import NamedTuple

from ._catalogue import CATALOGUE
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
