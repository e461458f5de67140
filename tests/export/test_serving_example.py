"""The example from texts and judgments to a service runs, with both stores."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "serve_from_a_store.py"


def test_the_service_finds_what_index_finds(server, tmp_path, capsys):
    pytest.importorskip("lancedb")
    if not SCRIPT.exists():
        pytest.skip("the examples are not beside the tests")
    spec = importlib.util.spec_from_file_location("serve_from_a_store", SCRIPT)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(tmp_path, server.get_uri(), n_queries=8, budget=4.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("decision: ")
    for name in ("LanceDB", "PostgreSQL"):
        assert f"{name}: 8 of 8 lists are those of Index" in lines
