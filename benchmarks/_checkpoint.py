"""Checkpoint of a long benchmark: finished parts are stored, so that an interrupted run resumes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Checkpoint:
    """Finished parts by name, stored as lines of JSON in a file, or in memory without one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.parts: dict[str, Any] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                name, value = json.loads(line)
                self.parts[name] = value

    @classmethod
    def from_arguments(cls) -> Checkpoint:
        """The checkpoint in the file after --checkpoint."""
        parser = argparse.ArgumentParser(add_help=False)
        parser.add_argument("--checkpoint", type=Path)
        options, _ = parser.parse_known_args()
        return cls(options.checkpoint)

    def get(self, name: str, compute: Callable[[], Any]) -> Any:
        """The stored part of this name; it is computed and stored first if it is missing."""
        if name not in self.parts:
            self.parts[name] = compute()
            if self.path is not None:
                with self.path.open("a") as file:
                    file.write(json.dumps([name, self.parts[name]]) + "\n")
        return self.parts[name]
