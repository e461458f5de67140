"""The estimators, one a file, on one base."""

from .base import BaseRanker
from .baselines import LMNN, MLCC, SVMMAP, Euclidean
from .frml import FRML
from .gmml import GMML
from .graph_mlr import GraphMLR
from .kernel_mlr import KernelMLR
from .lgmml import LGMML
from .linear import LinearRanker
from .listwise import ListwiseMap
from .logistic_parca import LogisticPARCA
from .mlr import MLR
from .mlr_cv import MLRCV
from .online_baselines import ITML, LORETA, OASIS
from .parca import PARCA
from .robust_mlr import RobustMLR
from .scoring import scorer

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
    "Euclidean",
    "GraphMLR",
    "KernelMLR",
    "LinearRanker",
    "ListwiseMap",
    "LogisticPARCA",
    "RobustMLR",
    "scorer",
]
