"""Plots of metrics, spaces and queries, and the HTML report page."""

from .features import PixelClustersDisplay, TopicsDisplay
from .page.report import write_report
from .plots import (
    ConvergenceDisplay,
    SpectrumDisplay,
    n_directions,
)
from .spaces import GainsDisplay, LearningCurveDisplay, SpaceDisplay

__all__ = [
    "ConvergenceDisplay",
    "GainsDisplay",
    "LearningCurveDisplay",
    "PixelClustersDisplay",
    "SpaceDisplay",
    "SpectrumDisplay",
    "TopicsDisplay",
    "n_directions",
    "write_report",
]
