"""Benchmark output: a Markdown table, the machine and versions, and JSON on request."""

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
    "rankspace",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "faiss-cpu",
    "ir-measures",
    "lightgbm",
    "onnxruntime",
    "torch",
    "xgboost",
    "metric-learn",
)


def best_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """The time of the fastest of several runs, after a warm-up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def processor() -> str:
    """Model name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if "model name" in line:
                return line.split(":")[1].strip()
    return platform.processor()


def machine() -> dict[str, Any]:
    """Processor, cores and package versions."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"processor": processor(), "cores": n_cores(), "versions": versions}


def n_cores() -> int | None:
    """Cores that the process may use: fewer than there are under taskset."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def cell(value: Any) -> str:
    """A table cell; floats have three significant digits."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [list(header), ["---", *["---:"] * (len(header) - 1)]]
    for row in rows:
        lines.append([cell(value) for value in row])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def describe(where: dict[str, Any]) -> str:
    """Processor, cores and versions in one line."""
    versions = ", ".join(
        f"{name} {number}" for name, number in where["versions"].items()
    )
    return f"{where['processor']}, {where['cores']} cores; {versions}"


def publish(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a Markdown table, and write it as JSON with the machine to the path after --json."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    options, _ = parser.parse_known_args()
    print(f"\n## {title}\n")
    print(markdown(header, rows))
    where = machine()
    print("\n" + describe(where))
    if options.json:
        results = [dict(zip(header, row, strict=True)) for row in rows]
        content = {"title": title, "results": results, "machine": where}
        options.json.write_text(json.dumps(content, indent=2) + "\n")
