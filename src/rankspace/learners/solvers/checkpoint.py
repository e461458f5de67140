"""Checkpoints: a file from which an interrupted fit resumes, and gives the same metric.

A checkpoint is a safetensors file. Its header holds a digest of all data and of each parameter, so
that no other fit resumes from it, and a checksum of the whole file. Both are right in a file that
somebody wrote on purpose, so the state is checked too before a fit goes on from it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ... import __version__
from ..._engine.checks import LARGEST
from ..._engine.digest import digest
from ..._engine.files import PathLike, replacing
from ...metrics.card import judgment_fields
from ...metrics.storage import split_header
from ...relevance.relevance import Relevance

Check = Callable[[dict[str, Any]], None]
logger = logging.getLogger("rankspace")

REST = 10.0  # wait at least this many times the writing time before the next write
# Parameters that cannot change the result.
IRRELEVANT = ("callback", "checkpoint")
SEALED = b'"checksum":"'  # what comes before the checksum in the header
NO_CHECKSUM = "0" * 32


class Checkpoint:
    """A checkpoint file of a fit; without a path, nothing is saved.

    Parameters
    ----------
    path : path or None
        The file.
    digests : dict of str
        Digests of all that decides the result, by name.
    """

    def __init__(self, path: PathLike | None, digests: Mapping[str, str]) -> None:
        self.path = None if path is None else Path(path)
        self.digests = dict(digests)
        self._last = -np.inf
        self._took = 0.0

    @classmethod
    def of(
        cls,
        learner: BaseEstimator,
        X: Any,
        relevance: Relevance,
        queries: Any,
        *,
        ignored: Collection[str] = (),
        **others: Any,
    ) -> Checkpoint:
        """The checkpoint of a fit; ``others`` decide its result besides data and parameters."""
        parameters = learner.get_params(deep=False)
        path = parameters["checkpoint"]
        if path is None:
            return cls(None, {})
        _check_seed(parameters["random_state"])
        names = set(parameters) - {*IRRELEVANT, *ignored}
        decisive = {name: parameters[name] for name in sorted(names)}
        judgments = judgment_fields(relevance)
        decisive |= {"X": X, "y": judgments, "queries": queries, **others}
        try:
            digests = {name: digest(name, value) for name, value in decisive.items()}
        except ValueError as error:
            raise ValueError(f"with checkpoint, {error} Omit checkpoint.") from error
        versions = {"method": type(learner).__name__, "rankspace": __version__}
        return cls(path, {**versions, **digests})

    # ------------------------------------------------------------------ files

    def load(self, check: Check | None = None) -> dict[str, Any] | None:
        """The saved state, or None if there is no file; ``done`` says whether it is finished.

        ``check`` raises ValueError unless a state can be gone on from; see `check_like`.
        """
        if self.path is None or not self.path.exists():
            return None
        content = self.path.read_bytes()
        if not _is_intact(content):
            raise self._no_checkpoint("the file is damaged, or something else")
        try:
            digests, state = _parse(content)
        except Exception as error:
            # The checksum is right and the content is not: somebody wrote it on purpose.
            raise self._no_checkpoint(
                f"its content cannot be read ({error})"
            ) from error
        self._check_digests(digests)
        try:
            check_like(state.get("done"), False, "done")
            if check is not None:
                check(state)
        except ValueError as error:
            raise self._no_checkpoint(str(error)) from error
        if state["done"]:
            logger.info("%s holds a finished fit, which is not repeated.", self.path)
        return state

    def _no_checkpoint(self, reason: str) -> ValueError:
        return ValueError(
            f"checkpoint={self.path} must be a checkpoint: {reason}. Use another path, or delete "
            "the file."
        )

    def save(self, state: Mapping[str, Any], *, now: bool = False) -> None:
        """Write arrays and numbers to the file, unless it was written very recently."""
        if self.path is None:
            return
        begin = time.perf_counter()
        if not now and begin < self._last + REST * self._took:
            return
        content = self._content(state)
        with replacing(self.path) as stream:
            stream.write(content)
        self._last = time.perf_counter()
        self._took = self._last - begin

    def _content(self, state: Mapping[str, Any]) -> bytes:
        from safetensors.numpy import save

        arrays = {}
        numbers = {}
        transposed = []
        for name, value in state.items():
            if not isinstance(value, np.ndarray):
                numbers[name] = value
                continue
            # Products with an array in another order are rounded otherwise.
            if value.flags.f_contiguous and not value.flags.c_contiguous:
                transposed.append(name)
                value = value.T
            arrays[name] = np.ascontiguousarray(value)
        header = {
            "digests": json.dumps(self.digests),
            "state": json.dumps(numbers),
            "transposed": json.dumps(transposed),
            "checksum": NO_CHECKSUM,
        }
        return _seal(save(arrays, header))

    def _check_digests(self, stored: Mapping[str, str]) -> None:
        names = sorted({*stored, *self.digests})
        different = [n for n in names if stored.get(n) != self.digests.get(n)]
        if different:
            raise ValueError(
                f"checkpoint={self.path} must be of the same data and parameters, but these "
                f"differ: {', '.join(different)}. Use another path, or delete the file."
            )

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the file in the error if the connection to a cluster is lost."""
        try:
            yield
        except ConnectionError as error:
            if self.path is None or not self.path.exists():
                raise
            raise type(error)(
                f"{error} {self.path} holds the fit so far: fit again with "
                f"checkpoint={str(self.path)!r} to resume."
            ) from error


def _check_seed(random_state: Any) -> None:
    if not (random_state is None or isinstance(random_state, Integral)):
        raise ValueError(
            "random_state, with checkpoint, must be an int or None: got "
            f"{type(random_state).__name__}, which draws other numbers when the fit is resumed."
        )


# ---------------------------------------------------------------------- what a state may hold


def check_like(value: Any, example: Any, name: str, *, nan: bool = False) -> None:
    """Raise ValueError unless a value of a file is of the kind of an example.

    Arrays need its type and number of dimensions, and finite numbers. Whole numbers must not be
    negative, others must be finite or equal to the example, or may be anything if ``nan`` is set.
    Mappings need the same names. All entries of a list must be like the one of the example.
    """
    if isinstance(example, dict):
        if not isinstance(value, dict) or value.keys() != example.keys():
            raise ValueError(f"{name} must have the names {', '.join(sorted(example))}")
        for key, part in example.items():
            check_like(value[key], part, key, nan=nan)
    elif isinstance(example, list):
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list")
        for row in value:
            check_like(row, example[0], f"a row of {name}", nan=True)
    elif isinstance(example, np.ndarray):
        _check_array(value, example, name)
    elif not _is_like(value, example, nan):
        raise ValueError(f"{name} is {value!r:.40}")


def _check_array(value: Any, example: np.ndarray, name: str) -> None:
    is_array = isinstance(value, np.ndarray) and value.dtype == example.dtype
    if not is_array or value.ndim != example.ndim or not np.isfinite(value).all():
        raise ValueError(
            f"{name} must be an array of {example.ndim} dimensions and finite {example.dtype}"
        )


def _is_like(value: Any, example: Any, nan: bool) -> bool:
    """Whether a number, a text or None is what it may be where another one stood."""
    if isinstance(example, bool) or not isinstance(example, int | float):
        return type(value) is type(example)
    if isinstance(example, int):
        return type(value) is int and 0 <= value < LARGEST
    if type(value) is int:
        return abs(value) < LARGEST
    if type(value) is not float:
        return False
    return nan or value == example or bool(np.isfinite(value))


def check_shapes(
    state: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> None:
    """Raise ValueError unless arrays have these shapes, on which indices rely."""
    for name, shape in shapes.items():
        if state[name].shape != shape:
            raise ValueError(f"{name} must have shape {shape}: got {state[name].shape}")


# ---------------------------------------------------------------------- the checksum


def _parse(content: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """The digests and the state of a file."""
    from safetensors.numpy import load

    header = split_header(content)[0]["__metadata__"]
    arrays = load(content)
    for name in json.loads(header["transposed"]):
        arrays[name] = arrays[name].T
    return dict(json.loads(header["digests"])), {
        **json.loads(header["state"]),
        **arrays,
    }


def _seal(content: bytes) -> bytes:
    """A safetensors file with the checksum of all its other bytes in the header."""
    start = content.index(SEALED) + len(SEALED)
    end = start + len(NO_CHECKSUM)
    unsealed = content[:start] + NO_CHECKSUM.encode() + content[end:]
    checksum = hashlib.blake2b(unsealed, digest_size=len(NO_CHECKSUM) // 2)
    return content[:start] + checksum.hexdigest().encode() + content[end:]


def _is_intact(content: bytes) -> bool:
    return SEALED in content and _seal(content) == content
