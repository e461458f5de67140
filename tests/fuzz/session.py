"""A long session: ``PYTHONPATH=src:tests python -m fuzz.session --seconds 7200 --jobs 16``.

Each target runs for the same time, so fast readers get more inputs, in processes of its own, which
are started again after a crash. A closing table has a row for each target. ``--first N --count 1
TARGET`` repeats input N of a target in this process.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.targets import TARGETS, Target
from rankspace._engine.tables import as_text

HANG_SECONDS = 10
START_SECONDS = 300  # imports and compilation on a busy machine, which do not count
WARM_UP = 50  # inputs before memory is measured
MEMORY_MB = 200  # a process may grow by so much; the inputs themselves are tiny
APART = 10**8  # between the first inputs of two processes with the same target
HEADER = ["target", "inputs", "accepted", "faults", "crashes", "slowest s", "grown MB"]


class Hang(BaseException):
    """An input took too long; no reader may swallow this."""


def run_inputs(
    name: str, first: int, count: int, seconds: float, place: Path
) -> dict[str, Any]:
    """Run consecutive inputs in this process, and count what became of them."""
    target = TARGETS[name]
    counts: Counter[str] = Counter()
    faults: dict[str, int] = {}
    slowest = 0.0
    start_memory = 0
    number = first
    folder = ExitStack()
    path = folder.enter_context(target.file())
    for content in target.seeds:
        # Kernels are compiled before anything is measured.
        target.try_content(path, content)
    end = time.monotonic() + seconds
    while number < first + count and time.monotonic() < end:
        place.write_text(str(number))
        begin = time.monotonic()
        outcome = _outcome(target, path, number)
        slowest = max(slowest, time.monotonic() - begin)
        if outcome not in ("accepted", "refused"):
            faults.setdefault(outcome, number)
            outcome = "faults"
        counts[outcome] += 1
        number += 1
        if number == first + WARM_UP:
            start_memory = _peak_memory()
    folder.close()
    grown = _peak_memory() - start_memory if start_memory else 0
    figures = {"slowest_s": round(slowest, 2), "grown_mb": grown // 2**10}
    return {"next": number, "counts": counts, "first_of_each_fault": faults, **figures}


def _outcome(target: Target, path: Path, number: int) -> str:
    """Accepted, refused, or where the fault is."""
    signal.alarm(HANG_SECONDS)
    try:
        accepted = target.try_content(path, target.content(number))
        return "accepted" if accepted else "refused"
    except (Exception, Hang) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:90]} ({frame.filename}:{frame.lineno})"
    finally:
        signal.alarm(0)


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@dataclass
class Findings:
    """What became of the inputs of one target, over several processes."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, int] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    grown_mb: int = 0

    def add(self, found: dict[str, Any]) -> None:
        """Add the figures of one process."""
        self.counts.update(found["counts"])
        self.faults = {**found["first_of_each_fault"], **self.faults}
        self.slowest_s = max(self.slowest_s, found["slowest_s"])
        self.grown_mb = max(self.grown_mb, found["grown_mb"])

    def join(self, other: Findings) -> None:
        """Add the figures of other processes."""
        self.add(
            {
                "counts": other.counts,
                "first_of_each_fault": other.faults,
                "slowest_s": other.slowest_s,
                "grown_mb": other.grown_mb,
            }
        )
        self.crashes += other.crashes

    def row(self, name: str) -> list[Any]:
        """Its row of the closing table."""
        counts = [self.counts.total(), self.counts["accepted"], self.counts["faults"]]
        return [name, *counts, len(self.crashes), self.slowest_s, self.grown_mb]

    def failures(self) -> list[str]:
        """A sentence for each fault, crash, and for memory that grew too much."""
        found = [f"{fault}: input {number}" for fault, number in self.faults.items()]
        if self.grown_mb > MEMORY_MB:
            found.append(f"memory grew by {self.grown_mb} MB")
        return found + self.crashes


def watch(name: str, first: int, seconds: float) -> Findings:
    """Run a target in another process, again after each crash."""
    findings = Findings()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        place = Path(folder) / "number"
        while (left := end - time.monotonic()) > 0:
            crash = _run_process(name, first, left, place, findings)
            if not crash:
                break
            findings.crashes.append(crash)
            if not place.exists():
                # It does not even start.
                break
            first = int(place.read_text()) + 1
    return findings


def _run_process(
    name: str, first: int, seconds: float, place: Path, findings: Findings
) -> str:
    """Run a target in one process, add what it found, and return how it crashed, if it did."""
    words = [name, "--first", first, "--seconds", seconds, "--place", place]
    command = [sys.executable, "-m", "fuzz.session", *map(str, words)]
    limit = seconds + START_SECONDS
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"hang in native code at input {_last(place)}"
    if done.returncode == 0:
        findings.add(json.loads(done.stdout))
        return ""
    return f"exit code {done.returncode} at input {_last(place)}: {done.stderr[-300:]}"


def _last(place: Path) -> str:
    return place.read_text() if place.exists() else "none"


def run_session(
    names: Sequence[str], seconds: float, n_jobs: int
) -> dict[str, Findings]:
    """Run targets for equal times, each once in every job, on inputs that differ."""
    pieces = list(itertools.product(range(n_jobs), names))
    total = {name: Findings() for name in names}

    def run(piece: tuple[int, str]) -> Findings:
        job, name = piece
        return watch(name, job * APART, seconds / len(names))

    with ThreadPoolExecutor(n_jobs) as threads:
        for (_, name), found in zip(pieces, threads.map(run, pieces), strict=True):
            total[name].join(found)
    return total


def closing_table(total: dict[str, Findings]) -> str:
    """A row for each target and one for all, and a line for each failure."""
    whole = Findings()
    for found in total.values():
        whole.join(found)
    rows = [found.row(name) for name, found in total.items()] + [whole.row("all")]
    failures = [
        f"{name}: {line}" for name, found in total.items() for line in found.failures()
    ]
    return "\n".join([as_text(HEADER, rows), *failures])


def main() -> int:
    """Run all or some targets; the exit code is 1 if any input failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], default=[])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--place", type=Path, default=Path("/dev/null"))
    options = parser.parse_args()
    if options.first is not None:
        return _run_here(options)
    wanted = options.targets or list(TARGETS)
    names = [name for name in wanted if TARGETS[name].seeds]
    total = run_session(names, options.seconds, options.jobs)
    print(closing_table(total))
    skipped = [name for name in wanted if name not in names]
    if skipped:
        print(f"skipped, as pyarrow is not installed: {', '.join(skipped)}")
    return int(any(found.failures() for found in total.values()))


def _run_here(options: argparse.Namespace) -> int:
    def stop(*_: Any) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    warnings.simplefilter("ignore")
    limits = (options.first, options.count, options.seconds, options.place)
    print(json.dumps(run_inputs(options.targets[0], *limits)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
