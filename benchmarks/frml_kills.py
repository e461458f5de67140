"""Does FRML resume from a checkpoint with bit-identical results after it is killed?

A fit on digits with a checkpoint is killed by SIGKILL at 20 random times, and each time resumed
by a new process; the last one runs to the end. Its metric must equal that of an uninterrupted
run, bit for bit.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _table import publish

from rankspace import FRML
from rankspace.datasets import load_digits

OPTIONS: dict[str, Any] = {
    "n_components": 20,
    "n_triplets": 60_000,
    "check_every": 500,
    "random_state": 0,
}
SCRIPT = f"""
import sys
from rankspace import FRML
from rankspace.datasets import load_digits
digits = load_digits()
model = FRML(**{OPTIONS!r}, checkpoint=sys.argv[1])
print("ready", flush=True)
model.fit(digits.X, digits.labels)
"""


def kill_once(path: Path, seconds: float) -> bool:
    """Start or resume a run and kill it; return whether it was still running."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, path], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return running


def main() -> None:
    digits = load_digits()
    whole = FRML(**OPTIONS).fit(digits.X, digits.labels)
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        kills = sum(kill_once(path, rng.uniform(0.05, 1.0)) for _ in range(20))
        resumed = FRML(**OPTIONS, checkpoint=path).fit(digits.X, digits.labels)
    same = bool(np.array_equal(whole.components_, resumed.components_))
    rows = [[kills, len(whole.history_), whole.n_iter_, "yes" if same else "NO"]]
    header = ["kills", "checks", "triplets", "bit-identical"]
    publish("FRML: killed and resumed", header, rows)


if __name__ == "__main__":
    main()
