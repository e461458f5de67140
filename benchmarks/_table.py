"""What every benchmark prints: a table, the machine, and JSON on request."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "rankspace", "numpy", "scipy", "scikit-learn", "numba", "faiss-cpu", "ir-measures", "lightgbm",
    "xgboost", "metric-learn",
)  # fmt: skip


def best_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of several runs, after one that does not count."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def machine() -> dict[str, Any]:
    """Processor, cores and versions."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0].split(":")[1].strip() if names else model
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"processor": model, "cores": os.cpu_count(), "versions": versions}


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table whose numbers have three digits."""
    lines = [list(header), ["---", *["---:"] * (len(header) - 1)]]
    lines += [
        [f"{v:.3g}" if isinstance(v, float) else str(v) for v in row] for row in rows
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def publish(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a Markdown table, and write it with the machine to the path after --json."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options, _ = parser.parse_known_args()
    print(f"\n## {title}\n")
    print(markdown(header, rows))
    where = machine()
    versions = ", ".join(
        f"{name} {number}" for name, number in where["versions"].items()
    )
    print(f"\n{where['processor']}, {where['cores']} cores; {versions}")
    if options.json:
        results = [dict(zip(header, row, strict=True)) for row in rows]
        content = {"title": title, "results": results, "machine": where}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
