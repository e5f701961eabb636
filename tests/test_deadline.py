"""Threads, deadlines and the breaker: nobody waits for what is late, and what keeps failing is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import concord
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


def test_calls_that_never_come_back_are_failures_too(breaker: Breaker, clock: Clock):
    come_back, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        come_back.wait()

    hung = [threading.Thread(target=breaker.call, args=(hang,), daemon=True) for _ in range(FAILURES)]
    for thread in hung:
        thread.start()
        assert begun.acquire(timeout=30)
    clock.now += LATE_S + 1
    with pytest.raises(Unavailable):
        breaker.call(must_not_run)
    come_back.set()
    for thread in hung:
        thread.join(30)
    with pytest.raises(Unavailable):  # that they came back so late proves nothing
        breaker.call(must_not_run)
    clock.now += RETRY_S
    assert breaker.call(lambda: "back") == "back"


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


def test_work_that_no_thread_can_be_started_for_takes_none_from_the_next(monkeypatch: pytest.MonkeyPatch):
    def exhausted(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    workers, lost = WorkerThreads(), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", exhausted)
        with pytest.raises(RuntimeError, match="start new thread"):
            workers.start(lost.set)
    done_by(workers)
    assert not lost.is_set()


def test_a_call_that_ends_after_closing_is_no_outage(breaker: Breaker, caplog: pytest.LogCaptureFixture):
    def closed_meanwhile() -> None:
        breaker.close()
        fail()

    with pytest.raises(BackendDown):
        breaker.call(closed_meanwhile)
    assert not caplog.records


FORKS = """
import os
from concord.search import deadline

assert deadline.run_within(lambda: "done", {wait_ms}) == "done"
while not deadline._workers._idle:  # its thread has done that, and waits for more
    pass
child = os.fork()
if not child:
    os._exit(0 if deadline.run_within(lambda: "done", {wait_ms}) == "done" else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_has_threads_of_its_own():
    # In a process of its own, which has no other threads that could hold a lock while it is forked.
    script = FORKS.format(wait_ms=BOUND_S * 1000)
    environment = {**os.environ, "PYTHONPATH": str(Path(concord.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, timeout=2 * BOUND_S, check=False)
    assert done.returncode == 0
