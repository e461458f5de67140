"""The base of all metrics: read-only arrays, saved to and loaded from a safetensors file."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from .._engine.files import PathLike, foreign_bytes, replacing
from .._engine.projections import MAX_SAMPLE, N_PROJECTIONS, project, spread_rows
from .._engine.vectors import as_rows
from .card import card_text, checked_card_text

if TYPE_CHECKING:
    from ..search.ranking import Ranking
    from .explanation import Explanation

FORMAT_VERSION = 1
FORMAT = "a metric file of rankspace"
# A safetensors file starts with the length of its header, which ends at a multiple of 8 bytes.
LENGTH_BYTES = 8
ALIGNMENT = 8
SAMPLE = "query_sample"  # the array of a file that a metric may do without
_KINDS: dict[str, type[StoredMetric]] = {}


class StoredMetric(ABC):
    """A metric that can be saved: a few arrays and a mapping of parameters."""

    kind: ClassVar[str]  # the name of the class in the header of a file
    arrays: ClassVar[tuple[str, ...]]  # the attributes that a file stores
    parameters: dict[str, Any]
    query_sample: np.ndarray | None = None
    _card = "{}"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            _KINDS[cls.kind] = cls

    @property
    def card(self) -> Mapping[str, Any]:
        """Where the metric comes from and what it was measured to do, as JSON values.

        It is saved with the metric and shown by ``rankspace show``. Assign a mapping to change it.
        """
        return MappingProxyType(json.loads(self._card))

    @card.setter
    def card(self, card: Mapping[str, Any]) -> None:
        self._card = card_text(card)

    def keep_query_sample(self, Q: Any) -> None:
        """Keep random projections of the queries it was learned from, for `check_drift`.

        They are of 500 queries at most, evenly spaced, and are saved with the metric (64 kB) as
        ``query_sample``, an array of shape (n, 32). `tune` and the command ``fit`` do this.

        Parameters
        ----------
        Q : path or array-like of shape (n_queries, n_query_features)
            The queries.
        """
        Q = as_rows(Q, "Q")
        rows = spread_rows(Q, MAX_SAMPLE)
        unit = getattr(self, "similarity", None) == "cosine"
        self.query_sample = read_only_array(project(rows, "Q", unit=unit), SAMPLE, 2)

    @abstractmethod
    def distances(self, Q: Any, X: Any) -> np.ndarray:
        """Distances from each query to each item; a similarity counts as its negative.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_query_features)
            Queries.
        X : array-like of shape (n_items, n_features)
            Items.

        Returns
        -------
        ndarray of shape (n_queries, n_items)
        """

    def rank(self, Q: Any, X: Any, k: int | None = None) -> Ranking:
        """Rank the nearest rows of ``X`` for each query.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_query_features)
            Queries.
        X : array-like of shape (n_items, n_features)
            Items.
        k : int, optional
            Length of the lists; all items by default.

        Returns
        -------
        Ranking
        """
        return self._index(X).rank(Q, k)

    @abstractmethod
    def _index(self, X: Any) -> Any:
        """A search index of items under this metric."""

    def explain(
        self, q: Any, x: Any, baseline: Any = None, *, training: Any = None
    ) -> Explanation:
        """Explain the score of an item for a query: the directions that moved it.

        The contributions sum to the score, or to what it differs by from a baseline. Directions
        are those in which the metric and the baseline differ most (singular vectors); of a
        `LocalMetric` they are its single metrics, of a `KernelMetric` directions of its kernel
        values.

        Parameters
        ----------
        q : array-like of shape (n_query_features,)
            The query. A `LocalMetric` with anchors needs the candidate list (n, n_features) here if
            its weights depend on it, and nothing (None) otherwise.
        x : array-like of shape (n_features,)
            The item.
        baseline : metric, "unchanged" or None, default=None
            What to compare with: a metric; "unchanged" vectors, compared in the same way; or a
            score of 0. A metric of another form is a single part.
        training : tuple of (X, relevance, queries), optional
            What the metric was learned from, ``queries`` None if they are items: adds the
            contributions of judgments by their leverage, in a ridge regression of the change of
            score on the judged pairs.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> from rankspace import BilinearMetric
        >>> metric = BilinearMetric([[2.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
        >>> print(metric.explain([1.0, 1.0], [3.0, 5.0], "unchanged"))
        score 11.0000, baseline 8.0000, difference +3.0000
          direction 0  +3.0000
        """
        from .explanation import check_baseline

        check_baseline(baseline)
        return self._explain(q, x, baseline, training)

    def _explain(self, q: Any, x: Any, baseline: Any, training: Any) -> Explanation:
        """The explanation, with a baseline that is a metric, "unchanged" or None."""
        raise NotImplementedError(f"{type(self).__name__} explains no scores.")

    def save(self, path: PathLike) -> None:
        """Save to a safetensors file, with format version, parameters and card in its header.

        Equal metrics are saved as equal bytes.

        Parameters
        ----------
        path : path
            The file to write; an existing one is replaced once the new one is complete.
        """
        from safetensors.numpy import save

        arrays = {name: getattr(self, name) for name in self.arrays}
        if self.query_sample is not None:
            arrays[SAMPLE] = self.query_sample
        content = save(arrays, self._header())
        header, start = split_header(content)
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        text += b" " * (-len(text) % ALIGNMENT)
        with replacing(path) as stream:
            stream.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
            stream.write(memoryview(content)[start:])

    def _header(self) -> dict[str, str]:
        """What a file says about the arrays."""
        return {
            "rankspace_format": str(FORMAT_VERSION),
            "kind": self.kind,
            "parameters": json.dumps(self.parameters, sort_keys=True),
            "card": self._card,
        }

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Load a metric of this class; see `load_metric`.

        Parameters
        ----------
        path : path
            A file written by `save`.
        """
        metric = load_metric(path)
        if not isinstance(metric, cls):
            raise ValueError(f"{path} must hold a {cls.__name__}: got {metric!r}.")
        return metric

    @classmethod
    def _restore(
        cls,
        arrays: Mapping[str, np.ndarray],
        parameters: dict[str, Any],
        header: Mapping[str, str],
    ) -> Self:
        """A metric from the content of a file."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shapes = [f"{name} {getattr(self, name).shape}" for name in self.arrays]
        return f"{type(self).__name__}({', '.join(shapes)})"


def read_only_array(values: Any, name: str, n_dims: int) -> np.ndarray:
    """A read-only copy of an array of finite floats."""
    array = np.array(values, order="C")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers: got {array.dtype}.")
    if array.ndim != n_dims:
        raise ValueError(
            f"{name} must have {n_dims} dimensions: got shape {array.shape}."
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: got NaN or infinity.")
    array.flags.writeable = False
    return array


def split_header(content: bytes) -> tuple[dict[str, Any], int]:
    """The header of a safetensors file, and where its arrays start."""
    start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    return json.loads(content[LENGTH_BYTES:start]), start


def load_metric(path: PathLike) -> StoredMetric:
    """Load a metric from a safetensors file.

    The file holds numbers and text only; loading it never executes code.

    Parameters
    ----------
    path : path
        A file written by ``metric.save``.

    Returns
    -------
    LinearMetric, BilinearMetric, AsymmetricMetric, KernelMetric or LocalMetric

    Examples
    --------
    >>> import tempfile, os
    >>> from rankspace import LinearMetric, load_metric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "metric.safetensors")
    ...     LinearMetric([[1.0, 2.0]]).save(path)
    ...     load_metric(path)
    LinearMetric(components (1, 2), similarity='euclidean')
    """
    from safetensors import safe_open

    with foreign_bytes(path, FORMAT), safe_open(path, framework="numpy") as stored:
        header = stored.metadata() or {}
        names = set(stored.keys())
    kind = _check_header(path, header)
    missing = set(kind.arrays) - names
    if missing:
        raise ValueError(
            f"{path} lacks the array {min(missing)!r}: save the metric again."
        )
    with foreign_bytes(path, FORMAT), safe_open(path, framework="numpy") as stored:
        arrays = {name: stored.get_tensor(name) for name in kind.arrays}
        sample = stored.get_tensor(SAMPLE) if SAMPLE in names else None
    try:
        metric = kind._restore(arrays, _parameters(header), header)
        metric.query_sample = _checked_sample(sample)
        metric._card = checked_card_text(header.get("card", "{}"))
    except ValueError as error:
        raise ValueError(f"{path} does not hold a valid metric: {error}") from error
    return metric


def _checked_sample(sample: np.ndarray | None) -> np.ndarray | None:
    """The projections of queries in a file, if it has any."""
    if sample is None:
        return None
    checked = read_only_array(sample, SAMPLE, 2)
    if not len(checked) or checked.shape[1] != N_PROJECTIONS:
        raise ValueError(
            f"{SAMPLE} must have rows of {N_PROJECTIONS} numbers: got shape {checked.shape}."
        )
    return checked


def _parameters(header: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a header."""
    try:
        parameters = json.loads(header.get("parameters", "{}"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its parameters must be JSON: {error}.") from error
    if not isinstance(parameters, dict):
        raise ValueError(
            f"its parameters must be a JSON object: got {type(parameters).__name__}."
        )
    return parameters


def _check_header(path: PathLike, header: Mapping[str, str]) -> type[StoredMetric]:
    version = header.get("rankspace_format")
    if version is None or not re.fullmatch("[0-9]{1,9}", version):
        raise ValueError(
            f"{path} was not written by rankspace: its header has no format version."
        )
    if int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}, and this rankspace reads up to "
            f"version {FORMAT_VERSION}: upgrade rankspace."
        )
    kind = header.get("kind")
    if kind not in _KINDS:
        raise ValueError(
            f"{path} must hold a metric of kind {', '.join(_KINDS)}: got {kind!r}."
        )
    return _KINDS[kind]
