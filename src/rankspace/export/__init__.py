"""Export a metric, or vectors mapped by it, to files, vector indexes and databases."""

from .arrays import QuerySide, to_npy, to_query_side
from .faiss import to_faiss
from .onnx import to_onnx
from .pgvector import to_pgvector, to_sql
from .qdrant import to_qdrant

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
