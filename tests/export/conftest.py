"""A PostgreSQL server for the tests of exports."""

import subprocess
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def server():
    """A temporary PostgreSQL server."""
    with (
        tempfile.TemporaryDirectory(prefix="pg") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", folder)
        pgserver = pytest.importorskip("pgserver")
        pytest.importorskip("psycopg")
        try:
            started = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"PostgreSQL does not start here: {error}")
        with started:
            yield started
