"""Every reader on a few hundred mutated files: a value, a ValueError or an OSError."""

import pytest

from fuzz.session import run_inputs
from fuzz.targets import TARGETS

N_INPUTS = 150


@pytest.fixture(params=TARGETS)
def target(request):
    found = TARGETS[request.param]
    if not found.seeds:
        pytest.skip("the package that writes such files is not installed")
    return found


def test_most_seeds_are_accepted(target):
    accepted = []
    for content in target.seeds:
        with target.file() as path:
            path.write_bytes(content)
            accepted.append(target.accepts(path))
    assert sum(accepted) >= 0.5 * len(accepted)


# NumPy warns of overflow before the result is refused, and of headers that are not its own.
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_are_read_or_refused(target):
    for number in range(N_INPUTS):
        with target.file() as path:
            path.write_bytes(target.content(number))
            target.accepts(path)


def test_the_seeds_are_small():
    sizes = [len(seed) for target in TARGETS.values() for seed in target.seeds]
    assert sum(sizes) < 2**20


def test_an_input_depends_on_its_number_only(target):
    assert target.content(7) == target.content(7)
    assert len({target.content(number) for number in range(20)}) > 10


def test_a_session_counts_what_became_of_its_inputs(tmp_path):
    found = run_inputs("qrels", 5, 20, 60, tmp_path / "number")
    assert found["next"] == 25
    assert sum(found["counts"].values()) == 20
    assert found["first_of_each_fault"] == {}
    assert (tmp_path / "number").read_text() == "24"
