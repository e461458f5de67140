"""Thread pools: ordered results, nothing left running after an error, and safe to fork."""

import multiprocessing
import threading
import time

import pytest

from rankspace._engine.parallel import threads as _threads
from rankspace._engine.parallel.threads import for_each, ordered_map, thread_map


@pytest.fixture
def three_cores(monkeypatch):
    monkeypatch.setattr(_threads, "n_threads", lambda: 1 if _threads._in_pool() else 3)


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

    before = [library["num_threads"] for library in _threads._blas().info()]
    with pytest.raises(ZeroDivisionError):
        list(thread_map(work, range(3)))
    # A part that had not started yet is cancelled; the others were waited for.
    assert sorted(started) == [0, *sorted(ended)]
    assert ended
    assert [library["num_threads"] for library in _threads._blas().info()] == before


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
