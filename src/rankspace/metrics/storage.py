"""The file format of metrics: one safetensors file, with version and parameters in its header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from .._engine.files import PathLike, replacing

FORMAT_VERSION = 1
_KINDS: dict[str, type[StoredMetric]] = {}


class StoredMetric:
    """A metric that is a few matrices and a mapping of parameters."""

    kind: ClassVar[str]
    arrays: ClassVar[tuple[str, ...]]
    parameters: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            _KINDS[cls.kind] = cls

    def save(self, path: PathLike) -> None:
        """Write one safetensors file, with version and parameters in its header.

        Parameters
        ----------
        path : path
            Where to; an existing file is replaced once the new one is complete.
        """
        from safetensors.numpy import save

        header = {
            "rankspace_format": str(FORMAT_VERSION),
            "kind": self.kind,
            "parameters": json.dumps(self.parameters),
        }
        content = save({name: getattr(self, name) for name in self.arrays}, header)
        with replacing(path) as stream:
            stream.write(content)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read a metric of this kind; see `load_metric`.

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
        cls, arrays: Mapping[str, np.ndarray], parameters: dict[str, Any]
    ) -> Self:
        return cls(**arrays, parameters=parameters)  # type: ignore[call-arg]

    def __repr__(self) -> str:
        shapes = ", ".join(
            f"{name} {getattr(self, name).shape}" for name in self.arrays
        )
        return f"{type(self).__name__}({shapes})"


def load_metric(path: PathLike) -> Any:
    """Read a metric that was saved.

    The file holds numbers and text only; reading it never runs anything.

    Parameters
    ----------
    path : path
        A file written by ``metric.save``.

    Returns
    -------
    LinearMetric, BilinearMetric, AsymmetricMetric or LocalMetric

    Examples
    --------
    >>> import tempfile, os
    >>> from rankspace import LinearMetric, load_metric
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "metric.safetensors")
    ...     LinearMetric([[1.0, 2.0]]).save(path)
    ...     load_metric(path)
    LinearMetric(components (1, 2))
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as stored:
            header = stored.metadata() or {}
            kind = _check_header(path, header)
            missing = set(kind.arrays) - set(stored.keys())
            if missing:
                raise ValueError(
                    f"{path} lacks the matrix {sorted(missing)[0]!r}: save it again."
                )
            arrays = {name: stored.get_tensor(name) for name in kind.arrays}
    except (SafetensorError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(
            f"{path} is no metric file, or is damaged or cut short ({error}). Save it again."
        ) from error
    try:
        return kind._restore(arrays, json.loads(header.get("parameters", "{}")))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} holds no valid metric: {error}") from error


def _check_header(path: PathLike, header: Mapping[str, str]) -> type[StoredMetric]:
    version = header.get("rankspace_format")
    if version is None or not version.isdigit():
        raise ValueError(
            f"{path} was not written by rankspace: its header names no format."
        )
    if int(version) > FORMAT_VERSION:
        raise ValueError(
            f"{path} has format {version}, and this version of rankspace reads up to "
            f"{FORMAT_VERSION}: upgrade rankspace."
        )
    if header.get("kind") not in _KINDS:
        raise ValueError(
            f"{path} must hold a metric of kind {' or '.join(_KINDS)}: got {header.get('kind')!r}."
        )
    return _KINDS[header["kind"]]
