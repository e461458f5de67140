"""Calls from many threads and processes at once give what they give in turn."""

import multiprocessing
import queue
import threading

import joblib
import pytest
from threadpoolctl import threadpool_info

from mixed_calls import call, same

# A deadlock fails after this many seconds; a call takes a few hundredths of one.
PATIENCE = 300


def blas_threads():
    return [(pool["filepath"], pool["num_threads"]) for pool in threadpool_info()]


def answers_of_threads(n_threads, numbers):
    """The answers of calls that threads take from a queue, by number."""
    waiting = queue.SimpleQueue()
    for number in numbers:
        waiting.put(number)
    answers = {}

    def work():
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                answers[number] = call(number)
            except Exception as error:
                answers[number] = (error,)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    return answers


@pytest.mark.parametrize(
    ("n_threads", "n_calls"), [(8, 70), pytest.param(8, 1600, marks=pytest.mark.long)]
)
def test_threads_get_the_answers_of_calls_in_turn(n_threads, n_calls):
    expected = {number: call(number) for number in range(n_calls)}
    before = blas_threads()
    # Back to front, so that other calls meet than in turn.
    found = answers_of_threads(n_threads, range(n_calls - 1, -1, -1))
    assert [n for n in expected if not same(found[n], expected[n])] == []
    assert blas_threads() == before


@pytest.mark.parametrize(
    ("method", "n_calls"),
    [
        ("fork", 35),
        pytest.param("fork", 400, marks=pytest.mark.long),
        pytest.param("spawn", 400, marks=pytest.mark.long),
        pytest.param("forkserver", 400, marks=pytest.mark.long),
    ],
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_workers_get_the_answers_of_calls_in_turn(method, n_calls):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    # The threads of this process have worked before it is forked.
    expected = [call(number) for number in range(n_calls)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(call, range(n_calls)).get(PATIENCE)
    wrong = [n for n in range(n_calls) if not same(found[n], expected[n])]
    assert wrong == []


@pytest.mark.parametrize(
    ("backend", "n_calls"),
    [
        ("threading", 35),
        pytest.param("threading", 400, marks=pytest.mark.long),
        pytest.param("loky", 400, marks=pytest.mark.long),
    ],
)
def test_joblib_gets_the_answers_of_calls_in_turn(backend, n_calls):
    expected = [call(number) for number in range(n_calls)]
    with joblib.parallel_config(backend, n_jobs=2):
        found = joblib.Parallel(timeout=PATIENCE)(
            joblib.delayed(call)(number) for number in range(n_calls)
        )
    wrong = [n for n in range(n_calls) if not same(found[n], expected[n])]
    assert wrong == []
