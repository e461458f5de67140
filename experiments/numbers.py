"""Numbers in prose come from results files: ``python -m experiments.numbers [--write]``.

``numbers.toml`` quotes the words around each measured number of a page, and names the cell of a
results file that it is. This module compares page and file, writes the numbers of the files into
the pages, and finds numbers that no entry accounts for.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent
ROOT = HOME.parent
PLACE = re.compile(r"\{([^{}]*)\}")
DIGITS = r"[+-]?\d+(?:,\d{3})*(?:\.\d+)?"
NUMBER = re.compile(DIGITS)
# What a place may hold in a page: a number, perhaps with its error or interval.
CELL = rf"{DIGITS}(?: ± \d+\.\d+| \[{DIGITS}, {DIGITS}\])?"
# What no reader takes for a measurement: code, formulas, targets of links, and exponents.
NO_PROSE = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|<!--.*?-->", re.DOTALL
)
UNITS = (
    r"(?: ?%| percent\b| s\b| ms\b| µs\b| [KMG]i?B\b| times\b| (?:second|minute|hour)s?\b|-fold\b"
    r"| (?:\w+ )?(?:a|per) second\b| of \d)"
)
MEASURED = re.compile(
    rf"(?<![\w.@])(?<!top )(?:[+-]?\d+(?:,\d{{3}})*\.\d+|{DIGITS}(?={UNITS}))"
)


@dataclass(frozen=True)
class Quote:
    """Words of a page around cells of a results file."""

    page: str
    text: str
    source: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """The words, over any line breaks, with a group for each number."""
        words = PLACE.split(self.text)
        words[::2] = [_loose(word) for word in words[::2]]
        words[1::2] = [f"({CELL})"] * (len(words) // 2)
        return re.compile("".join(words))

    def find(self, content: str) -> re.Match[str]:
        """Where the page has these words, exactly once."""
        found = list(self.pattern.finditer(content))
        if len(found) != 1:
            raise ValueError(
                f"{self.page} must have these words of numbers.toml once, and has them "
                f"{len(found)} times: {self.text!r}. Change the entry with the page."
            )
        return found[0]

    def numbers(self) -> list[str]:
        """The numbers of the results file, as the page must print them."""
        content = _results(self.source)
        return [
            printed(content, place, self.source) for place in PLACE.findall(self.text)
        ]

    def written(self, content: str) -> str:
        """The page with the numbers of the results file."""
        found = self.find(content)
        for group, number in reversed(list(enumerate(self.numbers(), 1))):
            start, end = found.span(group)
            content = content[:start] + number + content[end:]
        return content


def _loose(words: str) -> str:
    """A pattern of words that may be wrapped, where ``...`` is anything on the same line."""
    parts = re.split(r"(\s+|\.\.\.)", words)
    loose = {"...": r"[^\n]*?"}
    return "".join(
        r"\s+" if part.isspace() else loose.get(part, re.escape(part)) for part in parts
    )


# ---------------------------------------------------------------------- cells of results


def printed(content: Mapping[str, Any], place: str, source: str) -> str:
    """The number of a results file at a place such as ``row | column | .2f``.

    The title of the table, where there are several, stands before ``>``.

    The form is one of `format`, where a form with % takes a share, or "s" for the cell as it is.
    Without a form, the first word of the cell is taken as it is. ``a minus b`` for row or column
    is a difference, and ``column #2`` begins with the second number of the cell.
    """
    table, _, rest = place.rpartition(" > ")
    row, column, *form = (part.strip() for part in rest.split(" | "))
    pairs = [(r, c) for r in row.split(" minus ") for c in column.split(" minus ")]
    header, rows = _table(content, table.strip(), source)
    cells = [_cell(header, rows, *pair, source) for pair in pairs]
    if form == ["s"]:
        return cells[0]
    if not form:
        return cells[0].split()[0].removesuffix("%")
    value = _number(cells[0])
    if len(cells) == 2:
        value -= _number(cells[1])
    return _formatted(value, form[0])


def _number(cell: str) -> float:
    """The first number of a cell."""
    found = NUMBER.search(cell)
    if not found:
        raise ValueError(f"a place must name a cell with a number: got {cell!r}.")
    return float(found[0].replace(",", ""))


def _formatted(value: float, form: str) -> str:
    if form.endswith("g"):
        # Significant digits, never with an exponent.
        return f"{float(format(value, form)):,g}"
    return format(value, form).removesuffix("%")


def _cell(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    row: str,
    column: str,
    source: str,
) -> str:
    column, _, nth = column.partition(" #")
    names = [[str(cell) for cell in cells] for cells in rows]
    found = [i for i, cells in enumerate(names) if cells[0] == row]
    if len(found) != 1:
        prefix = f"{row}, "
        found = [
            i for i, c in enumerate(names) if ", ".join([*c, ""]).startswith(prefix)
        ]
    columns = [i for i, name in enumerate(header) if name == column]
    columns += [i for i, name in enumerate(header) if name.startswith(f"{column} (")]
    if len(found) != 1 or not columns:
        raise ValueError(
            f"{source} must have one row {row!r} and a column {column!r}: got {len(found)} rows "
            f"and the columns {', '.join(header)}."
        )
    cell = names[found[0]][columns[0]]
    if not nth:
        return cell
    return list(NUMBER.finditer(cell))[int(nth) - 1][0]


def _table(
    content: Mapping[str, Any], title: str, source: str
) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    if "tables" not in content:
        rows = content["results"]
        return list(rows[0]), [list(row.values()) for row in rows]
    found = [t for t in content["tables"] if t["title"].startswith(title)]
    if not found:
        raise ValueError(f"{source} has no table whose title starts with {title!r}.")
    return found[0]["header"], found[0]["rows"]


@cache
def _results(source: str) -> Mapping[str, Any]:
    """A results file: a recipe's by its name, a benchmark's as benchmarks/NAME."""
    path = HOME / "results" / source / "results.json"
    if source.startswith("benchmarks/"):
        folder, name = source.split("/")
        path = ROOT / folder / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------------- pages


def read_entries() -> tuple[list[Quote], Mapping[str, Sequence[str]]]:
    """The quotes of ``numbers.toml``, one for each of their ``rows``, and constants by page."""
    entries = tomllib.loads((HOME / "numbers.toml").read_text(encoding="utf-8"))
    quotes = []
    for entry in entries["quotes"]:
        for row in entry.get("rows", [""]):
            text = entry["text"].replace("ROW", row)
            quotes.append(Quote(entry["page"], text, entry["from"]))
    return quotes, entries["constants"]


def list_pages() -> list[str]:
    """Pages whose numbers must be accounted for; the errata run their own examples."""
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    notes = {f"experiments/{path.name}" for path in HOME.glob("*-notes.md")}
    pages = (pages | notes) - {"docs/errata.md"}
    return ["README.md", "experiments/README.md", *sorted(pages)]


def problems(
    page: str, content: str, quotes: Sequence[Quote], constants: Sequence[str]
) -> Iterator[str]:
    """What is wrong with a page: numbers that differ from the results, or come from nowhere."""
    known: list[tuple[int, int]] = []
    for quote in quotes:
        try:
            found = quote.find(content)
        except ValueError as error:
            yield str(error)
            continue
        known += found.regs[1:]
        for got, expected in zip(found.groups(), quote.numbers(), strict=True):
            if got != expected:
                yield f"{page} has {got}, {quote.source} has {expected}: {quote.text}"
    for constant in constants:
        pattern = rf"(?<![\d.,]){_loose(constant)}(?![\d])"
        spans = [found.span() for found in re.finditer(pattern, content)]
        if not spans:
            yield f"{page} has no {constant!r}, which numbers.toml lists as a constant"
        known += spans
    for number in MEASURED.finditer(_prose(content)):
        if not any(start <= number.start() < end for start, end in known):
            line = content.count("\n", 0, number.start()) + 1
            yield f"{page}, line {line}: {number[0]} has no entry in numbers.toml"


def _prose(content: str) -> str:
    """The page with blanks in place of all that is no prose."""
    return NO_PROSE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), content)


def check(page: str, content: str) -> list[str]:
    """What is wrong with the content of a page."""
    quotes, constants = read_entries()
    here = [quote for quote in quotes if quote.page == page]
    return list(problems(page, content, here, constants.get(page, [])))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the pages with the results, and write the numbers if asked to."""
    parser = argparse.ArgumentParser(prog="python -m experiments.numbers")
    parser.add_argument("--write", action="store_true", help="write the numbers")
    options = parser.parse_args(arguments)
    if options.write:
        for quote in read_entries()[0]:
            path = ROOT / quote.page
            path.write_text(quote.written(path.read_text("utf-8")), "utf-8")
    found = []
    for page in list_pages():
        found += check(page, (ROOT / page).read_text(encoding="utf-8"))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
