"""Draws `_static/map.svg`: which room of the package imports from which, read from the imports.

`make map` runs it.
"""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "rankspace"
WIDTH, HEIGHT = 132, 44  # of a room
GAP_X, GAP_Y = 44, 58
LAYERS = re.compile(r"LAYERS = \[(.*?)\]", re.S)


def layers() -> list[list[str]]:
    """The rooms, from the ground up, as `tests/test_imports.py` lists them."""
    text = (ROOT / "tests" / "test_imports.py").read_text()
    lines = ast.literal_eval(f"[{LAYERS.search(text)[1]}]")
    return [line.split() for line in lines]


def imports(room: str) -> dict[str, int]:
    """How many import statements of a room name each other room."""
    found: dict[str, int] = {}
    for path in (PACKAGE / room).rglob("*.py"):
        depth = len(path.relative_to(PACKAGE).parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == depth and node.module:
                other = node.module.split(".")[0]
                found[other] = found.get(other, 0) + 1
    return found


def places() -> dict[str, tuple[float, float]]:
    """The middle of each room; the ground is at the bottom."""
    rows = layers()
    widest = max(map(len, rows))
    found = {}
    for number, row in enumerate(rows):
        y = (len(rows) - number - 0.5) * (HEIGHT + GAP_Y)
        indent = (widest - len(row)) / 2
        # Rooms alone in their layer stand left and right in turn: lines would run together.
        shift = (number % 2 - 0.5) * 1.3 if len(row) == 1 else 0
        for i, room in enumerate(row):
            found[room] = ((i + indent + shift + 0.9) * (WIDTH + GAP_X), y)
    return found


def line(start: tuple[float, float], end: tuple[float, float], count: int) -> str:
    """An arrow from the bottom of a room to the top of another one."""
    (x, y), (to_x, to_y) = start, end
    width = 1 + min(count, 40) / 12
    y, to_y = y + HEIGHT / 2, to_y - HEIGHT / 2 - 6
    bend = (to_y - y) / 2
    path = f"M{x:.0f},{y:.0f}C{x:.0f},{y + bend:.0f} "
    path += f"{to_x:.0f},{to_y - bend:.0f} {to_x:.0f},{to_y:.0f}"
    return f'<path class="edge" d="{path}" stroke-width="{width:.1f}" marker-end="url(#tip)"/>'


def room(name: str, middle: tuple[float, float]) -> str:
    x, y = middle
    corner = f'x="{x - WIDTH / 2:.0f}" y="{y - HEIGHT / 2:.0f}"'
    box = f'<rect {corner} width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
    return f'{box}<text x="{x:.0f}" y="{y + 5:.0f}">{escape(name)}</text>'


def draw() -> str:
    """The picture."""
    middles = places()
    edges = [
        line(middles[name], middles[other], count)
        for name in middles
        for other, count in sorted(imports(name).items())
        if other in middles and other != name
    ]
    rooms = [room(name, middle) for name, middle in middles.items()]
    right = max(x for x, _ in middles.values()) + WIDTH / 2 + 20
    bottom = max(y for _, y in middles.values()) + HEIGHT / 2 + 20
    style = (
        "rect{fill:#fff;stroke:#0072b2;stroke-width:2}text{font:15px sans-serif;text-anchor:middle;"
        "fill:#222}.edge{fill:none;stroke:#888;opacity:.6}marker path{fill:#888}.ground{fill:#fff}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:.0f} {bottom:.0f}" '
        f'role="img" aria-label="Which room imports from which"><style>{style}</style>'
        '<defs><marker id="tip" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="8" '
        'refX="2" refY="4" orient="auto"><path d="M0,0L10,4L0,8Z"/></marker></defs>'
        f'<path class="ground" d="M0,0H{right:.0f}V{bottom:.0f}H0Z"/>'
        f"{''.join(edges)}{''.join(rooms)}</svg>\n"
    )


if __name__ == "__main__":
    (Path(__file__).parent / "_static" / "map.svg").write_text(draw())
