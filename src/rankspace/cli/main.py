"""The command line: ``rankspace VERB ...``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from .._engine.credentials import hide_credentials
from .compare import add_compare
from .datasets import add_datasets
from .demo import add_demo
from .evaluate import add_evaluate
from .export import add_export
from .fit import add_fit
from .options import check_output
from .rank import add_rank
from .report import add_report
from .show import add_show
from .transform import add_transform
from .tune import add_tune


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        0, or 2 for bad input.

    Examples
    --------
    >>> from rankspace.cli.main import main
    >>> main(["evaluate", "no-such-run", "no-such-qrels"])
    2
    """
    options = build_parser().parse_args(arguments)
    try:
        check_output(getattr(options, "output", None))
        answer = options.verb(options)
    except (ValueError, OSError, ImportError) as error:
        message = hide_credentials(_sentence(error), getattr(options, "url", None))
        print(f"rankspace {options.name}: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("rankspace: interrupted", file=sys.stderr)
        return 130
    try:
        print(answer, flush=True)
    except BrokenPipeError:
        # The reader has closed the pipe. Without this Python reports an error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _sentence(error: Exception) -> str:
    """The error message on one line."""
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}."
    return " ".join(str(error).split())


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong on one line, and exit with code 2."""
        sentence = hide_credentials(" ".join(message.split()))
        self.exit(2, f"{self.prog}: {sentence}; see {self.prog} --help.\n")


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all verbs."""
    parser = _Parser(
        prog="rankspace",
        description="Learn the space in which nearest means most relevant.",
        epilog="example: rankspace demo",
    )
    parser.add_argument(
        "--version", action="version", version=f"rankspace {__version__}"
    )
    verbs = parser.add_subparsers(dest="name", required=True, metavar="VERB")
    add_demo(verbs)
    add_evaluate(verbs)
    add_compare(verbs)
    add_report(verbs)
    add_rank(verbs)
    add_tune(verbs)
    add_fit(verbs)
    add_show(verbs)
    add_transform(verbs)
    add_export(verbs)
    add_datasets(verbs)
    return parser
