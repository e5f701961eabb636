"""Threads are used again, and one that hangs holds up nobody."""

from __future__ import annotations

import threading

from concord import worker_threads
from concord.worker_threads import MOST_IDLE, WorkerThreads, run_within

BOUND_S = 60


def done_by(one: WorkerThreads) -> threading.Thread:
    """Have one piece of work done; return the thread that did it, once it is idle again."""
    found: list[threading.Thread] = []
    done = threading.Event()

    def work() -> None:
        found.append(threading.current_thread())
        done.set()

    one.start(work)
    assert done.wait(BOUND_S)
    return found[0]


def until_idle(one: WorkerThreads, count: int) -> None:
    ended = threading.Event()
    while len(one._idle) < count:
        assert not ended.wait(0.001)


def test_a_thread_that_is_done_takes_the_next_piece():
    one = WorkerThreads()
    first = done_by(one)
    until_idle(one, 1)
    assert done_by(one) is first


def test_work_that_hangs_holds_up_nobody():
    one, released = WorkerThreads(), threading.Event()
    one.start(lambda: None if released.wait(BOUND_S) else None)
    assert done_by(one).daemon
    released.set()


def test_after_a_burst_no_more_threads_stay_than_are_useful():
    one, released = WorkerThreads(), threading.Event()
    for _ in range(3 * MOST_IDLE):
        one.start(lambda: None if released.wait(BOUND_S) else None)
    released.set()
    until_idle(one, MOST_IDLE)
    assert len(one._idle) == MOST_IDLE


def test_a_forked_process_has_threads_of_its_own():
    before = worker_threads._workers
    worker_threads._start_anew()
    assert worker_threads._workers is not before
    done = threading.Event()
    worker_threads.start(done.set)
    assert done.wait(BOUND_S)


def test_a_budget_may_be_as_long_or_short_as_it_likes():
    assert run_within(lambda: 7, float("inf")) == 7
    released = threading.Event()
    assert run_within(lambda: released.wait(BOUND_S), -1) is None
    released.set()
