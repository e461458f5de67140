"""TREC run files: rankings as the text that retrieval tools exchange."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator

import numpy as np

from .._engine.files import PathLike, malformed, read_lines, replacing
from ..search.ranking import Ranking


def read_trec_run(path: PathLike) -> Ranking:
    """Read a TREC run: lines of ``query Q0 item rank score tag``.

    A list is ordered by descending score, equal scores by rank, equal ranks by line. The distance
    of an item is minus its score. Queries and items are numbered by first appearance.

    Parameters
    ----------
    path : path
        Plain text, or gzipped if the name ends in ``.gz``.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankspace.datasets import read_trec_run
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.txt"
    >>> _ = path.write_text("q1 Q0 d1 2 0.5 mine\\nq1 Q0 d2 1 0.75 mine\\n")
    >>> read_trec_run(path).ids(0)
    ['d2', 'd1']
    """
    items: dict[str, int] = {}
    lists: dict[str, dict[int, tuple[float, int]]] = {}
    for number, line in read_lines(path):
        query, item, place = _read_entry(path, number, line)
        entries = lists.setdefault(query, {})
        code = items.setdefault(item, len(items))
        if code in entries:
            raise malformed(
                path, number, f"must not list {item!r} for query {query!r} again"
            )
        entries[code] = place
    if not lists:
        raise ValueError(f"{path} must have at least one line: got an empty file.")
    return Ranking.from_named_lists(
        [_sorted(entries) for entries in lists.values()], list(lists), list(items)
    )


def write_trec_run(ranking: Ranking, path: PathLike, tag: str = "rankspace") -> None:
    """Write a ranking as a TREC run; the score is minus the distance.

    The file appears whole or not at all, and `read_trec_run` gives back the order and the
    distances to the last bit.

    Parameters
    ----------
    ranking : Ranking
        Its ids, or else its numbers, are written.
    path : path
        Gzipped if the name ends in ``.gz``.
    tag : str, default="rankspace"
        The last column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from rankspace.datasets import write_trec_run
    >>> from rankspace.search.ranking import Ranking
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_trec_run(Ranking.from_distances([[0.5, 0.25]]), path, tag="mine")
    >>> path.read_text().splitlines()
    ['0 Q0 1 1 -0.25 mine', '0 Q0 0 2 -0.5 mine']
    """
    lines = (line.encode("utf-8") for line in _lines(ranking, tag))
    with replacing(path) as stream:
        if not str(path).endswith(".gz"):
            stream.writelines(lines)
            return
        # mtime=0: equal rankings give equal files.
        with gzip.GzipFile("", "wb", fileobj=stream, mtime=0) as packed:
            packed.writelines(lines)


def _read_entry(
    path: PathLike, number: int, line: str
) -> tuple[str, str, tuple[float, int]]:
    fields = line.split()
    if len(fields) != 6:
        raise malformed(path, number, f"must have 6 columns: got {len(fields)}")
    try:
        rank = int(fields[3])
        score = float(fields[4])
    except ValueError:
        got = f"{fields[3]!r} and {fields[4]!r}"
        rule = f"must have a whole rank and a score: got {got}"
        raise malformed(path, number, rule) from None
    if math.isnan(score):
        raise malformed(path, number, "must have a score: got NaN")
    return fields[0], fields[2], (0.0 - score, rank)


def _sorted(entries: dict[int, tuple[float, int]]) -> tuple[np.ndarray, np.ndarray]:
    items = sorted(entries, key=entries.__getitem__)
    distances = np.array([entries[item][0] for item in items])
    return np.array(items, dtype=np.int64), distances


def _lines(ranking: Ranking, tag: str) -> Iterator[str]:
    _check_name(tag, "tag")
    for query in range(ranking.n_queries):
        query_id = _check_name(ranking.query_id(query), "query ids")
        distances = ranking[query][1].tolist()
        for place, item in enumerate(ranking.ids(query)):
            _check_name(item, "item ids")
            score = 0.0 - distances[place]
            yield f"{query_id} Q0 {item} {place + 1} {score!r} {tag}\n"


def _check_name(name: str, what: str) -> str:
    if len(name.split()) != 1 or name != name.strip():
        raise ValueError(
            f"{what} must be one word in a TREC run, where spaces separate the columns: got "
            f"{name!r}. Choose names without spaces."
        )
    return name
