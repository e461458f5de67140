"""Memory after many fits and rankings: as much as after a few."""

import subprocess
import sys
from pathlib import Path

import pytest

import rankspace
from rankspace import BaseRanker

# Options that make a fit short; memory does not depend on how long it takes.
SHORT = {
    "FRML": {"n_components": 2, "n_triplets": 200, "random_state": 0},
    "ITML": {"n_pairs": 50, "max_iter": 5, "random_state": 0},
    "LGMML": {"n_metrics": 5, "random_state": 0},
    "LMNN": {"max_iter": 5},
    "LORETA": {"n_components": 2, "n_triplets": 200, "random_state": 0},
    "ListwiseMap": {"max_iter": 3, "random_state": 0},
    "LogisticPARCA": {"max_iter": 5, "beta": 0.1, "random_state": 0},
    "MLCC": {"max_iter": 5},
    "MLR": {"max_iter": 3},
    "MLRCV": {"Cs": (10, 100), "max_iter": 2, "random_state": 0},
    "OASIS": {"n_triplets": 200, "random_state": 0},
    "PARCA": {"max_iter": 5, "reg": 0.01, "random_state": 0},
    "RobustMLR": {"max_iter": 3},
    "SVMMAP": {"max_iter": 3},
}

GROWTH = """
import gc, sys, warnings
import numpy as np
import rankspace
from sklearn.base import clone
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
y = np.arange(100) % 3
X = rng.normal(size=(100, 5))
X[:, 0] += 2 * y
learner = getattr(rankspace, sys.argv[1])(**eval(sys.argv[2]))

def resident():
    gc.collect()
    fields = open("/proc/self/status").read().split("VmRSS:")[1]
    return int(fields.split()[0])

def work(n):
    for _ in range(n):
        model = clone(learner).fit(X, y)
        for start in range(5):
            model.rank(X[start : start + 2], X, 10)

work(20)
before = resident()
work(200)
print(before, resident())
"""


def learners():
    classes = [getattr(rankspace, name) for name in rankspace.__all__]
    return [
        learner.__name__
        for learner in classes
        if isinstance(learner, type) and issubclass(learner, BaseRanker)
    ]


@pytest.mark.long
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="reads memory as Linux shows it"
)
@pytest.mark.parametrize("name", sorted({*learners()} - {"BaseRanker", "LinearRanker"}))
def test_resident_memory_is_flat(name):
    options = repr(SHORT.get(name, {}))
    result = subprocess.run(
        [sys.executable, "-c", GROWTH, name, options],
        capture_output=True,
        text=True,
        check=True,
    )
    before, after = map(int, result.stdout.split())
    # The figures are shown by pytest -rA.
    sys.stdout.write(f"{name}: {before} kB, then {after} kB\n")
    assert after <= 1.05 * before
