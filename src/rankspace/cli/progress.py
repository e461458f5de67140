"""Progress on the terminal: one line, or the busy workers of a cluster."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TextIO

DELAY_SECONDS = 2.0
WIDTH = 30
REFRESH_SECONDS = 1.0


class Progress:
    """Progress line: the current step and, after two seconds, the fraction done.

    It is shown on a terminal only.

    Examples
    --------
    >>> from rankspace.cli.progress import Progress
    >>> with Progress("ranking") as progress:
    ...     progress.show(0.5)
    """

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self.title = title
        self.stream = sys.stderr if stream is None else stream
        self._start = time.monotonic()
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._write("")
            self.stream.write("\r")

    def say(self, step: str) -> None:
        """Show the name of a step at once, as it may be a long one."""
        if self.stream.isatty():
            self._write(f"{self.title}: {step}")

    def show(self, fraction: float) -> None:
        """Show the fraction done."""
        if self.stream.isatty() and time.monotonic() - self._start > DELAY_SECONDS:
            done = round(fraction * WIDTH)
            bar = "#" * done + "." * (WIDTH - done)
            self._write(f"{self.title}: [{bar}] {fraction:4.0%}")

    def _write(self, line: str) -> None:
        self.stream.write("\r" + line.ljust(self._shown))
        self.stream.flush()
        self._shown = len(line)


@contextmanager
def on_cluster(options: argparse.Namespace, progress: Progress) -> Iterator[None]:
    """Run on the Dask cluster of ``--cluster``, if there is one, and show its busy workers."""
    address = getattr(options, "cluster", None)
    if address is None:
        yield
        return
    from .._engine.parallel import use_backend

    if ":" not in address:
        raise ValueError(
            f"--cluster must be the address of a scheduler, such as tcp://SCHEDULER:8786: got "
            f"{address!r}."
        )
    with use_backend(address) as backend:
        sys.stderr.write(
            f"cluster of {backend.n_processes} workers: {backend.dashboard}\n"
        )
        done = threading.Event()
        watch = threading.Thread(
            target=_show_workers, args=(backend, progress, done), daemon=True
        )
        watch.start()
        try:
            yield
        finally:
            done.set()
            watch.join()


def _show_workers(backend: Any, progress: Progress, done: threading.Event) -> None:
    while not done.wait(REFRESH_SECONDS):
        progress.say(
            f"round {backend.n_rounds}, {backend.n_busy} of {backend.n_processes} workers busy"
        )
