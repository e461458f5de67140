"""A long session: ``PYTHONPATH=tests python -m fuzz.session --seconds 600 [TARGET ...]``.

Each target runs in a process of its own, which is started again after a crash. ``--first N
--count 1 TARGET`` repeats input N of a target in this process.
"""

from __future__ import annotations

import argparse
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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fuzz.targets import TARGETS, Target

HANG_SECONDS = 10
START_SECONDS = 60  # imports and compilation, which do not count
WARM_UP = 50  # inputs before memory is measured


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


def watch(name: str, seconds: float) -> None:
    """Run a target in another process, again after each crash, and print a line of JSON."""
    end = time.monotonic() + seconds
    first = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        place = Path(folder) / "number"
        while (left := end - time.monotonic()) > 1:
            words = [
                name,
                "--first",
                str(first),
                "--seconds",
                str(left),
                "--place",
                place,
            ]
            command = [sys.executable, "-m", "fuzz.session", *map(str, words)]
            try:
                done = subprocess.run(
                    command,
                    capture_output=True,
                    text=True,
                    timeout=left + START_SECONDS,
                    check=False,
                )
                print(name, done.stdout.strip() or done.stderr[-300:], flush=True)
                if done.returncode == 0:
                    return
                if not place.exists():
                    # It does not even start.
                    return
                cause = f"exit code {done.returncode}"
            except subprocess.TimeoutExpired:
                cause = "hang in native code"
            print(name, f"{cause} at input {place.read_text()}", flush=True)
            first = int(place.read_text()) + 1


def main() -> None:
    """Run all or some targets, for equal times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], default=[])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--first", type=int)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--place", type=Path, default=Path("/dev/null"))
    options = parser.parse_args()
    if options.first is None:
        names = options.targets or list(TARGETS)
        for name in names:
            watch(name, options.seconds / len(names))
        return

    def stop(*_: Any) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, stop)
    warnings.simplefilter("ignore")
    limits = (options.first, options.count, options.seconds, options.place)
    print(json.dumps(run_inputs(options.targets[0], *limits)))


if __name__ == "__main__":
    main()
