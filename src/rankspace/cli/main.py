"""The command line: ``rankspace VERB ...``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__
from .._engine.credentials import hide_credentials
from .check import add_check
from .compare import add_compare
from .completion import SHELLS, completion
from .datasets import add_datasets
from .demo import add_demo
from .embed import add_embed
from .errors import prepare_streams, run_verb, tell
from .evaluate import add_evaluate
from .export import add_export
from .fit import add_fit
from .options import check_outputs, name_standard_output
from .progress import verbosity
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
        0, 2 for bad input, 70 for a defect of rankspace, 130 after Ctrl-C.

    Examples
    --------
    >>> from rankspace.cli.main import main
    >>> main(["evaluate", "no-such-run", "no-such-qrels"])
    2
    """
    prepare_streams()
    parser = build_parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        return tell(parser.format_help(), end="")
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stopped:
        # The text of --help may not have been written yet.
        raise SystemExit(stopped.code or tell("", end="")) from None

    def work() -> str:
        name_standard_output(options)
        check_outputs(options)
        return options.verb(options)

    with verbosity(options):
        return run_verb(options.name, work, options)


class _PrintCompletion(argparse.Action):
    """Print the completion script of a shell."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        options: Any,
        shell: Any,
        name: Any = None,
    ) -> NoReturn:
        """Print it and exit."""
        raise SystemExit(tell(completion(parser, shell), end=""))


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
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=SHELLS,
        help="print a script that completes commands in this shell",
    )
    verbs = parser.add_subparsers(dest="name", required=True, metavar="VERB")
    add_demo(verbs)
    add_evaluate(verbs)
    add_compare(verbs)
    add_check(verbs)
    add_report(verbs)
    add_rank(verbs)
    add_embed(verbs)
    add_tune(verbs)
    add_fit(verbs)
    add_show(verbs)
    add_transform(verbs)
    add_export(verbs)
    add_datasets(verbs)
    return parser
