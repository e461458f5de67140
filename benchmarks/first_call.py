"""How long does a first call take, with an empty cache of compiled code?

Processor seconds of a whole process, with the start of Python and all imports, which ranks and
evaluates, fits `MLR` or runs `tune` on a small problem. "Empty" starts with an empty cache of
compiled code, "filled" is a later process that finds it filled; the least of two processes,
in turns. With `--base FOLDER`, the source of another commit, its rows come from the same
run. Goals: `evaluate` below 2.5 s, `MLR` and `tune` at most 5 s above later calls.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _table import publish

HERE = Path(__file__).parent.parent / "src"
START = "import numpy as np; import rankspace as r; rng = np.random.default_rng(0)\n"
CALLS = {
    "evaluate": """
y = rng.integers(0, 4, 200)
ranking = r.Ranking.from_distances(rng.normal(size=(200, 200)))
r.evaluate(ranking, r.Relevance.from_labels(y))
""",
    "Index.rank and evaluate": """
X, y = rng.normal(size=(200, 5)), rng.integers(0, 4, 200)
r.evaluate(r.Index(X).rank(X), r.Relevance.from_labels(y))
""",
    "MLR.fit": """
y = rng.integers(0, 3, 150)
r.MLR(C=10).fit(rng.normal(size=(150, 4)) + y[:, None], y)
""",
    "tune": """
X = rng.normal(size=(400, 16))
queries = X[:120] + 0.3 * rng.normal(size=(120, 16))
r.tune(X, [[i] for i in range(120)], queries=queries)
""",
}


def cpu_seconds(call: str, source: Path, cache: str) -> float:
    """Processor seconds of a process."""
    paths = {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": cache}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", START + CALLS[call]]
    subprocess.run(command, env=os.environ | paths, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(call: str, sources: dict[str, Path]) -> list[list[Any]]:
    """Rows of one call, for each source."""
    empty: dict[str, float] = dict.fromkeys(sources, float("inf"))
    filled = dict(empty)
    for _ in range(2):
        for name, source in sources.items():
            with tempfile.TemporaryDirectory() as cache:
                empty[name] = min(empty[name], cpu_seconds(call, source, cache))
                later = cpu_seconds(call, source, cache)
                filled[name] = min(filled[name], later)
    first = empty[next(iter(sources))]
    rows: list[list[Any]] = []
    for name in sources:
        above = empty[name] - filled[name]
        rows.append([call, name, empty[name], filled[name], above, first / empty[name]])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=Path, help="source folder of another commit")
    options, _ = parser.parse_known_args()
    sources = {"now": HERE}
    if options.base:
        sources = {"before": options.base, **sources}
    rows = [row for call in CALLS for row in measure(call, sources)]
    header = ["call", "code", "empty, s", "filled, s", "above", "before / this"]
    publish("First calls, processor seconds", header, rows)


if __name__ == "__main__":
    main()
