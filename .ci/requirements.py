"""Print the packages of dependency groups of pyproject.toml: python .ci/requirements.py dev

For pip before 25.1, which has no --group. Without a name, nothing is printed.
"""

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def packages(groups: dict, name: str) -> list[str]:
    """Requirements of a group, with those of the groups it includes."""
    found = []
    for entry in groups[name]:
        if isinstance(entry, dict):
            found += packages(groups, entry["include-group"])
        else:
            found.append(entry)
    return found


if __name__ == "__main__":
    groups = tomllib.loads(PROJECT.read_text())["dependency-groups"]
    for name in sys.argv[1:]:
        sys.stdout.write("\n".join(packages(groups, name)) + "\n")
