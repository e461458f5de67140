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


def write_table(path, columns, rows_per_batch=3):
    """Write a parquet file, a stream of Arrow (.arrow), or its file format (.feather)."""
    pa = pytest.importorskip("pyarrow", reason="tables need pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows_per_batch)
        return
    kinds = {".arrow": pa.ipc.new_stream, ".feather": pa.ipc.new_file}
    with kinds[path.suffix](path, table.schema) as writer:
        writer.write_table(table, rows_per_batch)
