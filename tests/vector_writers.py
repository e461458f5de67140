"""Write vectors in every file format that the library reads."""

import numpy as np
import pytest
import safetensors.numpy


def write_vectors(path, vectors, names=None):
    """Write a matrix, and row ids beside it where the format can store them."""
    ids = {}
    if path.suffix == ".npy":
        np.save(path, vectors)
    elif path.suffix == ".npz":
        if names is not None:
            ids["ids"] = np.array(names)
        np.savez(path, vectors=vectors, **ids)
    elif path.suffix == ".safetensors":
        safetensors.numpy.save_file({"embedding": np.ascontiguousarray(vectors)}, path)
    else:
        if names is not None:
            ids["_id"] = names
        write_table(path, {**ids, "v": list(vectors)})


def write_table(path, columns):
    pa = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)
