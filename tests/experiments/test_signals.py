"""The recipes `signals` and `sizes` on a small collection with texts."""

import numpy as np
import pytest

from experiments.protocols import signals
from experiments.recipe import load_recipe
from planted import hidden
from rankspace.datasets import Dataset
from rankspace.learners import families

pytest.importorskip("bm25s")


@pytest.fixture
def small(monkeypatch):
    """Queries whose words name one of their three documents."""
    monkeypatch.setattr(families, "TOTAL_REGS", (24.0, 2.4))
    X, relevance, Q = hidden(n_queries=80)
    words = [f"word{number}" for number in range(200)]
    named = [words[relevance.relevant(query)[0]] for query in range(80)]
    data = Dataset(
        "small",
        X,
        relevance,
        queries=Q,
        texts=words,
        query_texts=named,
        splits={"train": np.arange(80)},
    )
    monkeypatch.setattr(signals, "open_dataset", lambda name: data)
    return {"label": "small", "name": "small"}


def test_rows_of_signals(small):
    result = signals.signals_of(small, 0)
    labels = [row[0] for row in result["rows"]]
    assert labels[:3] == ["unchanged vectors", "BM25 alone", "reciprocal rank fusion"]
    assert labels[3].startswith("map (")
    assert len(result["header"]) == len(result["rows"][0])
    means = [float(row[1].split()[0]) for row in result["rows"]]
    assert means[2] > means[0]
    assert means[4] >= means[3] - 0.01
    assert result["rows"][0][1].endswith("(+0.000, +0.000 to +0.000, safe)")


def test_rows_of_sizes(small):
    result = signals.sizes_of({**small, "tolerance": 1.0}, 0)
    assert [row[1] for row in result["rows"]] == [
        "float32",
        "float16",
        "int8",
        "binary",
    ]
    assert result["rows"][0][-1] == "full width"
    assert len(result["header"]) == len(result["rows"][0])


@pytest.mark.parametrize("name", ["signals", "sizes"])
def test_recipes_load(name):
    recipe = load_recipe(name)
    assert recipe.protocol == "signals"
    assert recipe.options["what"] == name
