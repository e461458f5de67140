"""Fields: items or queries with several vectors, such as those of title and body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .columns import feature_columns, has_vector_column
from .rows import float_rows
from .similarity import unit_rows
from .vectors import as_rows, stored_names


class Fields:
    """Several vectors of each item or query, joined to one.

    Each vector is brought to unit length, so that inner products of joined vectors are sums of
    cosines, one for each field. A row of NaN or of zeros lacks the field: its cosine counts as 0.

    Parameters
    ----------
    blocks : mapping of str to array-like of shape (n_rows, n_features of the field)
        Vectors by field. All have the same rows.

    Attributes
    ----------
    names : tuple of str
        Names of the fields.
    widths : tuple of int
        Number of columns of each.
    n_missing : dict of str to int
        Rows that lack each field.
    row_ids : list of str or None
        Ids of the rows, if files or dataframes of the fields store them.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import Fields
    >>> title, body = [[2.0, 0.0], [np.nan, np.nan]], [[3.0, 4.0, 0.0], [0.0, 0.0, 1.0]]
    >>> np.asarray(Fields({"title": title, "body": body}))
    array([[1. , 0. , 0.6, 0.8, 0. ],
           [0. , 0. , 0. , 0. , 1. ]])
    """

    def __init__(self, blocks: Any) -> None:
        if not isinstance(blocks, Mapping) or not blocks:
            raise ValueError(
                "fields must be a mapping of names to matrices, such as {'title': T, 'body': B}: "
                f"got {_shown(blocks)}."
            )
        self.row_ids = _common_ids(blocks)
        ready = {str(name): _unit_block(str(name), b) for name, b in blocks.items()}
        sizes = {name: len(block) for name, block in ready.items()}
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise ValueError(
                f"all fields must have the same number of rows: got {shown}. Give items that lack "
                "a field a row of NaN."
            )
        self.names = tuple(ready)
        self.widths = tuple(block.shape[1] for block in ready.values())
        self.n_missing = {
            name: int((~block.any(axis=1)).sum()) for name, block in ready.items()
        }
        self._joined = np.concatenate(list(ready.values()), axis=1)

    @classmethod
    def from_ids(cls, blocks: Mapping[str, tuple[Any, Any]], ids: Any) -> Fields:
        """Fields whose rows are matched by id; an id that a field does not have lacks it.

        Parameters
        ----------
        blocks : mapping of str to (matrix, ids)
            The vectors of each field, and the ids of their rows.
        ids : array-like of str
            Ids of all rows, in order.

        Returns
        -------
        Fields
        """
        _check_distinct(ids, "ids")
        place = {str(name): row for row, name in enumerate(ids)}
        filled = {}
        for name, (matrix, own) in blocks.items():
            vectors = _float_block(str(name), matrix)
            if len(own) != len(vectors):
                raise ValueError(
                    f"the field {name!r} must have an id for each row: got {len(own)} ids and "
                    f"{len(vectors)} rows."
                )
            _check_distinct(own, f"ids of the field {name!r}")
            unknown = [str(i) for i in own if str(i) not in place]
            if unknown:
                raise ValueError(
                    f"ids of the field {name!r} must be among ids: got {unknown[0]!r}, one of "
                    f"{len(unknown)} that are not."
                )
            block = np.full((len(place), vectors.shape[1]), np.nan, vectors.dtype)
            block[[place[str(i)] for i in own]] = vectors
            filled[name] = block
        fields = cls(filled)
        fields.row_ids = list(place)
        return fields

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns of all fields."""
        return self._joined.shape

    @property
    def dtype(self) -> np.dtype:
        """Precision of the joined vectors."""
        return self._joined.dtype

    def __len__(self) -> int:
        return len(self._joined)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """The joined vectors."""
        if dtype is not None and dtype != self._joined.dtype:
            return self._joined.astype(dtype)
        return self._joined.copy() if copy else self._joined

    def __repr__(self) -> str:
        pairs = zip(self.names, self.widths, strict=True)
        shown = ", ".join(f"{name} {width}" for name, width in pairs)
        return f"Fields({len(self)} rows: {shown})"


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a dataframe, or the fields of joined vectors; None without names."""
    if isinstance(X, Fields):
        pairs = zip(X.names, X.widths, strict=True)
        return [f"{name} of {width}" for name, width in pairs]
    if has_vector_column(X):
        return feature_columns(X)
    columns = getattr(X, "column_names", getattr(X, "columns", None))
    if columns is None:
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def check_same_columns(ours: Any, theirs: Any, name: str, of: str = "X") -> None:
    """Raise if both sides name their columns, and not alike: features are matched by position."""
    if ours is None or theirs is None or ours == theirs:
        return
    pairs = zip(ours, theirs, strict=False)
    first = next((pair for pair in pairs if pair[0] != pair[1]), None)
    shown = f"{len(ours)} and {len(theirs)} columns"
    if first is not None:
        shown = f"{first[1]!r} in the place of {first[0]!r}"
    raise ValueError(
        f"{name} must have the columns of {of}, in their order: got {shown}. Select them by name, "
        "or pass arrays."
    )


def field_slices(widths: tuple[int, ...]) -> list[slice]:
    """The columns of each field."""
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]


def _common_ids(blocks: Mapping[str, Any]) -> list[str] | None:
    """The ids that fields store of their rows, which must be the same in the same order."""
    common = None
    for name, block in blocks.items():
        ids = stored_names(block)
        if ids is None:
            continue
        if common is not None and ids != common:
            raise ValueError(
                "all fields must have the same ids in the same order, as their rows are joined: "
                f"those of {name!r} differ. Match them by id with Fields.from_ids."
            )
        common = ids
    return common


def _shown(blocks: Any) -> str:
    return "none" if isinstance(blocks, Mapping) else type(blocks).__name__


def _check_distinct(ids: Any, name: str) -> None:
    seen: set[str] = set()
    for own in map(str, ids):
        if own in seen:
            raise ValueError(f"{name} must not repeat a name: got {own!r} again.")
        seen.add(own)


def _float_block(name: str, block: Any) -> np.ndarray:
    vectors = as_rows(block, f"the field {name!r}")
    return np.asarray(float_rows(vectors, f"the field {name!r}", allow_nan=True))


def _unit_block(name: str, block: Any) -> np.ndarray:
    """Rows at unit length; those of NaN are zero."""
    vectors = _float_block(name, block)
    missing = np.isnan(vectors)
    absent = missing.all(axis=1)
    partly = missing.any(axis=1) & ~absent
    if partly.any():
        raise ValueError(
            f"a row of the field {name!r} must be finite, or NaN as a whole: got row "
            f"{int(partly.argmax())} with some NaN."
        )
    unit = np.zeros_like(vectors)
    present = ~absent & np.any(vectors, axis=1)
    if not present.any():
        raise ValueError(f"some row must have the field {name!r}: got none.")
    unit[present] = unit_rows(vectors[present], name)
    return unit
