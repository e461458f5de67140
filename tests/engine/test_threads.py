"""Thread pools: ordered results, nothing left running after an error, and safe to fork."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import threadpoolctl

import rankspace
from rankspace._engine.parallel import Step, Threads
from rankspace._engine.parallel import threads as _threads
from rankspace._engine.parallel.threads import for_each, ordered_map, thread_map


@pytest.fixture
def three_cores(monkeypatch):
    monkeypatch.setattr(_threads, "n_threads", lambda: 1 if _threads._in_pool() else 3)


def blas_threads():
    """The number of threads of NumPy's BLAS; other tests may have loaded other libraries."""
    libraries = threadpoolctl.ThreadpoolController().select(user_api="blas")
    return [
        library["num_threads"]
        for library in libraries.info()
        if "numpy" in library["filepath"]
    ]


def squares():
    return list(thread_map(lambda part: part**2, range(10), depth=2))


@pytest.mark.usefixtures("three_cores")
def test_results_come_in_order_from_threads_that_stay():
    names = set()

    def work(part):
        names.add(threading.current_thread().name)
        return part**2

    for _ in range(5):
        assert list(thread_map(work, range(10), depth=2)) == [
            part**2 for part in range(10)
        ]
    assert len(names) <= 3
    assert threading.current_thread().name not in names


@pytest.mark.usefixtures("three_cores")
def test_threads_start_none_themselves_and_go_on_after_an_error():
    def nested(part):
        caller = threading.current_thread()
        return list(
            thread_map(lambda _: threading.current_thread() is caller, range(3))
        )

    assert list(thread_map(nested, range(6))) == [[True] * 3] * 6
    with pytest.raises(ZeroDivisionError):
        list(thread_map(lambda part: 1 // part, range(3)))
    assert squares() == [part**2 for part in range(10)]


@pytest.mark.usefixtures("three_cores")
def test_after_an_error_no_work_is_running_and_blas_has_its_threads_back():
    second_runs = threading.Event()
    started, ended = [], []

    def work(part):
        started.append(part)
        with _threads.single_threaded_blas():
            if part == 0:
                second_runs.wait(60)
                raise ZeroDivisionError
            second_runs.set()
            time.sleep(0.2)
        ended.append(part)

    before = blas_threads()
    with pytest.raises(ZeroDivisionError):
        list(thread_map(work, range(3)))
    # A part that had not started yet is cancelled; the others were waited for.
    assert sorted(started) == [0, *sorted(ended)]
    assert ended
    assert blas_threads() == before


@pytest.mark.parametrize("n", [1, 3])
def test_an_ordered_map_reads_no_further_ahead_than_it_may(n):
    taken = []

    def parts():
        for part in range(9):
            taken.append(part)
            yield part

    for part, result in enumerate(
        ordered_map(lambda part: part**2, parts(), n, max_in_flight=4)
    ):
        assert result == part**2
        assert len(taken) <= part + 5
    assert taken == list(range(9))


def test_threads_of_a_pool_do_not_wait_for_each_other():
    def nested(part):
        return list(
            ordered_map(lambda other: part * other, range(3), 2, max_in_flight=3)
        )

    results = list(ordered_map(nested, range(4), 2, max_in_flight=4))
    assert results == [[0, part, 2 * part] for part in range(4)]


@pytest.mark.parametrize("flops", [0.0, 1e12])
def test_every_part_is_done_with_few_and_many_flops(flops):
    done = [None] * 7

    def work(part):
        done[part] = part**2

    for_each(work, range(7), flops=flops)
    assert done == [part**2 for part in range(7)]


@pytest.mark.usefixtures("three_cores")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="processes cannot be forked here",
)
def test_a_forked_process_has_threads_of_its_own():
    squares()
    context = multiprocessing.get_context("fork")
    child = context.Process(target=squares, daemon=True)
    child.start()
    child.join(60)
    assert child.exitcode == 0


# ---------------------------------------------------------------------- the limit on BLAS


@pytest.fixture
def two_blas_threads():
    """Two threads for BLAS, in every library and for callers from any thread."""
    _threads._blas()  # loads the library of SciPy
    limit = threadpoolctl.threadpool_limits(2, "blas")
    _threads._obey_any_thread()
    yield
    limit.restore_original_limits()
    _threads._obey_any_thread()


@pytest.mark.usefixtures("two_blas_threads")
def test_the_last_of_several_callers_restores_the_threads_of_blas():
    """The second caller enters before the first one leaves, and leaves after it."""
    second_is_inside = threading.Event()
    first_has_left = threading.Event()
    seen = []

    def first():
        with _threads.single_threaded_blas():
            second.start()
            second_is_inside.wait(60)
        first_has_left.set()

    def work():
        with _threads.single_threaded_blas():
            second_is_inside.set()
            first_has_left.wait(60)
            seen.append(blas_threads())

    second = threading.Thread(target=work)
    thread = threading.Thread(target=first)
    before = blas_threads()
    thread.start()
    thread.join(60)
    second.join(60)
    assert set(seen[0]) == {1}
    assert set(before) == {2}
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
def test_ranking_from_several_threads_leaves_blas_its_threads():
    X = np.random.default_rng(0).normal(size=(2000, 8))
    index = rankspace.Index(X, max_memory=1)

    def rank():
        for _ in range(5):
            index.rank(X[:600], 5)

    callers = [threading.Thread(target=rank) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert set(blas_threads()) == {2}


class Squares(Step):
    def map_block(self, block, state):
        return block**2


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("n", [1, 3])
def test_the_limit_does_not_outlast_a_map_that_nobody_reads_on(n):
    results = Threads(n).map(Squares(), range(20))
    assert next(results) == 0
    time.sleep(0.05)  # a block that runs ahead may be inside
    assert set(blas_threads()) == {2}
    assert list(results) == [block**2 for block in range(1, 20)]


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(),
    reason="processes cannot be forked here",
)
def test_a_process_forked_while_a_thread_is_inside_has_its_threads():
    entered = threading.Event()
    forked = threading.Event()

    def stay_inside():
        with _threads.single_threaded_blas():
            entered.set()
            forked.wait(60)

    def child(found):
        found.put(blas_threads())

    thread = threading.Thread(target=stay_inside)
    thread.start()
    entered.wait(60)
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    process = context.Process(target=child, args=(found,), daemon=True)
    process.start()
    process.join(60)
    forked.set()
    thread.join(60)
    assert process.exitcode == 0
    assert set(found.get()) == {2}


def test_a_variable_set_after_the_import_does_not_limit_threads():
    """A Dask LocalCluster sets OMP_NUM_THREADS=1 in the process that starts it."""
    code = (
        "import os, rankspace; os.environ['OMP_NUM_THREADS'] = '1';"
        "os.sched_getaffinity = lambda _: range(3);"
        "from rankspace._engine.parallel.threads import n_threads; print(n_threads())"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    for limit, expected in (({}, "3"), ({"OMP_NUM_THREADS": "2"}, "2")):
        found = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, **limit},
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == expected
