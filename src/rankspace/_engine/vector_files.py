"""Whole matrices of vectors out of .npz, .safetensors and .parquet files, and names of rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .text import PathLike

SUFFIXES = (".npy", ".npz", ".parquet", ".safetensors")
ID_COLUMNS = ("_id", "id", "ids", "item_id", "doc_id", "docid", "query_id", "qid")


def is_vector_file(source: PathLike) -> bool:
    """Whether a path names a file of vectors, by its ending."""
    return Path(source).suffix in SUFFIXES


def read_matrix(path: PathLike) -> Any:
    """The one matrix in a file that is no .npy."""
    return _READERS[Path(path).suffix](path)[0]


def read_names(path: PathLike) -> list[str] | None:
    """Names of the rows, if the file keeps them beside the vectors."""
    if Path(path).suffix not in _READERS:
        return None
    names = _READERS[Path(path).suffix](path)[1]
    return None if names is None else [str(name) for name in names]


def _one(path: PathLike, found: list[str], what: str) -> str:
    if len(found) != 1:
        raise ValueError(
            f"{path} must hold one {what}: got {', '.join(found) or 'none'}. Write one to a file "
            "of its own."
        )
    return found[0]


def _npz(path: PathLike) -> tuple[Any, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} must be a .npz file of plain arrays: {error}."
        ) from error
    matrix = _one(
        path, [name for name, array in arrays.items() if array.ndim == 2], "matrix"
    )
    names = next((arrays[name] for name in ID_COLUMNS if name in arrays), None)
    return arrays[matrix], names


def _safetensors(path: PathLike) -> tuple[Any, None]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not Path(path).is_file():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    try:
        arrays = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} must be a safetensors file: {error}.") from error
    matrix = _one(
        path, [name for name, array in arrays.items() if array.ndim == 2], "matrix"
    )
    return arrays[matrix], None


def _parquet(path: PathLike) -> tuple[Any, Any]:
    """A column of lists, or all columns of numbers; and a column of names."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(
            "reading .parquet needs pyarrow: pip install 'rankspace[parquet]'."
        ) from error
    try:
        table = pq.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} must be a parquet file: {error}.") from error
    named = next((name for name in ID_COLUMNS if name in table.column_names), None)
    names = None if named is None else table[named].to_pylist()
    lists = [field.name for field in table.schema if _is_list(field.type)]
    if lists:
        return _stacked(path, table[_one(path, lists, "column of vectors")]), names
    numbers = (pa.types.is_floating, pa.types.is_integer)
    kept = [
        field.name
        for field in table.schema
        if field.name != named and any(of_kind(field.type) for of_kind in numbers)
    ]
    columns = [table[name].to_numpy() for name in kept]
    return np.column_stack(columns) if columns else np.zeros(0), names


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
    )


def _stacked(path: PathLike, column: Any) -> np.ndarray:
    import pyarrow.compute as pc

    widths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(widths) != 1 or widths[0] is None:
        raise ValueError(
            f"{path} must hold vectors of one width: got widths "
            f"{', '.join('missing' if width is None else str(width) for width in widths[:5])}."
        )
    values = pc.list_flatten(column).to_numpy()
    return np.asarray(values).reshape(len(column), widths[0])


_READERS: dict[str, Callable[[PathLike], tuple[Any, Any]]] = {
    ".npz": _npz,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
