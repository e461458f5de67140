"""Text classification data sets and their tf-idf vectors."""

from __future__ import annotations

import html
import re
import tarfile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse

from rankspace import Relevance
from rankspace._engine.files import malformed, read_lines
from rankspace.datasets import Dataset
from rankspace.datasets._folder import (
    check_equal,
    class_counts,
    download,
    has_files,
    locate,
)

NEWSGROUPS_FILES = ["20newsgroups/20news-bydate.tar.gz"]
R8_FILES = ["reuters21578/r8-train.txt.gz", "reuters21578/r8-test.txt.gz"]
MODAPTE_FILES = ["reuters21578/reuters21578.tar.gz"]
WEBKB_FILES = ["webkb/webkb-train-stemmed.txt.gz", "webkb/webkb-test-stemmed.txt.gz"]

# Texts and their labels.
Part = tuple[list[str], list[str]]


def fetch_twenty_newsgroups(*, vectors: bool = True) -> Dataset:
    """20 Newsgroups, split by date: 11314 + 7532 messages, 20 classes.

    Read from the data folder (``RANKSPACE_DATA``), or downloaded by scikit-learn. Headers,
    footers and quotes stay in the texts.

    Parameters
    ----------
    vectors : bool, default=True
        Whether ``X`` holds tf-idf vectors: words of at least 3 training texts, 1 + log of the
        counts, unit length, weights learned from the training texts alone. Else ``X`` is None.

    Returns
    -------
    Dataset
        With ``texts``, ``labels`` (names of the groups) and the splits "train" and "test".
    """
    if has_files(NEWSGROUPS_FILES):
        parts = _read_newsgroups(locate("twenty_newsgroups", NEWSGROUPS_FILES)[0])
    else:
        parts = download("twenty_newsgroups", NEWSGROUPS_FILES, _sklearn_newsgroups)
    return _labelled_texts(
        "twenty_newsgroups", parts, {"train": 11314, "test": 7532}, vectors
    )


def fetch_reuters(
    version: Literal["r8", "modapte"] = "r8", *, vectors: bool = True
) -> Dataset:
    """Reuters-21578: news wires of 1987.

    Read from the data folder (``RANKSPACE_DATA``).

    Parameters
    ----------
    version : {"r8", "modapte"}, default="r8"
        "r8" has the 5485 + 2189 texts with one topic among eight, which become ``labels``, in
        lower case without digits and punctuation. "modapte" has all 9603 + 3299 texts of the
        ModApte split with title and body as printed; a text is relevant to another with the
        number of topics they share as its grade, and texts without a topic to none.
    vectors : bool, default=True
        Whether ``X`` holds tf-idf vectors, as for `fetch_twenty_newsgroups`. Else it is None.

    Returns
    -------
    Dataset
        With ``texts`` and the splits "train" and "test".
    """
    if version == "r8":
        parts = [_read_tabbed(path) for path in locate("reuters", R8_FILES)]
        return _labelled_texts(
            "reuters-r8", parts, {"train": 5485, "test": 2189}, vectors
        )
    if version != "modapte":
        raise ValueError(f"version must be 'r8' or 'modapte': got {version!r}.")
    train, test = _read_modapte(locate("reuters", MODAPTE_FILES)[0])
    relevance = _shared_topics(train[1] + test[1])
    sizes = {"train": 9603, "test": 3299}
    return _texts("reuters-modapte", [train, test], sizes, vectors, relevance=relevance)


def fetch_webkb(*, vectors: bool = True) -> Dataset:
    """WebKB: 2803 + 1396 university pages, stemmed, 4 classes.

    Read from the data folder (``RANKSPACE_DATA``).

    Parameters
    ----------
    vectors : bool, default=True
        Whether ``X`` holds tf-idf vectors, as for `fetch_twenty_newsgroups`. Else it is None.

    Returns
    -------
    Dataset
        With ``texts`` (a few are empty), ``labels`` and the splits "train" and "test".
    """
    parts = [_read_tabbed(path) for path in locate("webkb", WEBKB_FILES)]
    labels = np.array([label for _, labels in parts for label in labels])
    check_equal("webkb", "class counts", [930, 1124, 504, 1641], class_counts(labels))
    return _labelled_texts("webkb", parts, {"train": 2803, "test": 1396}, vectors)


def _labelled_texts(
    name: str, parts: list[Part], sizes: dict[str, int], vectors: bool
) -> Dataset:
    labels = np.array([label for _, labels in parts for label in labels])
    relevance = Relevance.from_labels(labels)
    return _texts(name, parts, sizes, vectors, relevance=relevance, labels=labels)


def _texts(
    name: str, parts: list[Part], sizes: dict[str, int], vectors: bool, **fields: Any
) -> Dataset:
    got = [len(texts) for texts, _ in parts]
    check_equal(name, "number of texts", list(sizes.values()), got)
    texts = [text for texts, _ in parts for text in texts]
    n_train = sizes["train"]
    X, words = None, None
    if vectors:
        X, words = _tfidf(texts, n_train)
    return Dataset(
        name,
        X,
        texts=texts,
        feature_names=words,
        splits={"train": np.arange(n_train), "test": np.arange(n_train, len(texts))},
        description=f"{name}: texts, X is their tf-idf.",
        **fields,
    )


def _tfidf(texts: list[str], n_train: int) -> tuple[Any, list[str]]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(min_df=3, sublinear_tf=True)
    vectorizer.fit(texts[:n_train])
    return vectorizer.transform(texts), vectorizer.get_feature_names_out().tolist()


def _read_tabbed(path: Path) -> Part:
    """Read lines of label, tab, text; the text may be empty."""
    texts, labels = [], []
    for number, line in read_lines(path):
        label, _, text = line.partition("\t")
        if " " in label:
            raise malformed(
                path, number, f"must be a label, a tab and a text: got {line[:40]!r}"
            )
        labels.append(label)
        texts.append(text)
    return texts, labels


def _read_newsgroups(path: Path) -> list[Part]:
    """Read <part>/<group>/<number> out of the archive, ordered by these names."""
    texts: dict[str, dict[str, str]] = {
        "20news-bydate-train": {},
        "20news-bydate-test": {},
    }
    with tarfile.open(path) as archive:
        for member in archive:
            if stream := archive.extractfile(member):
                part, _, place = member.name.partition("/")
                texts[part][place] = stream.read().decode("latin-1")
    return [
        (
            [messages[place] for place in sorted(messages)],
            [place.split("/")[0] for place in sorted(messages)],
        )
        for messages in texts.values()
    ]


def _sklearn_newsgroups(home: Path) -> list[Part]:
    from sklearn.datasets import fetch_20newsgroups

    options = {"data_home": home, "shuffle": False, "n_retries": 1, "delay": 0.1}
    bunches = [fetch_20newsgroups(subset=part, **options) for part in ("train", "test")]
    return [(list(b.data), [b.target_names[t] for t in b.target]) for b in bunches]


def _read_modapte(path: Path) -> list[Part]:
    """Read the texts of both parts, each with its topics joined by spaces."""
    parts: dict[str, Part] = {"TRAIN": ([], []), "TEST": ([], [])}
    with tarfile.open(path) as archive:
        for name in sorted(n for n in archive.getnames() if n.endswith(".sgm")):
            stream = archive.extractfile(name)
            text = stream.read().decode("latin-1") if stream else ""
            for head, body in re.findall(
                r"<REUTERS ([^>]*)>(.*?)</REUTERS>", text, re.DOTALL
            ):
                split = re.search(r'LEWISSPLIT="(TRAIN|TEST)"', head)
                if split and 'TOPICS="YES"' in head:
                    parts[split[1]][0].append(_wire_text(body))
                    parts[split[1]][1].append(_wire_topics(body))
    return list(parts.values())


def _wire_text(body: str) -> str:
    """Title and body of a wire; some wires have neither mark, but plain text."""
    marked = re.findall(r"<(?:TITLE|BODY)>(.*?)</(?:TITLE|BODY)>", body, re.DOTALL)
    if not marked:
        marked = [
            re.sub(
                r"<[^>]*>", " ", "".join(re.findall(r"<TEXT.*</TEXT>", body, re.DOTALL))
            )
        ]
    return html.unescape("\n".join(marked)).strip("\x02\x03 \n")


def _wire_topics(body: str) -> str:
    topics = re.search(r"<TOPICS>(.*?)</TOPICS>", body)
    return " ".join(re.findall(r"<D>(.*?)</D>", topics[1])) if topics else ""


def _shared_topics(topics: list[str]) -> Relevance:
    """Grade pairs by the number of topics they share; texts of equal topics share a row."""
    sets, rows = np.unique(topics, return_inverse=True)
    names = sorted({topic for topic_set in sets for topic in topic_set.split()})
    number = {topic: i for i, topic in enumerate(names)}
    table = np.zeros((sets.size, len(names)), dtype=np.int64)
    for row, topic_set in enumerate(sets):
        table[row, [number[topic] for topic in topic_set.split()]] = 1
    shared = scipy.sparse.csr_array(table) @ scipy.sparse.csr_array(table[rows].T)
    shared.sort_indices()
    n = len(topics)
    return Relevance(
        n,
        rows,
        shared.indptr,
        shared.indices,
        shared.data,
        np.arange(n),
        "irrelevant",
    )
