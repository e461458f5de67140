"""Checkpoints: a file from which an interrupted fit resumes, and gives the same metric.

A checkpoint is a safetensors file. Its header holds a digest of all data and of each parameter, so
that no other fit resumes from it, and a checksum of the whole file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ... import __version__
from ..._engine.digest import digest
from ..._engine.files import PathLike, replacing
from ...metrics.card import judgment_fields
from ...metrics.storage import split_header
from ...relevance.relevance import Relevance

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

    def load(self) -> dict[str, Any] | None:
        """The saved state, or None if there is no file; ``done`` says whether it is finished."""
        if self.path is None or not self.path.exists():
            return None
        from safetensors.numpy import load

        content = self.path.read_bytes()
        if not _is_intact(content):
            raise ValueError(
                f"checkpoint={self.path} must be a checkpoint: the file is damaged, or something "
                "else. Use another path, or delete the file."
            )
        header = split_header(content)[0]["__metadata__"]
        self._check_digests(json.loads(header["digests"]))
        arrays = load(content)
        for name in json.loads(header["transposed"]):
            arrays[name] = arrays[name].T
        state = {**json.loads(header["state"]), **arrays}
        if state["done"]:
            logger.info("%s holds a finished fit, which is not repeated.", self.path)
        return state

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


# ---------------------------------------------------------------------- the checksum


def _seal(content: bytes) -> bytes:
    """A safetensors file with the checksum of all its other bytes in the header."""
    start = content.index(SEALED) + len(SEALED)
    end = start + len(NO_CHECKSUM)
    unsealed = content[:start] + NO_CHECKSUM.encode() + content[end:]
    checksum = hashlib.blake2b(unsealed, digest_size=len(NO_CHECKSUM) // 2)
    return content[:start] + checksum.hexdigest().encode() + content[end:]


def _is_intact(content: bytes) -> bool:
    return SEALED in content and _seal(content) == content
