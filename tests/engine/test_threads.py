"""Work in threads: results in order, and threads that outlive neither a fork nor an error."""

import multiprocessing
import threading
import time

import pytest

from rankspace._engine.parallel import threads as _threads
from rankspace._engine.parallel.threads import thread_map


@pytest.fixture
def three_cores(monkeypatch):
    monkeypatch.setattr(_threads, "n_threads", lambda: 1 if in_team() else 3)


def in_team():
    return getattr(_threads._here, "in_team", False)


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
def test_after_an_error_nothing_goes_on_and_products_have_their_threads_back():
    ended = []

    def work(part):
        with _threads.single_threaded_blas():
            if part:
                time.sleep(0.2)
                ended.append(part)
            else:
                raise ZeroDivisionError
        return part

    before = [library["num_threads"] for library in _threads._blas().info()]
    with pytest.raises(ZeroDivisionError):
        list(thread_map(work, range(3)))
    assert sorted(ended) == [1, 2]
    assert [library["num_threads"] for library in _threads._blas().info()] == before


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
