"""A temporary folder that goes with the process."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def temporary_folder() -> Path:
    """One folder for the whole process, removed at its end."""
    folder = Path(tempfile.mkdtemp(prefix="rankspace-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
