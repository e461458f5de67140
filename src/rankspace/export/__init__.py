"""Put a metric where vectors live: files, indexes and databases."""

from ._arrays import QuerySide, to_npy, to_query_side
from ._faiss import to_faiss
from ._onnx import to_onnx
from ._pgvector import to_pgvector, to_sql
from ._qdrant import to_qdrant

__all__ = [
    "QuerySide",
    "to_faiss",
    "to_npy",
    "to_onnx",
    "to_pgvector",
    "to_qdrant",
    "to_query_side",
    "to_sql",
]
