"""Threads, deadlines and the breaker: nobody waits for what is late, and what keeps failing is left alone."""

from __future__ import annotations

import threading

import pytest

from concord.core.errors import BackendDown, Unavailable
from concord.search.deadline import FAILURES, Breaker, WorkerThreads

RETRY_S, LATE_S, BOUND_S = 30.0, 5.0, 60
DOWN = BackendDown("the store does not answer", hint="start it")


class Clock:
    """Time that passes when a test says so."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("semantic search", retry_s=RETRY_S, late_s=LATE_S, clock=clock)


def fail() -> None:
    raise DOWN


def break_down(breaker: Breaker, times: int = FAILURES) -> None:
    for _ in range(times):
        with pytest.raises(BackendDown):
            breaker.call(fail)


def must_not_run() -> None:
    raise AssertionError("it was asked")


def test_while_one_tries_the_others_are_answered_at_once(breaker: Breaker, clock: Clock):
    break_down(breaker)
    clock.now += RETRY_S

    def trial() -> str:
        with pytest.raises(Unavailable, match="right now"):
            breaker.call(must_not_run)
        return "back"

    assert breaker.call(trial) == "back"
    assert breaker.call(lambda: "all") == "all"


def done_by(workers: WorkerThreads) -> threading.Thread:
    """Have one piece of work done; return the thread that did it, once it is idle again."""
    found: list[threading.Thread] = []
    done = threading.Event()

    def work() -> None:
        found.append(threading.current_thread())
        done.set()

    workers.start(work)
    assert done.wait(BOUND_S)
    return found[0]


def test_work_that_hangs_holds_up_nobody():
    workers, released = WorkerThreads(), threading.Event()
    workers.start(lambda: None if released.wait(BOUND_S) else None)
    assert done_by(workers).daemon
    released.set()
