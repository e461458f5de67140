"""Fuzzing guided by coverage: ``PYTHONPATH=tests python -m fuzz.guided TARGET -max_total_time=60``.

It needs atheris, and takes the options of libFuzzer. The suite does not need it: its inputs are
the numbered ones of `Target.content`.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

# Numba compiles the kernels, and cannot do so after they are instrumented.
with atheris.instrument_imports(
    include=["rankspace"], exclude=["rankspace._engine.kernels"]
):
    from fuzz.targets import TARGETS


def main() -> None:
    """Fuzz one target from its seeds."""
    name, *options = sys.argv[1:]
    target = TARGETS[name]
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as corpus, target.file() as path:
        for i, content in enumerate(target.seeds):
            (Path(corpus) / str(i)).write_bytes(content)
            target.try_content(path, content)

        def run(content: bytes) -> None:
            target.try_content(path, content)

        atheris.Setup([sys.argv[0], corpus, *options], run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
