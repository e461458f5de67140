"""Everything that X may be: arrays, vector files, folders of shards and dask arrays.

Vector files are .npy (memory-mapped, never read whole), .npz, .safetensors, and tables: .parquet,
.arrow and .feather, which are read in batches. A folder or a pattern names several files of one
kind, which hold consecutive rows.
"""

from __future__ import annotations

import glob
import hashlib
import math
import os
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from .columns import (
    TABLE_SUFFIXES,
    Table,
    VectorColumns,
    as_text,
    check_column,
    first_id_column,
    frame_table,
    has_vector_column,
    id_column,
    only,
    open_table,
)
from .files import PathLike, foreign_bytes, replacing
from .parallel.backend import scratch_folder
from .parallel.transport import mapped_file

SUFFIXES = (".npy", ".npz", ".safetensors", *TABLE_SUFFIXES)
# Several files of these hold consecutive rows.
PARTS = (".npy", *TABLE_SUFFIXES)
BLOCK = 8192  # rows


def as_rows(X: Any, name: str = "X", column: str | None = None) -> Any:
    """Read ``X`` if it is a vector file, a dataframe with vectors or a dask.array.

    Any other matrix is returned unchanged. A .npy file is memory-mapped. Tables, the files of a
    folder or a pattern in the order of their names, and the chunks of a dask.array are first joined
    in one file of the scratch folder, whose name depends on nothing but their content.
    """
    if isinstance(X, str | os.PathLike):
        return _open_rows(X, name, column)
    if hasattr(X, "__dask_graph__") and hasattr(X, "chunks"):
        return _join_chunks(X)
    if has_vector_column(X):
        return _join_table(frame_table(X, name), column)
    check_is_matrix(X, name)
    return X


def _open_rows(source: PathLike, name: str, column: str | None) -> np.ndarray:
    """The matrix of a vector file, a folder or a pattern, memory-mapped if it is large."""
    files = vector_files(source, name)
    suffix = files[0].suffix
    if suffix in TABLE_SUFFIXES:
        rows = _join_table(open_table(files), column)
    elif suffix == ".npy":
        if column is not None:
            raise ValueError(f"column must name one of a table: {source} has none.")
        rows = _join_files(files)
    else:
        rows = _only_matrix(source, _READERS[suffix](files[0]), column)
    _check_matrix(rows, source)
    return rows


def vector_files(source: PathLike, name: str = "vectors") -> list[Path]:
    """The files of vectors that a path, a folder or a pattern such as ``parts/*.parquet`` names."""
    path = Path(source)
    if path.is_dir():
        return _parts(sorted(path.iterdir()), path)
    if is_pattern(path):
        return _parts(sorted(map(Path, glob.glob(str(path), recursive=True))), path)
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"{name} must be an array, a file of {', '.join(SUFFIXES)}, a folder or pattern of "
            f"{', '.join(PARTS)} files, or a dask.array: got {path}."
        )
    return [path]


def is_pattern(path: Path) -> bool:
    """Whether a path that does not exist has wildcards."""
    return any(sign in str(path) for sign in "*?[") and not path.exists()


def _parts(found: list[Path], source: Path) -> list[Path]:
    """The files that hold rows, which must be of one kind."""
    files = [
        path for path in found if path.suffix in PARTS and path.name[0] not in "._"
    ]
    kinds = sorted({path.suffix for path in files})
    if not kinds:
        raise ValueError(
            f"{source} must hold {', '.join(PARTS[:-1])} or {PARTS[-1]} files, each with some of "
            "the rows: it has none."
        )
    if len(kinds) > 1:
        raise ValueError(
            f"{source} must hold files of one kind: got {' and '.join(kinds)}. Name those to read "
            f"by a pattern, such as '*{kinds[0]}'."
        )
    return files


def is_vector_source(source: PathLike) -> bool:
    """Whether a path names vectors: a file, a pattern, or a folder with nothing but parts."""
    path = Path(source)
    if not path.is_dir():
        return path.suffix in SUFFIXES or is_pattern(path)
    names = [entry.name for entry in path.iterdir()]
    if any(name.startswith(("corpus.jsonl", "queries.jsonl")) for name in names):
        return False
    return any(Path(name).suffix in PARTS for name in names)


def read_vectors(
    path: PathLike, n_rows: int | None = None, column: str | None = None
) -> Any:
    """Read a vector file and check that it holds a finite matrix.

    Parameters
    ----------
    path : path
        A .npy file, which is memory-mapped, any other vector file, or a folder or pattern of them.
        Pickled objects are never loaded. Half precision is read as single.
    n_rows : int, optional
        How many rows it must have.
    column : str, optional
        The column of vectors, or the array, if there are several.

    Returns
    -------
    ndarray
    """
    vectors = _open_rows(path, "vectors", column)
    if n_rows is not None and len(vectors) != n_rows:
        raise ValueError(
            f"{path} must have one row for each of {n_rows} lines of the texts: got shape "
            f"{vectors.shape}."
        )
    for start in range(0, len(vectors), BLOCK):
        _check_finite(vectors[start : start + BLOCK], path)
    if vectors.dtype == np.float16:
        return vectors.astype(np.float32)
    return vectors


def power_of_two(X: Any) -> float:
    """A power of two of about the largest magnitude of a matrix, 1 if all of it is zero.

    Dividing by it rounds nothing, and keeps squares from underflow and overflow.
    """
    largest = 0.0
    for start in range(0, X.shape[0], BLOCK):
        largest = max(largest, float(abs(X[start : start + BLOCK]).max()))
    if largest == 0:
        return 1.0
    return float(2.0 ** (np.frexp(largest)[1] - 1))


def has_equal_norms(X: Any) -> bool:
    """Whether all vectors have about the same norm."""
    from sklearn.utils.extmath import row_norms

    unit = power_of_two(X)
    squares = np.empty(X.shape[0])
    for start in range(0, X.shape[0], BLOCK):
        rows = slice(start, start + BLOCK)
        squares[rows] = row_norms(X[rows] / unit, squared=True)
    return bool(np.allclose(squares, squares.mean(), rtol=0.02))


def check_squares(vectors: np.ndarray, name: str) -> None:
    """Raise an error if squares or products of vectors like these overflow, or lose digits."""
    highest = 2.0 ** (np.finfo(vectors.dtype).maxexp // 2 - 10)
    size = power_of_two(vectors)
    if not 1 / highest <= size <= highest:
        raise ValueError(
            f"{name} must be of size {1 / highest:.0e} to {highest:.0e} in {vectors.dtype}: got "
            f"{size:.0e}. Multiply them by a constant."
        )


def map_rows(X: Any, work: Callable[[Any], np.ndarray]) -> np.ndarray:
    """Rows of a matrix under a function; those of a mapped file go to a scratch file, by blocks.

    The result is memory-mapped then, and its file removed once nothing refers to it.
    """
    if not isinstance(X, np.ndarray) or mapped_file(X) is None or len(X) <= BLOCK:
        return work(X)
    first = work(X[:BLOCK])
    number, path = tempfile.mkstemp(suffix=".npy", dir=scratch_folder())
    os.close(number)
    shape = (len(X), first.shape[1])
    mapped = np.lib.format.open_memmap(path, "w+", first.dtype, shape)
    weakref.finalize(mapped.base, os.unlink, path)
    for start in range(0, len(X), BLOCK):
        rows = slice(start, start + BLOCK)
        mapped[rows] = work(X[rows])
    return mapped


def check_no_overflow(values: np.ndarray, name: str) -> None:
    """Raise an error if results are not finite, as the numbers they come from were too large."""
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name} must be finite: the vectors or the metric are too large for "
            f"{values.dtype}. Divide the vectors by a constant, or learn the metric again."
        )


def check_is_matrix(X: Any, name: str) -> None:
    """Raise unless an array has two dimensions and no mask; the message gives no numbers."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(
            f"{name} must not hold masked numbers, as their values would be used: fill them in, or "
            "leave such rows out."
        )
    # Sparse matrices by keys are dictionaries.
    if isinstance(X, Mapping) and not hasattr(X, "tocsr"):
        raise ValueError(
            f"{name} must be a matrix with one vector per row: got a mapping. Join the vectors of "
            f"several fields by Fields({name})."
        )
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = np.asarray(X).shape
    if len(shape) != 2:
        raise ValueError(
            f"{name} must be a matrix with one vector per row: got shape {tuple(shape)}. Reshape "
            f"your data: {name}.reshape(1, -1) is a matrix of one vector."
        )


def stored_names(X: Any, column: str | None = None) -> list[str] | None:
    """The row ids stored in ``X`` if it is a vector file, a dataframe or fields that have some."""
    if isinstance(X, str | os.PathLike):
        return read_names(X, column)
    if hasattr(X, "row_ids"):
        return X.row_ids
    if has_vector_column(X):
        return _table_names(frame_table(X, "X"), column)
    return None


def is_vector_file(path: PathLike) -> bool:
    """Whether a path has the suffix of a vector file."""
    return Path(path).suffix in SUFFIXES


def read_names(path: PathLike, column: str | None = None) -> list[str] | None:
    """The row ids that a .npz file or a table stores beside its vectors, if any."""
    files = vector_files(path)
    suffix = files[0].suffix
    if suffix in TABLE_SUFFIXES:
        return _table_names(open_table(files), column)
    names = None
    if suffix == ".npz":
        arrays = _read_npz(path)
        names = column or first_id_column(arrays)
        check_column(path, names, arrays)
    elif column is not None:
        raise ValueError(f"ids must be in a column of a table: {path} has none.")
    return None if names is None else _array_names(path, arrays, names)


def read_texts_beside(path: PathLike) -> list[dict[str, str]] | None:
    """The texts of each row of a table, in columns other than the ids, if there are any."""
    files = vector_files(path)
    if files[0].suffix not in TABLE_SUFFIXES:
        return None
    table = open_table(files)
    columns = [name for name in table.text_columns if name != id_column(table)]
    return table.texts(columns) if columns else None


def _array_names(
    path: PathLike, arrays: dict[str, np.ndarray], column: str
) -> list[str]:
    """The ids of a .npz file, one for each row of every matrix in it."""
    names = arrays[column]
    heights = {len(array) for array in arrays.values() if array.ndim == 2}
    for height in heights - {len(names) if names.ndim == 1 else -1}:
        raise ValueError(
            f"{path} must have one id for each of {height} rows: got ids of shape "
            f"{names.shape}."
        )
    return [as_text(path, column, row, name) for row, name in enumerate(names)]


def _table_names(table: Table, column: str | None) -> list[str] | None:
    names = id_column(table, column)
    return None if names is None else table.strings(names)


class VectorBlocks:
    """Iterate over the rows of an array or a vector file in blocks.

    A .npy file is mapped anew for each block, so that no more of it than a block stays in memory.
    Tables and folders are joined in such a file; other files are read as a whole.

    Parameters
    ----------
    vectors : path or array-like of shape (n_rows, n_features)
        A vector file, folder or pattern, or the vectors themselves. Half precision is read as
        single.
    size : int, default=8192
        Rows per block.

    Examples
    --------
    >>> from rankspace._engine.vectors import VectorBlocks
    >>> [len(block) for block in VectorBlocks([[1.0], [2.0], [3.0]], size=2)]
    [2, 1]
    """

    def __init__(self, vectors: Any, size: int = BLOCK) -> None:
        if size < 1:
            raise ValueError(f"block_size must be at least 1 row: got {size}.")
        self.size = size
        self.name = "vectors"
        self._source: Any = vectors
        if isinstance(vectors, str | os.PathLike):
            self.name = str(vectors)
            self._source = _open_rows(vectors, self.name, None)
        else:
            if has_vector_column(vectors):
                vectors = as_rows(vectors)
            self._source = np.asarray(vectors)
            _check_matrix(self._source, self.name)
        self._mapped = mapped_file(self._source)
        matrix = self._open()
        if 0 in matrix.shape:
            raise ValueError(
                f"{self.name} must hold at least one vector: got shape {matrix.shape}."
            )
        self.n_rows, self.n_features = matrix.shape
        self.dtype: Any = np.dtype(np.float64)
        if matrix.dtype in (np.float16, np.float32):
            self.dtype = np.dtype(np.float32)

    def __iter__(self) -> Iterator[np.ndarray]:
        for start in range(0, self.n_rows, self.size):
            yield self._read(slice(start, start + self.size))

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """A random sample of at most ``n`` rows, in their order."""
        chosen = np.random.default_rng(seed).permutation(self.n_rows)[:n]
        return self._read(np.sort(chosen))

    def _open(self) -> np.ndarray:
        if self._mapped is not None:
            return self._mapped.open()
        return self._source

    def _read(self, rows: Any) -> np.ndarray:
        block = np.array(self._open()[rows], dtype=self.dtype, order="C")
        _check_finite(block, self.name)
        return block


# ---------------------------------------------------------------------- one matrix


def _check_matrix(array: np.ndarray, name: Any) -> None:
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} must hold a matrix of real numbers with one vector per row: got "
            f"{array.dtype} of shape {array.shape}."
        )


def _check_finite(block: np.ndarray, name: Any) -> None:
    if not np.isfinite(block).all():
        raise ValueError(f"{name} must hold finite numbers: got NaN or infinity.")


# ---------------------------------------------------------------------- file formats


def map_npy(path: PathLike) -> np.ndarray:
    """The array of a .npy file, memory-mapped; pickled objects are never loaded."""
    with foreign_bytes(path, "a .npy file with an array of numbers, from numpy.save"):
        array = np.lib.format.open_memmap(path, mode="r")
        _check_unicode(array)
        return array


def _check_unicode(array: np.ndarray) -> None:
    """Raise if texts of an array hold numbers that are no characters, which Python cannot read."""
    if array.dtype.kind == "U":
        codes = np.frombuffer(array.tobytes(), array.dtype.byteorder + "u4")
        if codes.max(initial=0) > sys.maxunicode:
            raise ValueError("its text is no Unicode")


def _read_npz(path: PathLike) -> dict[str, np.ndarray]:
    with foreign_bytes(path, "a .npz file of plain arrays, from numpy.savez"):
        return _arrays_of_zip(path)


def _arrays_of_zip(path: PathLike) -> dict[str, np.ndarray]:
    """The arrays of a .npz file, each as large as its header says before it is read."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as stream:
                _check_size(stream, entry)
                stream.seek(0)
                array = np.lib.format.read_array(stream, allow_pickle=False)
            _check_unicode(array)
            arrays[entry.filename.removesuffix(".npy")] = array
    return arrays


def _check_size(stream: Any, entry: zipfile.ZipInfo) -> None:
    """Raise if an array would take more memory than the file has bytes for it."""
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0
    if version > (1, 0):
        read_header = np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if dtype.hasobject:
        raise ValueError(
            f"{entry.filename} holds Python objects, which are not read: write texts as "
            "np.array(ids, dtype=str)"
        )
    declared = math.prod(shape) * dtype.itemsize
    stored = entry.file_size - stream.tell()
    if declared != stored:
        raise ValueError(
            f"{entry.filename} declares {declared} bytes, and has {stored}"
        )


def _read_safetensors(path: PathLike) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    with foreign_bytes(path, "a safetensors file of a type that NumPy has"):
        arrays: dict[str, np.ndarray] = load_file(path)
    return arrays


_READERS: dict[str, Callable[[PathLike], dict[str, np.ndarray]]] = {
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
}


def _only_matrix(
    path: PathLike, arrays: dict[str, np.ndarray], chosen: str | None
) -> np.ndarray:
    if chosen is not None:
        check_column(path, chosen, arrays)
        return arrays[chosen]
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    return arrays[only(path, matrices, "matrix")]


# ---------------------------------------------------------------------- shards and chunks


def _join_table(table: Table, column: str | None) -> np.ndarray:
    """The vectors of a table; those of a large one go to a scratch file, by batches."""
    vectors = VectorColumns(table, column)
    shape = vectors.shape
    if len(shape) != 2:
        return np.zeros(shape)
    if table.n_rows > BLOCK:
        return _join_blocks(vectors, shape, vectors.dtype)
    return np.concatenate(list(vectors))


def _join_files(files: Sequence[Path]) -> np.ndarray:
    shards = [map_npy(path) for path in files]
    first = shards[0]
    if len(shards) == 1:
        return first
    for path, shard in zip(files, shards, strict=True):
        if not _fits(shard, first):
            raise ValueError(
                f"files of {files[0].parent} must be matrices of the same width and type: "
                f"{files[0].name} has {first.shape} of {first.dtype}, "
                f"{path.name} {shard.shape} of {shard.dtype}."
            )
    shape = (sum(map(len, shards)), first.shape[1])
    # Reading is cheaper than writing: look first whether these very rows were joined already.
    name = _Hash(shape, first.dtype)
    for block in _row_blocks(shards):
        name.update(block)
    joined = scratch_folder() / name.file
    if joined.exists():
        return map_npy(joined)
    return _join_blocks(_row_blocks(shards), shape, first.dtype)


def _fits(shard: np.ndarray, first: np.ndarray) -> bool:
    """Whether a shard is a matrix of the same width and type as the first one."""
    return (
        shard.ndim == 2
        and shard.shape[1:] == first.shape[1:]
        and shard.dtype == first.dtype
    )


def _row_blocks(shards: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    for shard in shards:
        for start in range(0, len(shard), BLOCK):
            yield shard[start : start + BLOCK]


def _join_chunks(X: Any) -> np.ndarray:
    if X.ndim != 2 or any(np.isnan(size) for size in X.shape):
        raise ValueError(
            f"X must be a matrix of known shape: got a dask.array of shape {X.shape}. Call "
            "compute_chunk_sizes() first."
        )
    X = X.rechunk({1: -1})
    return _join_blocks(_computed_chunks(X), X.shape, X.dtype)


def _computed_chunks(X: Any) -> Iterator[np.ndarray]:
    """The chunks of rows of a dask.array, which must be as large as it says."""
    for i, n_rows in enumerate(X.chunks[0]):
        rows = np.asarray(X.blocks[i, 0].compute())
        expected = (n_rows, X.shape[1])
        if rows.shape != expected:
            raise ValueError(
                f"chunk {i} of X must have the shape that the dask.array declares, {expected}: it "
                f"has {rows.shape}."
            )
        yield rows


class _Hash:
    """A file name for a matrix, from its shape, type and content."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        facts = repr((tuple(map(int, shape)), np.dtype(dtype).str))
        self._hash = hashlib.blake2b(facts.encode(), digest_size=16)

    def update(self, block: np.ndarray) -> None:
        self._hash.update(block.tobytes())

    @property
    def file(self) -> str:
        return f"rows-{self._hash.hexdigest()}.npy"


def _join_blocks(blocks: Iterable[np.ndarray], shape: Any, dtype: Any) -> np.ndarray:
    """Write blocks of rows to one .npy file, named by what they hold, and memory-map it.

    Nothing else that is named or dated alike can be taken for it. Writers do not share a file, and
    nobody maps one that is half written.
    """
    name = _Hash(shape, dtype)
    unnamed = scratch_folder() / f"{uuid4().hex}.npy"
    facts = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(dtype)),
        "fortran_order": False,
        "shape": tuple(map(int, shape)),
    }
    with replacing(unnamed) as stream:
        np.lib.format.write_array_header_1_0(stream, facts)
        for block in blocks:
            rows = np.ascontiguousarray(block, dtype=dtype)
            name.update(rows)
            stream.write(rows.tobytes())
    return map_npy(unnamed.replace(unnamed.with_name(name.file)))
