"""The words of a command that name a Dask cluster, and what is told of it."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .progress import Progress

EVERY = 1.0  # seconds between two looks at the workers


def add_cluster(parser: Any) -> None:
    """The word ``--cluster``."""
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="do the heavy steps on the Dask cluster of this scheduler, such as "
        "tcp://SCHEDULER:8786 (extra 'cluster')",
    )


@contextmanager
def on_cluster(options: argparse.Namespace, progress: Progress) -> Iterator[None]:
    """Work on the cluster that a command names, if it names one, and show its workers."""
    if getattr(options, "cluster", None) is None:
        yield
        return
    from .._engine.parallel import use_backend

    if ":" not in options.cluster:
        raise ValueError(
            f"--cluster must be the address of a scheduler, such as tcp://SCHEDULER:8786: got "
            f"{options.cluster!r}."
        )
    with use_backend(options.cluster) as backend:
        sys.stderr.write(
            f"cluster of {backend.n_processes} workers: {backend.dashboard}\n"
        )
        done = threading.Event()
        watch = threading.Thread(
            target=_watch, args=(backend, progress, done), daemon=True
        )
        watch.start()
        try:
            yield
        finally:
            done.set()
            watch.join()


def _watch(backend: Any, progress: Progress, done: threading.Event) -> None:
    while not done.wait(EVERY):
        progress.say(
            f"round {backend.n_rounds}, {backend.n_busy} of {backend.n_processes} workers busy"
        )
