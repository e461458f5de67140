"""Where the files of the data folder come from: ``_origins.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Origin:
    """Where a file of the data folder comes from.

    Parameters
    ----------
    file : str
        Its path in the data folder.
    source, licence : str
        Repository or package with its version, and what is known of the licence.
    size : int
        Bytes of the content, unpacked if ``is_packed``.
    sha256 : str
        Digest of that content.
    address : str or None
        Where the origin has this content; None if our file was made in more steps.
    is_packed : bool
        Whether the data folder has the content packed by gzip.
    tried : bool
        Whether anybody has downloaded from the address.
    made_by : {"convert", "embed"} or None
        What makes a file without an address, where that is a program.
    """

    file: str
    source: str
    licence: str
    size: int
    sha256: str
    address: str | None = None
    is_packed: bool = False
    tried: bool = False
    made_by: str | None = None

    def __str__(self) -> str:
        state = "" if self.tried else ", address not yet tried"
        return f"{self.file} from {self.address} ({self.size:,} bytes{state})"


@cache
def list_origins() -> dict[str, Origin]:
    """The origin of each file, by its path in the data folder."""
    text = files(__package__).joinpath("_origins.toml").read_text("utf-8")
    origins = {}
    for folder, entry in tomllib.loads(text).items():
        for name, facts in entry["files"].items():
            file = f"{folder}/{name}"
            origins[file] = Origin(
                file,
                entry["origin"],
                entry["licence"],
                facts["bytes"],
                facts["sha256"],
                facts.get("address"),
                facts.get("gzip", False),
                facts.get("tried", False),
                facts.get("made_by"),
            )
    return origins


def describe_origins(paths: Sequence[str]) -> str:
    """Where files would be downloaded from, or what they were made from."""
    origins = [list_origins()[path] for path in paths if path in list_origins()]
    downloads = [str(origin) for origin in origins if origin.address]
    made: dict[tuple[str, str], list[str]] = {}
    for origin in origins:
        if origin.address is None:
            made.setdefault((origin.source, _program(origin)), []).append(origin.file)
    sentences = [
        f"{', '.join(names)}, made from {source}{program}"
        for (source, program), names in made.items()
    ]
    return "; ".join(downloads + sentences)


def _program(origin: Origin) -> str:
    """What makes a file of its origin, as the end of a sentence."""
    folder = origin.file.partition("/")[0]
    programs = {
        "convert": f", by 'python -m experiments.data.convert {folder} FOLDER' in a checkout",
        "embed": ", then by 'rankspace embed' with all-MiniLM-L6-v2",
    }
    return programs.get(origin.made_by or "", "")
