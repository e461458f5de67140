"""Pieces of a long benchmark that are done already, so that a stopped run can go on."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Kept:
    """Finished pieces by name, as lines of JSON in a file; in memory alone without one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = (
            path.read_text().splitlines() if path is not None and path.exists() else []
        )
        self.pieces: dict[str, Any] = dict(json.loads(line) for line in lines)

    @classmethod
    def from_arguments(cls) -> Kept:
        """In the file after --keep."""
        parser = argparse.ArgumentParser(add_help=False)
        parser.add_argument("--keep", type=Path)
        return cls(parser.parse_known_args()[0].keep)

    def get(self, name: str, make: Callable[[], Any]) -> Any:
        """The piece of this name, made now if it was not before."""
        if name not in self.pieces:
            self.pieces[name] = make()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([name, self.pieces[name]]) + "\n")
        return self.pieces[name]
