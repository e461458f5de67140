"""The data sets there are, and the files each is read from."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One line of the catalogue; files are relative to the data folder."""

    kind: str
    size: str
    source: str
    files: tuple[str, ...] = ()


BUNDLED = "comes with scikit-learn"
COMPUTED = "computed from its rule"
OWN = "comes with rankspace"
FOLDER = "data folder"
OPENML = "data folder, else OpenML"
SKLEARN = "data folder, else scikit-learn's download"


def _retrieval(folder: str, *qrels: str) -> tuple[str, ...]:
    names = ("corpus.jsonl.gz", "queries.jsonl.gz", "corpus_minilm_f16.npy")
    return tuple(
        f"{folder}/{name}" for name in (*names, "queries_minilm_f16.npy", *qrels)
    )


CATALOGUE = {
    "balance_scale": Entry("classes", "625 x 4, 3 classes", COMPUTED),
    "digits": Entry("classes", "1797 x 64, 10 classes", BUNDLED),
    "scifact_sample": Entry("retrieval", "2500 x 384, 1109 queries", OWN),
    "wdbc": Entry("classes", "569 x 30, 2 classes", BUNDLED),
    "wine": Entry("classes", "178 x 13, 3 classes", BUNDLED),
    "binary_alphadigits": Entry(
        "classes",
        "1404 x 320, 36 classes",
        FOLDER,
        ("binaryalphadigs/binaryalphadigs.mat",),
    ),
    "covertype": Entry(
        "classes", "581012 x 54, 7 classes", SKLEARN, ("uci-covertype/covtype.data.gz",)
    ),
    "imagenet_frml": Entry(
        "classes",
        "300 x 1000, 3 classes, 5 folds",
        FOLDER,
        ("imagenet-frml/IN300_folds.mat",),
    ),
    "ionosphere": Entry(
        "classes", "351 x 34, 2 classes", OPENML, ("uci-ionosphere/ionosphere.data",)
    ),
    "isolet": Entry(
        "classes",
        "6238 + 1559 x 617, 26 classes",
        OPENML,
        ("uci-isolet/isolet1+2+3+4.data.gz", "uci-isolet/isolet5.data.gz"),
    ),
    "mnist": Entry(
        "classes",
        "60000 + 10000 x 784, 10 classes",
        OPENML,
        tuple(
            f"mnist/{part}-{what}-ubyte.gz"
            for part in ("train", "t10k")
            for what in ("images-idx3", "labels-idx1")
        ),
    ),
    "umist": Entry(
        "classes", "575 x 1024, 20 classes", FOLDER, ("umist/UMIST_32x32.mat",)
    ),
    "usps": Entry(
        "classes",
        "7291 + 2007 x 256, 10 classes",
        OPENML,
        ("usps/zip.train.gz", "usps/zip.test.gz"),
    ),
    "reuters": Entry(
        "texts",
        "R8: 5485 + 2189 texts, 8 classes; ModApte: 9603 + 3299 texts",
        FOLDER,
        (
            "reuters21578/r8-train.txt.gz",
            "reuters21578/r8-test.txt.gz",
            "reuters21578/reuters21578.tar.gz",
        ),
    ),
    "twenty_newsgroups": Entry(
        "texts",
        "11314 + 7532 texts, 20 classes",
        SKLEARN,
        ("20newsgroups/20news-bydate.tar.gz",),
    ),
    "webkb": Entry(
        "texts",
        "2803 + 1396 texts, 4 classes",
        FOLDER,
        ("webkb/webkb-train-stemmed.txt.gz", "webkb/webkb-test-stemmed.txt.gz"),
    ),
    "lightgbm_example": Entry(
        "lists",
        "3005 + 768 x 300, 201 + 50 queries",
        FOLDER,
        tuple(
            f"lightgbm-lambdarank/rank.{name}"
            for name in ("train.gz", "train.query", "test.gz", "test.query")
        ),
    ),
    "mq2008": Entry(
        "lists",
        "15211 x 46, 784 queries, 5 folds",
        FOLDER,
        tuple(f"letor4-mq2008/S{part}.txt.gz" for part in range(1, 6)),
    ),
    "mslr_sample": Entry(
        "lists",
        "18224 x 136, 165 queries",
        FOLDER,
        tuple(
            f"mslr-web/{name}.txt.gz"
            for name in (
                "mslr_fold1_train_sample.from_pickle",
                "ltrjl_train_subset",
                "msn1.fold1.train.5k",
                "mslr_fold1_valid_sample",
                "mslr_fold1_test_sample",
                "msn1.fold1.test.5k",
            )
        ),
    ),
    "ohsumed": Entry(
        "lists",
        "16140 x 45, 106 queries, 5 folds, 2 versions",
        FOLDER,
        # The test file of fold 2 is part S1, and so on: fold 1 tests on S5.
        tuple(
            f"letor3-ohsumed/{folder}/Fold{fold}.{name}.txt.gz"
            for folder, name in (("QueryLevelNorm", "test"), ("Feature-min", "testset"))
            for fold in (2, 3, 4, 5, 1)
        ),
    ),
    "cranfield": Entry(
        "retrieval",
        "1400 texts x 384, 225 queries",
        FOLDER,
        _retrieval("ir-cran", "qrels.tsv"),
    ),
    "nfcorpus": Entry(
        "retrieval",
        "3395 texts x 384, 2563 + 324 + 323 queries",
        FOLDER,
        _retrieval("ir-nfcorpus", "qrels/train.tsv", "qrels/dev.tsv", "qrels/test.tsv"),
    ),
    "npl": Entry(
        "retrieval",
        "11426 texts x 384, 93 queries",
        FOLDER,
        _retrieval("ir-npl", "qrels.tsv"),
    ),
    "scifact": Entry(
        "retrieval",
        "5183 texts x 384, 809 + 300 queries",
        FOLDER,
        _retrieval("ir-scifact", "qrels/train.tsv", "qrels/test.tsv"),
    ),
    "cal500": Entry("pairs", "502 songs x 68", FOLDER, ("cal500/CAL500.arff.gz",)),
    "speed_dating": Entry(
        "pairs",
        "551 persons x 41, 8368 judged pairs",
        FOLDER,
        ("speed-dating/speed_dating_data.csv.gz",),
    ),
}
