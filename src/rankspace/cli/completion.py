"""Shell completion: scripts for bash, zsh and fish, made from the parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

SHELLS = ("bash", "zsh", "fish")

BASH = """\
# Load by: source <(rankspace --print-completion bash)
_rankspace() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{verbs}"
    else
        case "${{COMP_WORDS[1]}}:${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
        *)  case "${{COMP_WORDS[1]}}:$word" in
{options}
            esac ;;
        esac
    fi
    # Without words, readline completes the names of files.
    COMPREPLY=()
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
}}
complete -o default -F _rankspace rankspace
"""

ZSH = """\
#compdef rankspace
# Load by: source <(rankspace --print-completion zsh)
_rankspace() {{
    if (( CURRENT == 2 )); then
        compadd -- {verbs}
        return
    fi
    case "$words[2]:$words[CURRENT-1]" in
{values}
    *)  case "$words[2]:$PREFIX" in
{options}
        *) _files ;;
        esac ;;
    esac
}}
compdef _rankspace rankspace
"""


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script that completes verbs, options and their choices in a shell.

    Parameters
    ----------
    parser : ArgumentParser
        The parser of all verbs.
    shell : {"bash", "zsh", "fish"}
        The shell.

    Returns
    -------
    str

    Examples
    --------
    >>> from rankspace.cli.completion import completion
    >>> from rankspace.cli.main import build_parser
    >>> print(completion(build_parser(), "bash").splitlines()[-1])
    complete -o default -F _rankspace rankspace
    """
    if shell == "fish":
        return _fish(parser)
    template, assign = BASH, 'words="{}"'
    if shell == "zsh":
        template, assign = ZSH, "compadd -- {}"
    values = [
        f"        {verb}:{option}) {assign.format(' '.join(choices))} ;;"
        for verb, action in _all_options(parser)
        for option in action.option_strings
        if (choices := _choices(action))
    ]
    options = [
        f"            {verb}:-*) {assign.format(' '.join(_option_names(options)))} ;;"
        for verb, options in _verbs(parser).items()
    ]
    return template.format(
        verbs=" ".join(_verbs(parser)),
        values="\n".join(values),
        options="\n".join(options),
    )


def _fish(parser: argparse.ArgumentParser) -> str:
    lines = ["# Load by: rankspace --print-completion fish | source"]
    helps = {a.dest: a.help for a in _subparsers(parser)._choices_actions}
    for verb in _verbs(parser):
        lines.append(
            f"complete -c rankspace -f -n __fish_use_subcommand -a {verb} "
            f"-d {shlex.quote(str(helps[verb]))}"
        )
    for verb, action in _all_options(parser):
        names = [
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            for name in action.option_strings
        ]
        value = ""
        if action.nargs != 0:
            value = " -r"
        if _choices(action):
            value = f" -x -a {shlex.quote(' '.join(_choices(action)))}"
        text = (action.help or "").replace("%%", "%")
        lines.append(
            f"complete -c rankspace -n '__fish_seen_subcommand_from {verb}' "
            f"{' '.join(names)}{value} -d {shlex.quote(text)}"
        )
    return "\n".join(lines) + "\n"


def _subparsers(parser: argparse.ArgumentParser) -> Any:
    return next(
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )


def _verbs(parser: argparse.ArgumentParser) -> dict[str, list[argparse.Action]]:
    """The options of each verb."""
    return {
        verb: [action for action in verb_parser._actions if action.option_strings]
        for verb, verb_parser in _subparsers(parser).choices.items()
    }


def _all_options(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, argparse.Action]]:
    for verb, options in _verbs(parser).items():
        for action in options:
            yield verb, action


def _option_names(options: list[argparse.Action]) -> list[str]:
    return [name for action in options for name in action.option_strings]


def _choices(action: argparse.Action) -> list[str]:
    return list(map(str, action.choices or []))
