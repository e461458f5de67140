"""Tuning report: the decision in one sentence, and the tables that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from .._engine.files import PathLike
from .._engine.tables import Row, as_html, as_text
from ..display.page.answer import Answer, AnswerTable
from ..display.page.explained import Explain
from ..display.page.html import measure_label
from ..display.page.report import write_report
from ..evaluation.report import Report, _plain, _Table, agreement
from ..metrics.embedding import EmbeddingMetric
from ..relevance.relevance import Relevance
from ..search.ranking import Ranking

# What the card of the metric takes from the report.
CARD = (
    "decision",
    "measure",
    "similarity",
    "prefer",
    "judged_on",
    "questions",
    "p_value",
)
UNCHANGED = "unchanged vectors"
OF_RUNS = ("signals", "weights", "normalise")
GAINS = (0.01, 0.02, 0.05)  # that the table of queries needed is about
N_EXTREMES = 3  # queries that the page shows for gains, and for losses
JUDGED = "judged@10"  # share of the first ten items that are judged
OUTCOMES = "safe, harmed or undecided"  # whether a question loses by the map
SIGNALS_HEADER = ["signal", "weight", "low", "high", "gain", "low", "high", ""]
SIZES_HEADER = [
    "dimensions",
    "storage",
    "all",
    "known",
    "new",
    "lower limit",
    "megabytes",
    "",
]
REASONS = (
    "Why queries gain and lose is said of a map of the chosen strength that was learned without "
    "them, and of the relevant document that is first in the better of both lists. Others move too."
)
# Style and words of the badge on the page.
BADGES = {
    "ship": ("better", "Ship it"),
    "known only": ("better", "Ship it for what is known"),
    "keep": ("equal", "Keep what you have"),
}


class QuestionRow(NamedTuple):
    """What held-out queries say about one question; NaN where it cannot be measured."""

    label: str
    unchanged: float
    memory: float
    tuned: float
    difference: float
    low: float
    high: float
    n_queries: int
    n_groups: int
    outcome: str
    judged_unchanged: float = np.nan  # share of the first ten items that are judged
    judged_tuned: float = np.nan


class PathRow(NamedTuple):
    """Mean of the measure over held-out queries for one strength of one family."""

    family: str
    strength: str
    everything: float
    known: float
    new: float
    chosen: bool
    judged: float = (
        np.nan
    )  # share of the first ten items of all queries that are judged


class SignalRow(NamedTuple):
    """What one signal of a fused ranking adds to the others; NaN where there is no such number."""

    signal: str
    weight: float
    weight_low: float
    weight_high: float
    gain: float  # in the measure: what dropping the signal costs
    gain_low: float
    gain_high: float
    outcome: str


class SizeRow(NamedTuple):
    """Held-out means for one width and storage of vectors; NaN where there is no such number."""

    n_components: int
    storage: str
    everything: float
    known: float
    new: float
    lower_limit: float  # of the difference from the full width
    megabytes: int  # of a million vectors
    outcome: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TuneReport(_Table):
    """Tuning report: what to do, and why.

    Parameters
    ----------
    decision : str
        "ship", "known only" or "keep".
    sentence : str
        The decision and its reason.
    measure, similarity, prefer : str
        What was measured, what vectors are compared by, and what was preferred.
    judged_on : str
        "held-out queries" of cross-validation, or "dev queries".
    questions : list of QuestionRow
        All queries, those for known and those for new documents.
    path : list of PathRow
        Every strength of every family.
    p_value : float
        One-sided p-value of the only test.
    needed : dict of str to dict of float to int
        Queries that would show a gain with 80 % power, for each question.
    judged_share : tuple of float
        Share of the first ten documents that somebody judged, unchanged and tuned.
    notes : list of str
        How to read the tables, and what could not be measured.
    next_steps : list of str
        What to do next: sentences, and commands that start with "rankspace".
    before, after : Report
        Values of the held-out queries.
    known : ndarray
        Share of the relevant documents of each query that training queries made known.
    rankings : tuple of Ranking
        The first documents of held-out queries, before and after.
    relevance : Relevance
        Their judgments.
    query_numbers : ndarray of int
        Numbers of these queries among those passed to `tune`.
    signals : list of SignalRow
        What the vectors and each run add, if there are runs.
    weights : dict of str to float
        Weights of the signals to fuse, for `Ranking.fuse`; empty without runs.
    normalise : dict of str to str
        The normalisation of each of them.
    sizes : list of SizeRow
        Scores by width, if smaller vectors were asked for.
    skipped : list of str
        Families that the time budget left out.
    seconds : float
        Total time.
    explain : callable, optional
        What moved the score of an item for a query, as sentences for the page. It holds the data,
        and is not pickled.
    """

    decision: str
    sentence: str
    measure: str
    similarity: str
    prefer: str
    judged_on: str
    questions: list[QuestionRow]
    path: list[PathRow]
    p_value: float
    needed: dict[str, dict[float, int]]
    judged_share: tuple[float, float]
    notes: list[str]
    next_steps: list[str]
    before: Report
    after: Report
    known: np.ndarray
    rankings: tuple[Ranking, Ranking]
    relevance: Relevance
    query_numbers: np.ndarray
    signals: list[SignalRow] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)
    normalise: dict[str, str] = field(default_factory=dict)
    sizes: list[SizeRow] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    explain: Explain | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "explain": None}

    def question(self, name: str) -> QuestionRow | None:
        """The row of "all", "known" or "new"; None if nothing was learned."""
        rows = {row.label.split()[0]: row for row in self.questions}
        return rows.get(name)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values of single queries, as plain Python objects."""
        return {
            "decision": self.decision,
            "sentence": self.sentence,
            "measure": self.measure,
            "similarity": self.similarity,
            "prefer": self.prefer,
            "judged_on": self.judged_on,
            "p_value": _plain(self.p_value),
            "questions": [_plain_row(row) for row in self.questions],
            "path": [_plain_row(row) for row in self.path],
            "signals": [_plain_row(row) for row in self.signals],
            "sizes": [_plain_row(row) for row in self.sizes],
            "weights": self.weights,
            "normalise": self.normalise,
            "queries_needed": {
                name: {str(gain): n for gain, n in gains.items()}
                for name, gains in self.needed.items()
            },
            "judged_share": [_plain(share) for share in self.judged_share],
            "notes": self.notes,
            "next_steps": self.next_steps,
            "skipped": self.skipped,
            "seconds": self.seconds,
        }

    def to_card(self) -> dict[str, Any]:
        """What the file of the metric says of its evaluation."""
        names = list(CARD)
        if self.signals:
            names += OF_RUNS
        if self.sizes:
            names.append("sizes")
        measured = self.to_dict()
        return {name: measured[name] for name in names}

    def with_files(
        self, metric: PathLike, items: PathLike | None, queries: PathLike | None
    ) -> TuneReport:
        """The report with these files in its commands, in place of METRIC and others."""
        files = {"METRIC": metric, "CORPUS.npy": items, "QUERIES.npy": queries}
        names = {old: quote(str(new)) for old, new in files.items() if new is not None}
        steps = []
        for step in self.next_steps:
            if step.startswith("rankspace "):
                step = " ".join(names.get(word, word) for word in step.split(" "))
            steps.append(step)
        return replace(self, next_steps=steps)

    # ------------------------------------------------------------------ text

    def _first_lines(self) -> list[str]:
        label = measure_label(self.measure)
        return [
            f"similarity: {self.similarity}; measure: {label}, on {self.judged_on}; "
            f"prefer: {self.prefer}",
            "",
            self.sentence,
            "",
        ]

    def __str__(self) -> str:
        lines = self._first_lines()
        for table in self._tables():
            lines += [as_text(table.header, table.rows), ""]
        return "\n".join([*lines, *self._notes()]).rstrip()

    def _repr_html_(self) -> str:
        first = self._first_lines()
        return as_html(
            self._header(), self._rows(), before=first, after=self.next_steps
        )

    def _tables(self) -> list[AnswerTable]:
        """All tables that have rows."""
        tables = [
            AnswerTable("What held-out queries say", self._header(), self._rows()),
            AnswerTable("What each signal adds", SIGNALS_HEADER, self._signal_rows()),
            AnswerTable("What smaller vectors lose", SIZES_HEADER, self._size_rows()),
            AnswerTable(
                f"Mean {measure_label(self.measure)} by strength of regularisation",
                self._path_header(),
                self._path_rows(),
            ),
            AnswerTable(
                "Judged queries that show a gain of this size in 4 of 5 cases",
                ["queries needed for a gain of", *map(str, GAINS)],
                [(name, *row.values()) for name, row in self.needed.items()],
            ),
        ]
        return [table for table in tables if table.rows]

    def _header(self) -> list[str]:
        return [name for name, _ in self._columns()]

    def _rows(self) -> list[Row]:
        return list(zip(*(column for _, column in self._columns()), strict=True))

    def _columns(self) -> list[tuple[str, list[Any]]]:
        """Headings and cells, with judged@10 beside both scores unless all items are judged."""
        names = {
            "label": self.judged_on,
            "unchanged": "unchanged",
            "judged_unchanged": JUDGED,
            "memory": "memory",
            "tuned": "tuned",
            "judged_tuned": JUDGED,
            "difference": "difference",
            "low": "low",
            "high": "high",
            "n_queries": "queries",
            "n_groups": "groups",
            "outcome": OUTCOMES,
        }
        columns = []
        for name, heading in names.items():
            cells = [getattr(row, name) for row in self.questions]
            if heading != JUDGED or not np.isnan(cells).all():
                columns.append((heading, cells))
        return columns

    def _signal_rows(self) -> list[Row]:
        return [tuple(row) for row in self.signals]

    def _size_rows(self) -> list[Row]:
        return [tuple(row) for row in self.sizes]

    @property
    def _path_is_judged(self) -> bool:
        """Whether judged@10 says something about the path."""
        return not np.isnan([row.judged for row in self.path]).all()

    def _path_header(self) -> list[str]:
        judged = [JUDGED] if self._path_is_judged else []
        return ["regularisation, strong to weak", "all", *judged, "known", "new", ""]

    def _path_rows(self) -> list[Row]:
        several = len({row.family for row in self.path if row.family}) > 1
        rows: list[Row] = []
        for row in self.path:
            name = row.strength
            if several and row.family:
                name = f"{row.family}, {row.strength}"
            judged = (row.judged,) if self._path_is_judged else ()
            chosen = "chosen" if row.chosen else ""
            rows.append((name, row.everything, *judged, row.known, row.new, chosen))
        return rows

    def _notes(self) -> list[str]:
        lines = list(self.notes)
        if self.next_steps:
            lines += ["", "Next:"] if lines else ["Next:"]
        for step in self.next_steps:
            lines.append(f"  {step}" if step.startswith("rankspace ") else step)
        return lines

    # ------------------------------------------------------------------ page

    def write_page(
        self,
        path: PathLike,
        *,
        title: str = "rankspace tune",
        texts: Sequence[str] | None = None,
        query_texts: Sequence[str] | None = None,
    ) -> Path:
        """Write the report as an HTML page, with the queries that gain and lose most.

        Parameters
        ----------
        path : path
            The file to write.
        title : str, default="rankspace tune"
            Heading of the page.
        texts, query_texts : sequence of str, optional
            Texts of all items and of all queries that were passed to `tune`.

        Returns
        -------
        Path
        """
        numbers = self.query_numbers
        relevance = self.relevance
        if relevance.query_ids is None:
            relevance = replace(relevance, query_ids=numbers.astype(str))
        describe_query = None
        if query_texts is not None:
            describe_query = [query_texts[int(n)] for n in numbers].__getitem__
        return write_report(
            path,
            title=title,
            before=self.before,
            after=self.after,
            names=("unchanged", "tuned"),
            rankings=self.rankings,
            relevance=relevance,
            answer=self._answer(),
            describe_item=None if texts is None else texts.__getitem__,
            describe_query=describe_query,
            n_extremes=N_EXTREMES,
            explain=self.explain,
            notes=[
                *([] if self.explain is None else [REASONS]),
                "The answer rests on one one-sided test, and on intervals that allow for groups of "
                "queries and for folds that share training queries.",
            ],
        )

    def _answer(self) -> Answer:
        kind, badge = BADGES[self.decision]
        first = self._first_lines()[0]
        return Answer(
            kind,
            badge,
            self.sentence,
            self._tables(),
            [f"{first[0].upper()}{first[1:]}.", *self.notes],
            self.next_steps,
        )


@dataclass(frozen=True, eq=False)
class Tuned:
    """Result of `tune`: a metric, and the report of its held-out evaluation.

    Parameters
    ----------
    metric : LinearMetric, BilinearMetric or AsymmetricMetric
        The learned metric if the decision is to use it, else the similarity of unchanged vectors.
    report : TuneReport
        The decision, and what it rests on.

    Examples
    --------
    >>> import numpy as np
    >>> from rankspace import tune
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    >>> tune(X, y, measure="map", random_state=0).decision
    'keep'
    """

    metric: EmbeddingMetric
    report: TuneReport

    @property
    def decision(self) -> str:
        """What to do: "ship", "known only" or "keep"."""
        return self.report.decision

    @property
    def weights(self) -> dict[str, float]:
        """Weights of the vectors and of runs, for `Ranking.fuse`."""
        return self.report.weights

    @property
    def normalise(self) -> dict[str, str]:
        """The normalisation of each of these rankings, for `Ranking.fuse`."""
        return self.report.normalise

    @property
    def improved(self) -> bool:
        """Whether to change the search: to use the learned metric, or to fuse runs, or both."""
        return self.decision != "keep"

    @property
    def is_mapped(self) -> bool:
        """Whether the metric is a learned one."""
        return bool(self.metric.card["method"] != UNCHANGED)

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def as_agreement(report: TuneReport, teacher: str) -> TuneReport:
    """The report on judgments by a teacher, which may not be its own judge."""
    return replace(
        report,
        sentence=f"{report.sentence} {agreement(teacher)}",
        judged_on=f"{report.judged_on}, as agreement with the teacher",
        next_steps=[
            "Have people judge some queries before you use it: nothing here says that results are "
            "better.",
            *report.next_steps,
        ],
    )


def _plain_row(row: Any) -> dict[str, Any]:
    return {
        name: _plain(v) if isinstance(v, float) else v
        for name, v in row._asdict().items()
    }
