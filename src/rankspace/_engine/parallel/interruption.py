"""Interruption: a check that may raise to end long work, called between its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_check: ContextVar[Callable[[], Any] | None] = ContextVar("rankspace_check")


@contextmanager
def interrupted_by(check: Callable[[], Any]) -> Iterator[None]:
    """Call ``check`` between the blocks and steps of all work of this thread inside.

    What it raises ends the work. It is for time limits: learners know nothing of them.
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def check_interruption() -> None:
    """Call the check of this thread, if there is one."""
    check = _check.get(None)
    if check is not None:
        check()
