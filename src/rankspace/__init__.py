"""Learn the space in which nearest means most relevant."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _engine as _engine  # reads the environment before others change it

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from . import datasets, display, export
    from ._engine.fields import Fields
    from ._engine.parallel import use_backend
    from .display import write_report
    from .evaluation import (
        Comparison,
        Report,
        class_shares,
        compare,
        evaluate,
        knn_error,
        leave_one_out,
    )
    from .learners import (
        FRML,
        GMML,
        ITML,
        LGMML,
        LMNN,
        LORETA,
        MLCC,
        MLR,
        MLRCV,
        OASIS,
        PARCA,
        SVMMAP,
        BaseRanker,
        Euclidean,
        GraphMLR,
        KernelMLR,
        LinearRanker,
        ListwiseMap,
        LogisticPARCA,
        RobustMLR,
        scorer,
    )
    from .metrics import (
        AsymmetricMetric,
        BilinearMetric,
        KernelMetric,
        LinearMetric,
        LocalMetric,
        load_metric,
    )
    from .relevance import Relevance
    from .search import Index, Ranking, rank_bm25, rank_memory
    from .tuning import Tuned, tune

__all__ = [
    "FRML",
    "GMML",
    "ITML",
    "LGMML",
    "LMNN",
    "LORETA",
    "MLCC",
    "MLR",
    "MLRCV",
    "OASIS",
    "PARCA",
    "SVMMAP",
    "AsymmetricMetric",
    "BaseRanker",
    "BilinearMetric",
    "Comparison",
    "Euclidean",
    "Fields",
    "GraphMLR",
    "Index",
    "KernelMLR",
    "KernelMetric",
    "LinearMetric",
    "LinearRanker",
    "ListwiseMap",
    "LocalMetric",
    "LogisticPARCA",
    "Ranking",
    "Relevance",
    "Report",
    "RobustMLR",
    "Tuned",
    "class_shares",
    "compare",
    "datasets",
    "display",
    "evaluate",
    "export",
    "knn_error",
    "leave_one_out",
    "load_metric",
    "rank_bm25",
    "rank_memory",
    "scorer",
    "tune",
    "use_backend",
    "write_report",
]

# The room of each public name. A name loads its room when it is first used, so that importing
# rankspace, or a command's --help, costs milliseconds.
_ROOMS = {
    "_engine.fields": ["Fields"],
    "_engine.parallel": ["use_backend"],
    "relevance": ["Relevance"],
    "search": ["Index", "Ranking", "rank_bm25", "rank_memory"],
    "evaluation": [
        "Comparison",
        "Report",
        "class_shares",
        "compare",
        "evaluate",
        "knn_error",
        "leave_one_out",
    ],
    "metrics": [
        "AsymmetricMetric",
        "BilinearMetric",
        "KernelMetric",
        "LinearMetric",
        "LocalMetric",
        "load_metric",
    ],
    "learners": [
        "FRML",
        "GMML",
        "ITML",
        "LGMML",
        "LMNN",
        "LORETA",
        "MLCC",
        "MLR",
        "MLRCV",
        "OASIS",
        "PARCA",
        "SVMMAP",
        "BaseRanker",
        "Euclidean",
        "GraphMLR",
        "KernelMLR",
        "LinearRanker",
        "ListwiseMap",
        "LogisticPARCA",
        "RobustMLR",
        "scorer",
    ],
    "display": ["write_report"],
    "tuning": ["Tuned", "tune"],
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "display", "export"):
        return import_module(f".{name}", __name__)
    if name in _ROOM_OF:
        return getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
