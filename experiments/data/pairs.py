"""Pairwise relevance: similar songs (CAL500), and persons who matched (speed dating)."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np

from rankspace import Relevance
from rankspace.datasets import Dataset
from rankspace.datasets._folder import check_equal, locate

N_TAGS = 174
N_CLOSE, N_RELEVANT = 10, 25

INTERESTS = (
    "sports",
    "tvsports",
    "exercise",
    "dining",
    "museums",
    "art",
    "hiking",
    "gaming",
    "clubbing",
    "reading",
    "tv",
    "theater",
    "movies",
    "concerts",
    "music",
    "shopping",
    "yoga",
)
QUALITIES = ("attr", "sinc", "intel", "fun", "amb", "shar")
PERSON_COLUMNS = [
    "gender",
    "age",
    "imprace",
    "imprelig",
    "date",
    "go_out",
    *INTERESTS,
    "exphappy",
    *(f"{quality}1_1" for quality in QUALITIES),
    *(f"{quality}2_1" for quality in QUALITIES),
    *(f"{quality}3_1" for quality in QUALITIES[:5]),
]


def fetch_cal500() -> Dataset:
    """CAL500: 502 songs of 68 audio features, similar if listeners gave them like tags.

    Read from the data folder (``RANKSPACE_DATA``). For each song the others are ordered by
    the cosine of their 174 binary tags (ties by row): the first 10 have grade 2, the next 15
    grade 1 (together 5% of the songs), all others are irrelevant. The tags are no features.

    Returns
    -------
    Dataset
        Every song is a query.
    """
    (path,) = locate("cal500", ["cal500/CAL500.arff.gz"])
    lines = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
    names = [line.split()[1] for line in lines if line.upper().startswith("@ATTRIBUTE")]
    start = next(i for i, line in enumerate(lines) if line.upper().startswith("@DATA"))
    table = np.loadtxt(lines[start + 1 :], delimiter=",", comments="%")
    check_equal("cal500", "rows and columns", (502, N_TAGS + 68), table.shape)
    return Dataset(
        "cal500",
        np.ascontiguousarray(table[:, N_TAGS:]),
        _tag_relevance(table[:, :N_TAGS]),
        feature_names=names[N_TAGS:],
        description="CAL500 (MULAN): audio features of songs.",
    )


def _tag_relevance(tags: np.ndarray) -> Relevance:
    unit = tags / np.linalg.norm(tags, axis=1, keepdims=True)
    # Rounded, or sums of equal terms in another order would break ties at random.
    cosines = np.round(unit @ unit.T, 12)
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :N_RELEVANT]
    grades = [2.0] * N_CLOSE + [1.0] * (N_RELEVANT - N_CLOSE)
    return Relevance.from_lists(
        [dict(zip(row, grades, strict=True)) for row in nearest.tolist()]
    )


def fetch_speed_dating() -> Dataset:
    """Speed dating (Fisman and Iyengar): 551 persons, relevant to whom they matched with.

    Read from the data folder (``RANKSPACE_DATA``). Each person met some of the other sex at
    one of 21 events. For a person as query, partners with whom both said yes are relevant,
    partners with another outcome are judged irrelevant, and persons never met are unjudged and
    ignored.

    Features are the numeric answers given before the event: gender, age, the weight of race and
    religion, how often one dates and goes out, 17 interests, the expected pleasure, what one
    looks for (``*1_1``), what one thinks the other sex looks for (``*2_1``) and how one sees
    oneself (``*3_1``). Codes of categories, columns that more than a fifth of the persons left
    empty, and all that was asked during or after the event, such as the decisions, are left out.
    Missing answers are the median of their column.

    Returns
    -------
    Dataset
        Every person is a query; the splits "wave1" to "wave21" are the events.
    """
    (path,) = locate("speed_dating", ["speed-dating/speed_dating_data.csv.gz"])
    with gzip.open(path, "rb") as stream:
        text = io.TextIOWrapper(stream, encoding="latin-1", newline="")
        meetings = [row for row in csv.DictReader(text) if row["pid"]]
    persons = {row["iid"]: row for row in meetings}
    number = {iid: i for i, iid in enumerate(persons)}
    check_equal("speed_dating", "number of persons", 551, len(persons))
    check_equal("speed_dating", "number of judged pairs", 8368, len(meetings))
    waves = np.array([int(row["wave"]) for row in persons.values()])
    return Dataset(
        "speed_dating",
        _person_features(list(persons.values())),
        _matches(meetings, number),
        splits={
            f"wave{wave}": np.flatnonzero(waves == wave)
            for wave in np.unique(waves).tolist()
        },
        feature_names=list(PERSON_COLUMNS),
        description="Speed dating: answers before the event, mutual yes as relevance.",
    )


def _person_features(persons: list[dict[str, str]]) -> np.ndarray:
    table = np.array(
        [[float(row[c] or "nan") for c in PERSON_COLUMNS] for row in persons]
    )
    return np.where(np.isnan(table), np.nanmedian(table, axis=0), table)


def _matches(meetings: list[dict[str, str]], number: dict[str, int]) -> Relevance:
    lists: dict[str, list[list[int]]] = {kind: [[] for _ in number] for kind in "01"}
    for row in meetings:
        # Identifiers of partners are written as decimal numbers in some rows.
        partner = number[str(int(float(row["pid"])))]
        lists[row["match"]][number[row["iid"]]].append(partner)
    return Relevance.from_lists(lists["1"], lists["0"], unjudged="ignore")
