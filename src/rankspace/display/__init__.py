"""Plots of metrics, spaces and queries, and the HTML report page."""

from .features import PixelClustersDisplay, TopicsDisplay
from .page.report import write_report
from .plots import (
    ConvergenceDisplay,
    SpectrumDisplay,
    grouped_bars,
    n_directions,
    panels,
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
    "grouped_bars",
    "n_directions",
    "panels",
    "write_report",
]
