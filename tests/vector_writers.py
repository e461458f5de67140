"""Vectors written to every kind of file that the library reads."""

import numpy as np
import pytest
import safetensors.numpy


def write_vectors(path, vectors, names=None):
    """Write a matrix, and names beside it where the kind of file can keep them."""
    if path.suffix == ".npy":
        np.save(path, vectors)
    elif path.suffix == ".npz":
        np.savez(
            path, vectors=vectors, **({} if names is None else {"ids": np.array(names)})
        )
    elif path.suffix == ".safetensors":
        safetensors.numpy.save_file({"embedding": np.ascontiguousarray(vectors)}, path)
    else:
        write_table(
            path, {**({} if names is None else {"_id": names}), "v": list(vectors)}
        )


def write_table(path, columns):
    pa = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)
