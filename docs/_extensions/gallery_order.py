"""The order of the gallery: what most people come for, first."""

from pathlib import Path

FIRST = (
    *("plot_tune", "plot_before_after", "plot_signals", "plot_hybrid", "plot_sizes"),
    *("plot_explain", "plot_gains", "plot_queries_needed", "plot_export"),
    *("serve_from_a_store", "plot_parca", "plot_clusters", "plot_letor"),
)


def place(path: str) -> tuple[int, str]:
    """Sort by the list above, then by name."""
    name = Path(path).stem
    return FIRST.index(name) if name in FIRST else len(FIRST), name
