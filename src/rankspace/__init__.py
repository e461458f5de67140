"""Learn the space in which nearest means most relevant."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from . import datasets
    from ._engine.parallel import on
    from .display.page.report import write_report
    from .evaluation.measures import Comparison, Report, compare, evaluate
    from .evaluation.neighbors import class_shares, knn_error, leave_one_out
    from .learners.base import BaseRanker
    from .learners.baselines import LMNN, MLCC, SVMMAP, Euclidean
    from .learners.frml import FRML
    from .learners.gmml import GMML
    from .learners.lgmml import LGMML
    from .learners.listwise import ListwiseMap
    from .learners.logistic_parca import LogisticPARCA
    from .learners.mlr import MLR
    from .learners.mlr_cv import MLRCV
    from .learners.online_baselines import ITML, LORETA, OASIS
    from .learners.parca import PARCA
    from .learners.robust_mlr import RobustMLR
    from .metrics.embedding import BilinearMetric, LinearMetric, load_metric
    from .metrics.local import LocalMetric
    from .metrics.two_map import TwoMapMetric
    from .relevance.relevance import Relevance
    from .search.index import Index
    from .search.ranking import Ranking
    from .tuning.tuner import Tuned, tune

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
    "LMNN": "learners.baselines",
    "MLCC": "learners.baselines",
    "FRML": "learners.frml",
    "GMML": "learners.gmml",
    "ITML": "learners.online_baselines",
    "LGMML": "learners.lgmml",
    "LORETA": "learners.online_baselines",
    "OASIS": "learners.online_baselines",
    "MLR": "learners.mlr",
    "MLRCV": "learners.mlr_cv",
    "PARCA": "learners.parca",
    "SVMMAP": "learners.baselines",
    "BaseRanker": "learners.base",
    "BilinearMetric": "metrics.embedding",
    "Comparison": "evaluation.report",
    "Euclidean": "learners.baselines",
    "Index": "search.index",
    "LinearMetric": "metrics.embedding",
    "ListwiseMap": "learners.listwise",
    "LogisticPARCA": "learners.logistic_parca",
    "LocalMetric": "metrics.local",
    "Ranking": "search.ranking",
    "Relevance": "relevance.relevance",
    "Report": "evaluation.report",
    "RobustMLR": "learners.robust_mlr",
    "class_shares": "evaluation.neighbors",
    "compare": "evaluation.report",
    "evaluate": "evaluation.measures",
    "knn_error": "evaluation.neighbors",
    "leave_one_out": "evaluation.neighbors",
    "load_metric": "metrics.embedding",
    "on": "_engine.parallel",
    "Tuned": "tuning.tuner",
    "TwoMapMetric": "metrics.two_map",
    "tune": "tuning.tuner",
    "write_report": "display.page.report",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module(".datasets", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
