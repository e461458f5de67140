"""What is fuzzed: each reader, and what is done with all that it accepts."""

from __future__ import annotations

import argparse
import inspect
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from fuzz import mutate, seeds
from fuzz.mutate import BYTES, TEXT, Mutator, mutated
from rankspace import Index, Relevance, evaluate, load_metric
from rankspace._engine.files import read_lines
from rankspace._engine.vectors import VectorBlocks, map_npy, read_names, read_vectors
from rankspace.cli.fit import _estimator, _methods
from rankspace.cli.show import show
from rankspace.datasets import (
    read_beir,
    read_corpus,
    read_letor,
    read_texts,
    read_trec_run,
)
from rankspace.datasets._fetch_tables import _read_idx, _read_numbers
from rankspace.evaluation import check_drift, check_gain
from rankspace.export import Sidecar

MAX_FEATURES = 64  # of accepted metrics that are tried out
QREL_IDS = {"query_ids": ["q1", "q2"], "item_ids": ["a", "b", "c"]}


@dataclass(frozen=True)
class Target:
    """A reader: mutated seeds go into a file of this suffix, and ``run`` reads it.

    ``run`` may raise ValueError or OSError; anything else is a fault.
    """

    suffix: str
    run: Callable[[Path], None]
    build: Callable[[], Sequence[bytes]]
    mutators: Sequence[Mutator]

    @cached_property
    def seeds(self) -> Sequence[bytes]:
        """Valid inputs, built once."""
        return self.build()

    def content(self, number: int) -> bytes:
        """The input of a number, which is the same in every run."""
        return mutated(self.seeds, self.mutators, np.random.default_rng(number))

    def accepts(self, path: Path) -> bool:
        """Whether the reader accepts a file; errors that are faults pass."""
        try:
            self.run(path)
        except (ValueError, OSError):
            return False
        return True

    @contextmanager
    def file(self) -> Iterator[Path]:
        """A path for inputs, one after the other, in a folder of its own."""
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            yield Path(folder) / f"input{self.suffix}"

    def try_content(self, path: Path, content: bytes) -> bool:
        """Whether the reader accepts a content."""
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        return self.accepts(path)


def read_and_rank(path: Path) -> None:
    """Read vectors in both ways, and search them."""
    X = read_vectors(path)
    assert np.isfinite(X).all()
    for block in VectorBlocks(path):
        assert np.isfinite(block).all()
    names = read_names(path)
    assert names is None or len(names) == len(X)
    ranking = Index(path).rank(X[:2], 2)
    assert np.isfinite(ranking.distances).all()


def use_metric(path: Path) -> None:
    """Load a metric, show it, check it, rank by it, and explain a score."""
    metric = load_metric(path)
    if metric.n_features > MAX_FEATURES:
        return
    show(argparse.Namespace(metric=str(path), json=False))
    X = np.random.default_rng(0).normal(size=(4, metric.n_features))
    if metric.query_sample is not None:
        check_drift(metric, np.repeat(X, 2, axis=0))
    if getattr(metric, "has_anchors", False):
        assert np.isfinite(metric.scores(X, qid=[0, 0, 1, 1])).all()
        metric.explain_list(X)
        return
    width = metric.n_features
    if hasattr(metric, "query_map"):
        width = metric.query_map.shape[1]
    if width > MAX_FEATURES:
        return
    Q = np.random.default_rng(1).normal(size=(2, width))
    assert np.isfinite(metric.distances(Q, X)).all()
    assert np.isfinite(metric.rank(Q, X, 2).distances).all()
    metric.explain(Q[0], X[0])
    if hasattr(metric, "embed_items"):
        asked = np.random.default_rng(2).normal(size=(10, width))
        check_gain(metric, X, [[0], [1]] * 5, asked)


def read_candidates(path: Path) -> None:
    """Read candidate lists, and evaluate an order of them."""
    dataset = read_letor(path)
    assert len(dataset.X) == len(dataset.grades)


def read_run(path: Path) -> None:
    """Read a run, and score it."""
    judged = Relevance.from_qrels({"q1": {"a": 1}, "q2": {"b": 1}})
    report = evaluate(read_trec_run(path), judged, "map ndcg@10")
    assert all(0 <= mean <= 1 for mean in report.means.values() if mean == mean)


def read_judgments(path: Path) -> None:
    """Read qrels alone, and joined to ids."""
    Relevance.from_qrels(path)
    Relevance.from_qrels(path, unknown="drop", **QREL_IDS)


def read_clicks(path: Path) -> None:
    """Count the clicks of a log, all and those of a time."""
    found = Relevance.from_clicks(path, propensities=[1.0, 0.5, 0.25])
    assert np.isfinite(found.grades).all()
    Relevance.from_clicks(path, since="2026-01-01")


def read_folder(path: Path) -> None:
    """Read a folder in the form of BEIR, whose corpus is mutated."""
    folder = path.parent
    path.replace(folder / "corpus.jsonl")
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": ""}\n')
    (folder / "qrels.tsv").write_text("q1\ta\t1\n")
    read_beir(folder, embeddings=False, unknown="drop")
    ids, fields = read_corpus(folder)
    assert len(ids) == len(fields)


def read_texts_to_embed(path: Path) -> None:
    """Read texts and ids."""
    ids, texts = read_texts(path)
    assert all(isinstance(text, str) for text in texts)
    assert ids is None or len(ids) == len(texts)


def read_sidecar(path: Path) -> None:
    """Read the ids beside an index file, and look some up."""
    first = 1 << 32
    items = Sidecar(path.with_name("input"), first)
    found = items.names([[first, -1]])
    assert all(isinstance(name, str) for name in found[0])
    assert items.payload is None or len(items.payload) == len(items.ids)


def resume(path: Path) -> None:
    """Go on from a checkpoint, by the learner that wrote it."""
    with warnings.catch_warnings():
        # A fit of a few rounds does not converge.
        warnings.simplefilter("ignore")
        _resume(path)


def _resume(path: Path) -> None:
    for learner, more in seeds.interrupted_fits(path):
        try:
            learner.set_params(**more).fit(*seeds.classes())
        except FloatingPointError:
            # What it learned overflows, and it says so.
            return
        except ValueError as error:
            refusal = error
            continue
        assert np.isfinite(learner.components_).all()
        return
    raise refusal


def read_images(path: Path) -> None:
    """Read the bytes of images."""
    assert _read_idx(path, header=8, width=4).shape[1] == 4


def read_table(path: Path) -> None:
    """Read a table of numbers, as those of the data folder."""
    assert np.isfinite(_read_numbers(path, delimiter=",")).all()


def read_labels(path: Path) -> None:
    """Read labels of a .npy file."""
    Relevance.from_labels(np.array(map_npy(path)))


def read_text(path: Path) -> None:
    """Read ids, one per line."""
    assert all(text for _, text in read_lines(path))


def set_parameters(path: Path) -> None:
    """Take the text as a value of ``--set`` for the first estimator that has the parameter."""
    text = path.read_bytes().decode(errors="surrogateescape")
    name = text.partition("=")[0]
    having = [method for method in _methods() if name in _parameters(method)]
    method = having[0] if having else "mlr"
    options = argparse.Namespace(method=method, set=[text], seed=0)
    vars(options).update(n_components=None, trade_off=None, measure=None, sides=None)
    _estimator(options)


@cache
def _parameters(method: str) -> list[str]:
    return list(inspect.signature(_methods()[method]).parameters)


SAFETENSORS = (
    *BYTES,
    *[mutate.change_safetensors] * 6,
    *[mutate.change_numbers] * 4,
)
GZIPPED = (*TEXT, mutate.change_gzipped)
TARGETS = {
    "npy": Target(".npy", read_and_rank, seeds.npy, (*BYTES, mutate.change_npy_header)),
    "npz": Target(
        ".npz", read_and_rank, seeds.npz, (*BYTES, *[mutate.change_member] * 4)
    ),
    "safetensors": Target(
        ".safetensors", read_and_rank, seeds.safetensors_vectors, SAFETENSORS
    ),
    "parquet": Target(".parquet", read_and_rank, seeds.parquet, BYTES),
    "arrow": Target(".arrow", read_and_rank, seeds.arrow, BYTES),
    "metric": Target(".safetensors", use_metric, seeds.metrics, SAFETENSORS),
    "checkpoint": Target(
        ".safetensors",
        resume,
        seeds.checkpoints,
        (*BYTES, *[mutate.change_checkpoint] * 12),
    ),
    "letor": Target(".txt", read_candidates, lambda: seeds.texts(seeds.LETOR), TEXT),
    "letor-gz": Target(
        ".gz", read_candidates, lambda: seeds.texts(seeds.LETOR)[1:], GZIPPED
    ),
    "run": Target(".trec", read_run, lambda: seeds.texts(seeds.RUN), TEXT),
    "qrels": Target(".tsv", read_judgments, lambda: seeds.texts(*seeds.QRELS), TEXT),
    "clicks": Target(".csv", read_clicks, lambda: seeds.texts(seeds.CLICKS), TEXT),
    "beir": Target(".jsonl", read_folder, lambda: seeds.texts(seeds.BEIR), TEXT),
    "texts": Target(
        ".jsonl", read_texts_to_embed, lambda: seeds.texts(seeds.BEIR), TEXT
    ),
    "csv": Target(".csv", read_texts_to_embed, lambda: seeds.texts(seeds.CSV), TEXT),
    "csv-gz": Target(
        ".csv.gz", read_texts_to_embed, lambda: seeds.texts(seeds.CSV)[1:], GZIPPED
    ),
    "texts-parquet": Target(
        ".parquet", read_texts_to_embed, seeds.parquet_texts, BYTES
    ),
    "idx": Target(".gz", read_images, seeds.idx, (*BYTES, mutate.change_gzipped)),
    "table": Target(
        ".data.gz", read_table, lambda: seeds.texts("1,2.5\n-3,4e5\n"), GZIPPED
    ),
    "sidecar": Target(
        ".ids-00000001.jsonl", read_sidecar, lambda: seeds.texts(*seeds.SIDECAR), TEXT
    ),
    "labels": Target(
        ".npy", read_labels, seeds.labels, (*BYTES, mutate.change_npy_header)
    ),
    "ids": Target(".gz", read_text, lambda: seeds.texts("a\nb\nc\n")[1:], GZIPPED),
    "set": Target(
        ".toml", set_parameters, lambda: seeds.texts(*seeds.SETTINGS)[:-1], TEXT
    ),
}
