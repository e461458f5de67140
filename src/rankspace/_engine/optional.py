"""Optional dependencies: packages of an extra, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, *, extra: str) -> Any:
    """Import an optional dependency, or say how to install it.

    Parameters
    ----------
    module : str
        The module to import, such as ``"faiss"``.
    extra : str
        The extra of rankspace that installs it.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If the package is not installed; the message has the command that installs it.

    Examples
    --------
    >>> from rankspace._engine.optional import require
    >>> require("json", extra="index").dumps([1])
    '[1]'
    >>> require("no_such_package", extra="index")
    Traceback (most recent call last):
    ImportError: this needs the package no_such_package: pip install 'rankspace[index]'.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"this needs the package {package}: pip install 'rankspace[{extra}]'."
        ) from error
