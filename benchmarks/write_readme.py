"""Write benchmarks/README.md from the numbers that the benchmarks left in benchmarks/results."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from _table import markdown

FOLDER = Path(__file__).parent
INTRODUCTION = """# Benchmarks

One script a question. Ratios are of one run on one machine; run them on yours by `make benchmarks`,
which writes this page anew. Nothing here is a test: speed is shown, not asserted.
"""


def section(path: Path) -> str:
    """Title, question, table and machine of one result."""
    result: dict[str, Any] = json.loads(path.read_text())
    script = FOLDER / f"{path.stem}.py"
    question = ast.get_docstring(ast.parse(script.read_text()))
    header = list(result["results"][0])
    rows = [list(row.values()) for row in result["results"]]
    where = result["machine"]
    versions = ", ".join(
        f"{name} {number}" for name, number in where["versions"].items()
    )
    return "\n".join(
        [
            f"\n## {result['title']}\n",
            f"`{script.name}`. {question}\n",
            markdown(header, rows),
            f"\n{where['processor']}, {where['cores']} cores; {versions}.",
        ]
    )


def main() -> None:
    results = sorted((FOLDER / "results").glob("*.json"))
    page = "\n".join([INTRODUCTION.rstrip(), *map(section, results)])
    (FOLDER / "README.md").write_text(page + "\n")


if __name__ == "__main__":
    main()
