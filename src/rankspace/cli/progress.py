"""Progress on the terminal: one line, or the busy workers of a cluster."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Self, TextIO

DELAY_SECONDS = 2.0
WIDTH = 30
REFRESH_SECONDS = 1.0


# "quiet", "verbose" or neither.
_verbosity: ContextVar[str] = ContextVar("verbosity", default="")


@contextmanager
def verbosity(options: argparse.Namespace) -> Iterator[None]:
    """Let ``--quiet`` and ``--verbose`` hold for all progress that is shown."""
    level = ""
    for name in ("quiet", "verbose"):
        if getattr(options, name, False):
            level = name
    token = _verbosity.set(level)
    try:
        yield
    finally:
        _verbosity.reset(token)


class Progress:
    """Progress line: the current step and, after two seconds, the fraction done.

    It is shown on a terminal only, or by ``--verbose`` in lines of their own.

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
        self._tenths = 0
        self._is_verbose = _verbosity.get() == "verbose"
        self._is_line = _verbosity.get() == "" and self.stream.isatty()

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
        if self._is_verbose:
            self._write_line(step)
        elif self._is_line:
            self._write(f"{self.title}: {step}")

    def show(self, fraction: float) -> None:
        """Show the fraction done; by ``--verbose`` once for each tenth."""
        if self._is_verbose and int(10 * fraction) != self._tenths:
            self._tenths = int(10 * fraction)
            self._write_line(f"{fraction:.0%}")
        elif self._is_line and time.monotonic() - self._start > DELAY_SECONDS:
            done = round(fraction * WIDTH)
            bar = "#" * done + "." * (WIDTH - done)
            self._write(f"{self.title}: [{bar}] {fraction:4.0%}")

    def _write_line(self, text: str) -> None:
        seconds = time.monotonic() - self._start
        self.stream.write(f"{self.title}: {text} ({seconds:.1f} s)\n")
        self.stream.flush()

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
