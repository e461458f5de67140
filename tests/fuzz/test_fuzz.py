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
    with target.file() as path:
        accepted = [target.try_content(path, content) for content in target.seeds]
    assert sum(accepted) >= 0.5 * len(accepted)


# NumPy warns of overflow before the result is refused, and of headers that are not its own.
@pytest.mark.filterwarnings("ignore")
def test_mutated_files_are_read_or_refused(target):
    with target.file() as path:
        contents = map(target.content, range(N_INPUTS))
        accepted = [target.try_content(path, content) for content in contents]
    # Inputs that are refused at once try nothing; a checksum refuses all damaged checkpoints.
    assert target is TARGETS["checkpoint"] or sum(accepted) >= N_INPUTS / 30


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
