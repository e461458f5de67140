"""The recipes for frameworks, where these are installed; ``make test-text`` installs them."""

import re
from pathlib import Path

import numpy as np
import pytest

from rankspace import AsymmetricMetric, Index

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"
pytestmark = pytest.mark.filterwarnings("default")
TEXTS = [f"text {i}" for i in range(40)]
QUERIES = ["text 3", "text 30"]


def recipe(name):
    """What a code block of the page defines."""
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.S)
    (block,) = [block for block in blocks if f"class {name}(" in block]
    space = {"__name__": "recipe"}
    exec(compile(block, name, "exec"), space)
    return space[name]


def vector_of(text):
    seed = [*text.encode()]
    return np.random.default_rng(seed).standard_normal(6)


@pytest.fixture
def metric(rng):
    maps, offset = rng.standard_normal((2, 4, 6)), rng.standard_normal(4)
    return AsymmetricMetric(*maps, query_offset=offset)


def wanted(metric):
    X = np.array([vector_of(text) for text in TEXTS])
    Q = np.array([vector_of(text) for text in QUERIES])
    return Index(X, metric).rank(Q, 10).items.reshape(2, 10)


def nearest(queries, items):
    apart = np.array(queries)[:, None] - np.array(items)
    return np.argsort((apart**2).sum(axis=2), axis=1)[:, :10]


def test_langchain(metric):
    embeddings = pytest.importorskip("langchain_core.embeddings")

    class Plain(embeddings.Embeddings):
        def embed_documents(self, texts):
            return [vector_of(text).tolist() for text in texts]

        def embed_query(self, text):
            return vector_of(text).tolist()

    mapped = recipe("MappedEmbeddings")(Plain(), metric)
    queries = [mapped.embed_query(text) for text in QUERIES]
    items = mapped.embed_documents(TEXTS)
    assert isinstance(items[0][0], float)
    np.testing.assert_array_equal(nearest(queries, items), wanted(metric))


def test_llamaindex(metric):
    base = pytest.importorskip("llama_index.core.base.embeddings.base")

    class Plain(base.BaseEmbedding):
        def _get_query_embedding(self, query):
            return vector_of(query).tolist()

        async def _aget_query_embedding(self, query):
            return self._get_query_embedding(query)

        def _get_text_embedding(self, text):
            return vector_of(text).tolist()

    mapped = recipe("MappedEmbedding")(embedding=Plain(), metric=metric)
    queries = [mapped.get_query_embedding(text) for text in QUERIES]
    items = mapped.get_text_embedding_batch(TEXTS)
    np.testing.assert_array_equal(nearest(queries, items), wanted(metric))
