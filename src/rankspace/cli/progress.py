"""A line on the terminal for work that takes over two seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

PATIENCE_SECONDS = 2.0
WIDTH = 30


class Progress:
    """Shows the step that begins, and after two seconds the share done; only on a terminal.

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
        """Name the step that begins. Shown at once: it may be the one that takes long."""
        if self.stream.isatty():
            self._write(f"{self.title}: {step}")

    def show(self, share: float) -> None:
        """Show which share is done."""
        if self.stream.isatty() and time.monotonic() - self._start > PATIENCE_SECONDS:
            done = round(share * WIDTH)
            self._write(
                f"{self.title}: [{'#' * done}{'.' * (WIDTH - done)}] {share:4.0%}"
            )

    def _write(self, line: str) -> None:
        self.stream.write("\r" + line.ljust(self._shown))
        self.stream.flush()
        self._shown = len(line)
