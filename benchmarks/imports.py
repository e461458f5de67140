"""How long does ``import rankspace`` take, compared with ``import sklearn``?

Each import has a new process, and they take turns.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from _table import publish

STATEMENTS = {
    "nothing": "pass",
    "import sklearn": "import sklearn",
    "import rankspace": "import rankspace",
    "import sklearn, rankspace": "import sklearn, rankspace",
    "from rankspace import BaseRanker": "from rankspace import BaseRanker",
}


def seconds_of(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> None:
    best = dict.fromkeys(STATEMENTS, float("inf"))
    for _ in range(8):
        for name, statement in STATEMENTS.items():
            best[name] = min(best[name], seconds_of(statement))
    rows: list[list[Any]] = [
        [name, s, s / best["import sklearn"]] for name, s in best.items()
    ]
    publish(
        "Starting Python and importing, seconds",
        ["statement", "best of 8", "ratio"],
        rows,
    )


if __name__ == "__main__":
    main()
