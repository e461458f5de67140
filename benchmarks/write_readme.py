"""Write benchmarks/README.md from the docstrings of the scripts and the JSON files in results/."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from _table import describe, markdown

FOLDER = Path(__file__).parent
INTRODUCTION = """# Benchmarks

Each script answers one question. Ratios are within one run on one machine. `make benchmarks` runs
the scripts on your machine and rewrites this page. These are not tests: they measure speed and
assert nothing about it.
"""


def section(path: Path) -> str:
    """Title, question, table and machine of one benchmark."""
    result: dict[str, Any] = json.loads(path.read_text())
    script = FOLDER / f"{path.stem}.py"
    question = ast.get_docstring(ast.parse(script.read_text()))
    header = list(result["results"][0])
    rows = [list(row.values()) for row in result["results"]]
    return "\n".join(
        [
            f"\n## {result['title']}\n",
            f"`{script.name}`. {question}\n",
            markdown(header, rows),
            f"\n{describe(result['machine'])}.",
        ]
    )


def main() -> None:
    results = sorted((FOLDER / "results").glob("*.json"))
    page = "\n".join([INTRODUCTION.rstrip(), *map(section, results)])
    (FOLDER / "README.md").write_text(page + "\n")


if __name__ == "__main__":
    main()
