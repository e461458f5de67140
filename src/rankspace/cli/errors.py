"""How the command line ends: its answer, or one sentence for each error, and the exit code."""

from __future__ import annotations

import io
import os
import platform
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from .. import __version__
from .._engine.credentials import hide_credentials

BAD_INPUT = 2
DEFECT = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "safetensors")


def run_verb(name: str, work: Callable[[], str], options: Any = None) -> int:
    """Run a verb, print its answer or what went wrong, and return the exit code.

    Parameters
    ----------
    name : str
        The verb.
    work : callable
        Returns the answer.
    options : argparse.Namespace, optional
        ``url`` is the address of a server, whose password must not be shown. ``quiet`` leaves out
        warnings. If ``to_stdout`` is set, the answer goes to standard error. ``exit_code`` is that
        of the answer, if not 0.

    Returns
    -------
    int
        0, 1 if ``compare --fail-if-worse`` or ``check`` fails, 2 for bad input, 70 for a defect of
        rankspace, 130 after Ctrl-C.

    Examples
    --------
    >>> from rankspace.cli.errors import run_verb
    >>> run_verb("rank", lambda: "ranked 3 items")
    ranked 3 items
    0
    """
    program = f"rankspace {name}"
    address = getattr(options, "url", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            if getattr(options, "quiet", False):
                warnings.simplefilter("ignore")
            answer = work()
    except KeyboardInterrupt:
        _complain("rankspace: interrupted")
        return INTERRUPTED
    except MemoryError as error:
        reason = hide_credentials(_one_line(str(error)) or "allocation failed", address)
        _complain(f"{program}: there is not enough memory for this: {reason}.")
        return BAD_INPUT
    except (ValueError, OSError, ImportError) as error:
        _complain(f"{program}: {hide_credentials(_sentence(error), address)}")
        return BAD_INPUT
    except Exception as error:
        _complain(f"{program}: {_apology(error, address)}")
        return DEFECT
    if getattr(options, "to_stdout", False):
        _complain(answer)
        return 0
    return tell(answer) or getattr(options, "exit_code", 0)


def _note(message: Warning | str, *where: Any, **more: Any) -> None:
    """Show a warning as one line, without the place in the code."""
    _complain(f"note: {_one_line(str(message))}")


def tell(answer: str, end: str = "\n") -> int:
    """Print the answer, and return the exit code: 2 if standard output cannot be written."""
    try:
        print(answer, end=end, flush=True)
    except BrokenPipeError:
        # The reader has had enough.
        _discard_output()
    except OSError as error:
        _discard_output()
        _complain(f"rankspace: standard output cannot be written: {_sentence(error)}")
        return BAD_INPUT
    return 0


def prepare_streams() -> None:
    """Make standard output and error take all characters, also if they are ASCII or closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    # Without this Python reports an error again when it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(sentence: str) -> None:
    try:
        print(sentence, file=sys.stderr, flush=True)
    except OSError:
        # Nobody can be told; the exit code is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _sentence(error: Exception) -> str:
    """The error message on one line."""
    if isinstance(error, OSError) and error.strerror:
        reason = f"{error.strerror.lower()}."
        return f"{error.filename}: {reason}" if error.filename else reason
    return _one_line(str(error)) or f"{type(error).__name__}."


def _one_line(text: str) -> str:
    return " ".join(text.split())


# ---------------------------------------------------------------------- our own defects


def _apology(error: Exception, address: str | None) -> str:
    """What to tell about a defect: that it is ours, where its traceback is, how to report it."""
    report = hide_credentials(_report(error), address)
    cause = hide_credentials(_one_line(f"{type(error).__name__}: {error}"), address)
    try:
        handle, path = tempfile.mkstemp(prefix="rankspace-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write(report)
    except OSError:
        where = f"It cannot be written to a file, so here it is:\n{report}"
    else:
        where = f"It is in {path}."
    return (
        f"sorry, this is a defect of rankspace ({cause}). Please open an issue with the command "
        f"that you ran and the traceback. {where}"
    )


def _report(error: Exception) -> str:
    """The traceback, and the versions of everything."""
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        f"rankspace {__version__}, Python {platform.python_version()} on {platform.platform()}\n"
        f"{packages}\n\n{''.join(traceback.format_exception(error))}"
    )
