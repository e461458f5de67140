"""How much faster is read_letor than scikit-learn's reader, on a file of 100 MB?

The file resembles MSLR-WEB: 136 features, integers and 6-digit decimals, about 120 rows per
query. Both readers run in this process on the same file; each time is the best of three.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish
from sklearn.datasets import load_svmlight_file

from rankspace.datasets import read_letor

N_FEATURES, MEGABYTES, REPEATS = 136, 100, 3
FIRST_CALL = (
    "import sys, time; from rankspace.datasets import read_letor; start = time.perf_counter(); "
    "read_letor(sys.argv[1]); print(time.perf_counter() - start)"
)


def random_line(rng: np.random.Generator, qid: int) -> str:
    whole = rng.geometric(0.2, N_FEATURES) - 1
    real = rng.gamma(2.0, 8.0, N_FEATURES) * rng.choice([-1, 1], N_FEATURES)
    is_whole = rng.random(N_FEATURES) < 0.6
    values = np.where(is_whole, whole.astype(str), [f"{value:.6f}" for value in real])
    pairs = " ".join(f"{index}:{value}" for index, value in enumerate(values, 1))
    return f"{rng.integers(5)} qid:{qid} {pairs} \n"


def write_file(path: Path, megabytes: float) -> int:
    """Write about that many megabytes; lines are drawn from 4,000 random rows."""
    rng = np.random.default_rng(0)
    lines = [random_line(rng, 0).split(" ", 2) for _ in range(4000)]
    size = n_rows = 0
    with open(path, "w") as stream:
        while size < megabytes * 1e6:
            grade, _, rest = lines[rng.integers(len(lines))]
            size += stream.write(f"{grade} qid:{n_rows // 120 + 1} {rest}")
            n_rows += 1
    return n_rows


def timed(read: Callable[[], Any]) -> float:
    start = time.perf_counter()
    read()
    return time.perf_counter() - start


def best_times(readers: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Shortest time of each reader; they take turns, so that a busy machine slows all of them."""
    rounds = [
        {name: timed(read) for name, read in readers.items()} for _ in range(repeats)
    ]
    return {name: min(times[name] for times in rounds) for name in readers}


def first_call(path: Path, cache: Path) -> float:
    """Seconds of the first call in a new process; compiled code is stored in `cache`."""
    command = [sys.executable, "-c", FIRST_CALL, str(path)]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def assert_equal(path: Path) -> None:
    ours = read_letor(path)
    X, grades, qid = load_svmlight_file(path, query_id=True, zero_based=False)
    pairs = ((X.toarray(), ours.X), (grades, ours.grades), (qid, ours.qid))
    if not all(np.array_equal(theirs, mine) for theirs, mine in pairs):
        raise SystemExit("The two readers return different data.")


def measure(path: Path, packed: Path, cache: Path, repeats: int) -> dict[str, float]:
    first = {
        "rankspace, first call ever": first_call(path, cache),
        "rankspace, first call of a process": first_call(path, cache),
    }
    assert_equal(path)
    readers = {
        "scikit-learn": lambda: load_svmlight_file(path, query_id=True),
        "rankspace": lambda: read_letor(path),
        "rankspace, one thread": lambda: read_letor(path, n_jobs=1),
        "scikit-learn, .gz": lambda: load_svmlight_file(packed, query_id=True),
        "rankspace, .gz": lambda: read_letor(packed),
    }
    return best_times(readers, repeats) | first


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, packed = Path(folder, "data.txt"), Path(folder, "data.txt.gz")
        n_rows = write_file(path, MEGABYTES)
        packed.write_bytes(gzip.compress(path.read_bytes(), compresslevel=6))
        seconds = measure(path, packed, Path(folder, "cache"), REPEATS)
    rows: list[list[Any]] = []
    for name, value in seconds.items():
        other = seconds["scikit-learn, .gz" if ".gz" in name else "scikit-learn"]
        rows.append([name, value, MEGABYTES / value, other / value])
    title = f"Reading {MEGABYTES} MB of learning-to-rank text, {n_rows:,} rows"
    publish(title, ["reader", "seconds", "MB/s", "speed-up"], rows)


if __name__ == "__main__":
    main()
