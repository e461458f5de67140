#!/usr/bin/env bash
# The core tests under the oldest packages we support, and under the newest Python at hand.
# Usage: tests/matrix.sh [pytest arguments]; PYTHONS="python3.13" names interpreters to look for.
set -euo pipefail
cd "$(dirname "$0")/.."

# scikit-learn 1.6 hands pytest a generator, which pytest 9 refuses.
OLDEST="numpy==2.0.* scipy==1.13.* scikit-learn==1.6.0 numba==0.60.* safetensors==0.4.3 pytest<9"
TESTS=("$@")
[ ${#TESTS[@]} -gt 0 ] || TESTS=(tests/learners/test_base.py tests/relevance tests/evaluation/test_measures.py
    tests/search/test_index.py tests/metrics/test_embedding.py tests/test_imports.py
    tests/engine/test_oracles.py)
make --no-print-directory dist/.built
wheel=$(echo dist/*.whl)

run() { # name, interpreter, packages
    local name=$1 python=$2
    shift 2
    "$python" -m venv ".venv-$name"
    ".venv-$name/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" "$@" \
        pytest pytest-xdist hypothesis pytrec-eval-terrier pandas polars
    # A wheel of the same version may stand there from before.
    ".venv-$name/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --force-reinstall "$wheel"
    echo "== $name: $(".venv-$name/bin/python" -c 'import sys, sklearn, numpy, numba
print("Python", sys.version.split()[0], "scikit-learn", sklearn.__version__,
      "numpy", numpy.__version__, "numba", numba.__version__)')"
    ".venv-$name/bin/python" -m pytest -q -n auto --dist worksteal "${TESTS[@]}"
}

# shellcheck disable=SC2086
run oldest "${OLDEST_PYTHON:-python3.11}" $OLDEST
newest=""
for python in ${PYTHONS:-python3.12 python3.13 python3.14 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python}; do
    "$python" --version >/dev/null 2>&1 && newest=$python
done
if [ -n "$newest" ]; then run newest "$newest"; else echo "== newest: no Python above 3.11 found"; fi
