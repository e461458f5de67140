"""Learn the space in which nearest means most relevant."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from . import datasets
    from ._base import BaseRanker
    from .baselines import Euclidean
    from .baselines_online import ITML, LORETA, OASIS
    from .frml import FRML
    from .measures import Comparison, Report, compare, evaluate, knn_error
    from .metric import BilinearMetric, LinearMetric, load_metric
    from .mlr import MLR, RobustMLR
    from .mlr_path import MLRCV
    from .ranking import Ranking
    from .relevance import Relevance
    from .report import write_report
    from .search import Index

__all__ = [
    "FRML",
    "ITML",
    "LORETA",
    "MLR",
    "MLRCV",
    "OASIS",
    "BaseRanker",
    "BilinearMetric",
    "Comparison",
    "Euclidean",
    "Index",
    "LinearMetric",
    "Ranking",
    "Relevance",
    "Report",
    "RobustMLR",
    "compare",
    "datasets",
    "evaluate",
    "knn_error",
    "load_metric",
    "write_report",
]

_HOMES = {
    "FRML": "frml",
    "ITML": "baselines_online",
    "LORETA": "baselines_online",
    "OASIS": "baselines_online",
    "MLR": "mlr",
    "MLRCV": "mlr_path",
    "BaseRanker": "_base",
    "BilinearMetric": "metric",
    "Comparison": "results",
    "Euclidean": "baselines",
    "Index": "search",
    "LinearMetric": "metric",
    "Ranking": "ranking",
    "Relevance": "relevance",
    "Report": "results",
    "RobustMLR": "mlr",
    "compare": "results",
    "evaluate": "measures",
    "knn_error": "measures",
    "load_metric": "metric",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(".datasets", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
