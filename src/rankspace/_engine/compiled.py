"""Compile kernels with Numba, and cache the machine code wherever a folder can be written."""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numba
from numba import njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.serialize import dumps

config: Any = numba.config
_config_lock = Lock()
# Kernels run without the GIL. Less is compiled without checks for a division by zero, which gives
# inf or NaN as in NumPy, and without a wrapper for calls from C.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function with Numba at its first call, without the GIL: the decorator of kernels.

    The machine code is cached beside the source or in the user's cache folder, as Numba does;
    where neither can be written, in the temporary folder; or else not at all, with a warning.
    """
    if function is None:
        return lambda function: kernel(function, **options)
    function.__qualname__ = _symbol_of(function)
    compiled = njit(**OPTIONS, **options)(function)
    # With NUMBA_DISABLE_JIT=1 the function stays as it is.
    if hasattr(compiled, "enable_caching"):
        compiled._cache = _cache_of(function)
    return compiled


def _symbol_of(function: Callable[..., Any]) -> str:
    """The name that machine code is linked by: for a closure, with those of the kernels it calls.

    Two closures of one factory have the same name. Compiled by one process, Numba numbers them;
    loaded from a cache that several processes wrote, one would be linked in place of the other.
    """
    called = [_last_name(cell.cell_contents) for cell in function.__closure__ or ()]
    return "_".join([function.__qualname__, *called])


def _last_name(function: Any) -> str:
    return getattr(function, "py_func", function).__qualname__.rpartition(".")[2]


def _cache_of(function: Callable[..., Any]) -> Any:
    """The cache of a function's machine code; Numba's rule for the folder comes first."""
    # Without an entry for the user, "~" would be a folder of that name in the working directory.
    if os.path.isabs(os.path.expanduser("~")) or config.CACHE_DIR:
        with suppress(RuntimeError):
            return _KernelCache(function)
    folder = _temporary_cache()
    if folder is not None:
        with suppress(RuntimeError), _numba_cache_dir(folder):
            return _KernelCache(function)
    _warn_uncached()
    return NullCache()


class _CheckedResult(CompileResultCacheImpl):
    """Compiled code with a checksum, which covers the sources of all kernels too.

    Numba itself compares only the file of the kernel, not the files of the kernels it calls.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._folder = Path(inspect.getfile(function)).parent
        super().__init__(function)

    def reduce(self, result: Any) -> tuple[bytes, bytes]:
        content = dumps(super().reduce(result))
        return self._checksum(content), content

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        checksum, content = payload
        if checksum != self._checksum(content):
            raise ValueError("the cached code is damaged or out of date")
        return super().rebuild(target_context, pickle.loads(content))

    def _checksum(self, content: bytes) -> bytes:
        sources = _sources_stamp(self._folder)
        return hashlib.sha256(sources + content).digest()


class _KernelCache(FunctionCache):
    """Numba's cache, but one that cannot be read or written costs a compilation, not the run."""

    _impl_class = _CheckedResult

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            result = super().load_overload(signature, target_context)
        # A damaged pickle can raise anything.
        except Exception:
            self._start_anew()
            result = None
        # Two processes that save at once can swap the files of two signatures.
        if result is None or tuple(result.signature.args) != tuple(signature):
            _say_compiling()
            return None
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except OSError:
            # Such as a full disk.
            _warn_uncached()

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        """Numba's key, but with the names of the kernels that a closure calls.

        Numba would take their pickles, which are others in each process.
        """
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        return signature, codegen.magic_tuple(), code, _name_of(self._py_func)

    def _start_anew(self) -> None:
        try:
            self.flush()
        except OSError:
            _warn_uncached()


def _name_of(function: Any) -> str:
    """Name of a kernel, with the names of those that it calls as a closure."""
    function = getattr(function, "py_func", function)
    cells = function.__closure__ or ()
    called = [_name_of(cell.cell_contents) for cell in cells]
    return f"{function.__module__}.{function.__qualname__}({', '.join(called)})"


@cache
def _sources_stamp(folder: Path) -> bytes:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


@cache
def _temporary_cache() -> str | None:
    """A cache folder in the temporary folder that only this user can write, if there can be one.

    Cached code is executed, so that a folder prepared by another user is never used.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        folder = Path(tempfile.gettempdir()) / f"rankspace-kernels-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    # Windows has no such modes, and gives each user a temporary folder.
    if hasattr(os, "getuid") and (found.st_uid != user or found.st_mode & 0o022):
        return None
    return str(folder) if stat.S_ISDIR(found.st_mode) else None


@contextmanager
def _numba_cache_dir(folder: str) -> Iterator[None]:
    """Make Numba cache in a folder, for as long as it looks for one."""
    with _config_lock:
        before = config.CACHE_DIR
        config.CACHE_DIR = folder
        try:
            yield
        finally:
            config.CACHE_DIR = before


@cache
def _say_compiling() -> None:
    """Say once why the first call takes seconds: on a terminal, or in an interactive session."""
    if sys.stderr is not None and (sys.stderr.isatty() or hasattr(sys, "ps1")):
        line = "rankspace: compiling for the first use; the code is kept for later ones"
        sys.stderr.write(f"\r{line}\n")


@cache
def _warn_uncached() -> None:
    warnings.warn(
        "compiled code cannot be cached, because no cache folder can be written: every start "
        "compiles it anew. Set NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )
