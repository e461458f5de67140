"""How much memory do `tune` and `rank --metric` need for vectors that lie in a file?

A .npy file holds 1,000,000 unit vectors of 768 features in single precision, 3.1 GB, ten of each
topic, as in `tune.py`; 200 queries ask for one topic each. `rankspace tune` reads the file and
chooses a map of the queries by 2 folds. `rankspace rank` searches with it, and with a shared map of
all 768 features, which maps every item. "RssAnon" is the peak of the process's anonymous memory
during the step, as in `out_of_core.py`. The similarity is named, so that nothing else is measured.
`--items 100000` is a smaller problem; `--folder` keeps the files and the finished steps.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from _table import publish
from out_of_core import Monitor
from tune import PER_TOPIC, Topics

from rankspace import LinearMetric
from rankspace.cli.main import main as rankspace

D = 768
QUERIES = 200
CHUNK = 50_000  # rows
TUNE = "tune X.npy --queries Q.npy --qrels qrels.txt --similarity cosine --folds 2"
RANK = "rank X.npy --queries Q.npy -k 10"
HEADER = ["step", "vectors, GB", "seconds", "RssAnon, MB", "above start, MB"]


def write_problem(folder: Path, n_items: int) -> None:
    """Vectors, queries and judgments, and a shared map."""
    n_topics = n_items // PER_TOPIC
    topics = Topics(n_topics, D, 0)
    np.save(folder / "Q.npy", topics.draw(np.arange(QUERIES)))
    lines = []
    for query in range(QUERIES):
        first = PER_TOPIC * query
        lines += [f"{query} 0 {item} 1\n" for item in range(first, first + PER_TOPIC)]
    (folder / "qrels.txt").write_text("".join(lines))
    LinearMetric(topics.basis.T.copy()).save(folder / "shared.safetensors")
    X = np.lib.format.open_memmap(
        folder / "X.npy", mode="w+", dtype=np.float32, shape=(n_items, D)
    )
    for start in range(0, n_items, CHUNK):
        rows = np.arange(start, min(start + CHUNK, n_items))
        X[rows[0] : rows[-1] + 1] = topics.draw(rows // PER_TOPIC)
    X.flush()


def run(folder: Path, command: str, output: str) -> None:
    """Run a command on the files of the folder."""
    words = []
    for word in [*command.split(), "--output", output]:
        is_file = word.endswith((".npy", ".txt", ".safetensors", ".trec"))
        words.append(str(folder / word) if is_file else word)
    if rankspace(words) != 0:
        raise RuntimeError(f"{command} failed.")


def measure(folder: Path, n_items: int) -> list[list[object]]:
    """The rows of the table."""
    if not (folder / "X.npy").exists():
        write_problem(folder, n_items)
    monitor = Monitor(folder)
    size = round(n_items * D * 4 / 1e9, 1)
    steps = [
        ("tune", TUNE, "query.safetensors"),
        ("rank, map of the queries", f"{RANK} --metric query.safetensors", "a.trec"),
        ("rank, shared map", f"{RANK} --metric shared.safetensors", "b.trec"),
    ]
    for name, command, output in steps:
        monitor.step(name, size, lambda c=command, o=output: run(folder, c, o))
    return monitor.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        rows = measure(folder, options.items)
    publish("tune: vectors in a file", HEADER, rows)


if __name__ == "__main__":
    main()
