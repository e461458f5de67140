"""Learn the space in which nearest means most relevant."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from . import datasets
    from ._backends import on
    from ._base import BaseRanker
    from .baselines import LMNN, MLCC, SVMMAP, Euclidean
    from .baselines_online import ITML, LORETA, OASIS
    from .frml import FRML
    from .gmml import GMML
    from .lgmml import LGMML
    from .listwise import ListwiseMap
    from .local_metric import LocalMetric
    from .logistic_parca import LogisticPARCA
    from .measures import Comparison, Report, compare, evaluate
    from .metric import BilinearMetric, LinearMetric, load_metric
    from .mlr import MLR
    from .mlr_path import MLRCV
    from .mlr_robust import RobustMLR
    from .neighbors import class_shares, knn_error, leave_one_out
    from .parca import PARCA
    from .ranking import Ranking
    from .relevance import Relevance
    from .report import write_report
    from .search import Index
    from .tuning import Tuned, tune
    from .two_map_metric import TwoMapMetric

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
    "BaseRanker",
    "BilinearMetric",
    "Comparison",
    "Euclidean",
    "Index",
    "LinearMetric",
    "ListwiseMap",
    "LocalMetric",
    "LogisticPARCA",
    "Ranking",
    "Relevance",
    "Report",
    "RobustMLR",
    "Tuned",
    "TwoMapMetric",
    "class_shares",
    "compare",
    "datasets",
    "evaluate",
    "knn_error",
    "leave_one_out",
    "load_metric",
    "on",
    "tune",
    "write_report",
]

_HOMES = {
    "LMNN": "baselines",
    "MLCC": "baselines",
    "FRML": "frml",
    "GMML": "gmml",
    "ITML": "baselines_online",
    "LGMML": "lgmml",
    "LORETA": "baselines_online",
    "OASIS": "baselines_online",
    "MLR": "mlr",
    "MLRCV": "mlr_path",
    "PARCA": "parca",
    "SVMMAP": "baselines",
    "BaseRanker": "_base",
    "BilinearMetric": "metric",
    "Comparison": "results",
    "Euclidean": "baselines",
    "Index": "search",
    "LinearMetric": "metric",
    "ListwiseMap": "listwise",
    "LogisticPARCA": "logistic_parca",
    "LocalMetric": "local_metric",
    "Ranking": "ranking",
    "Relevance": "relevance",
    "Report": "results",
    "RobustMLR": "mlr_robust",
    "class_shares": "neighbors",
    "compare": "results",
    "evaluate": "measures",
    "knn_error": "neighbors",
    "leave_one_out": "neighbors",
    "load_metric": "metric",
    "on": "_backends",
    "Tuned": "tuning",
    "TwoMapMetric": "two_map_metric",
    "tune": "tuning",
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
