"""Checkpoints of the cutting plane: a file from which an interrupted fit resumes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...._engine.files import PathLike, replacing

REST = 10.0  # wait at least this many times the writing time before the next write


class Checkpoint:
    """A checkpoint file with the planes, the inner problem and the state of the rounds.

    Parameters
    ----------
    path : path
        The file.
    fingerprint : str
        A digest of the data and parameters.
    """

    def __init__(self, path: PathLike, fingerprint: str) -> None:
        self.path = Path(path)
        self.fingerprint = fingerprint
        self.round = 0
        self._last = -np.inf
        self._took = 0.0

    def load(self, problem: Any) -> dict[str, Any] | None:
        """Restore the problem and return the saved state, or None if there is no file."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as stored:
                header = stored.metadata() or {}
                arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise ValueError(
                f"{self.path} is not a checkpoint ({error}). Delete it."
            ) from error
        if header.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"checkpoint={self.path} must be of the same data and parameters, but they differ. "
                "Use another file, or delete this one."
            )
        numbers = json.loads(header["rounds"])
        for name in [name for name in arrays if name.startswith("problem.")]:
            setattr(problem, name.removeprefix("problem."), arrays.pop(name))
        problem.rho = numbers.pop("rho")
        problem.cone.__dict__.update(numbers.pop("cone"))
        self.round = len(numbers["history"])
        return {**arrays, **numbers}

    def save(self, problem: Any, **state: Any) -> None:
        """Write the file, unless it was written very recently."""
        from safetensors.numpy import save

        begin = time.perf_counter()
        if begin < self._last + REST * self._took:
            return
        arrays = {}
        numbers = {"rho": float(problem.rho)}
        for name, value in vars(problem).items():
            if isinstance(value, np.ndarray):
                arrays[f"problem.{name}"] = np.ascontiguousarray(value)
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                arrays[name] = np.ascontiguousarray(value)
            else:
                numbers[name] = value
        cone = {n: v for n, v in vars(problem.cone).items() if isinstance(v, int)}
        rounds = json.dumps({**numbers, "cone": cone})
        content = save(arrays, {"fingerprint": self.fingerprint, "rounds": rounds})
        with replacing(self.path) as stream:
            stream.write(content)
        self.round = len(state["history"])
        self._last = time.perf_counter()
        self._took = self._last - begin

    @contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Name the file in the error if the connection to a cluster is lost."""
        try:
            yield
        except ConnectionError as error:
            raise type(error)(
                f"{error} {self.path} holds the fit after round {self.round}: fit again with "
                f"checkpoint={str(self.path)!r} to resume."
            ) from error


def digest(*values: Any) -> str:
    """A fingerprint of arrays, and of other values by their repr."""
    hashed = hashlib.blake2b(digest_size=16)
    for value in values:
        content = repr(value).encode()
        if isinstance(value, np.ndarray):
            content = np.ascontiguousarray(value).tobytes()
        hashed.update(content)
    return hashed.hexdigest()
