"""Export a metric, or vectors mapped by it, to files, vector indexes and databases."""

from .arrays import QuerySide, to_npy, to_query_side
from .bulk import to_bulk
from .duckdb import to_duckdb
from .faiss import read_faiss, to_faiss
from .lancedb import to_lancedb
from .live import LiveFaiss, LivePgvector, LiveQdrant, LiveRun
from .onnx import to_onnx
from .pgvector import to_pgvector, to_sql
from .qdrant import to_qdrant
from .sentence_transformers import to_sentence_transformers
from .sidecar import Sidecar
from .sqlite_vec import to_sqlite_vec
from .usearch import read_usearch, to_usearch

__all__ = [
    "LiveFaiss",
    "LivePgvector",
    "LiveQdrant",
    "LiveRun",
    "QuerySide",
    "Sidecar",
    "read_faiss",
    "read_usearch",
    "to_bulk",
    "to_duckdb",
    "to_faiss",
    "to_lancedb",
    "to_npy",
    "to_onnx",
    "to_pgvector",
    "to_qdrant",
    "to_query_side",
    "to_sentence_transformers",
    "to_sql",
    "to_sqlite_vec",
    "to_usearch",
]
