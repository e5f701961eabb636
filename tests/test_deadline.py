"""Threads, deadlines and the breaker: nobody waits for what is late, and what keeps failing is left alone."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import concord
from concord.core.errors import BackendDown, Unavailable
from concord.search.deadline import FAILURES, MAX_IDLE, Breaker, WorkerThreads, run_within

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


def test_what_works_is_let_through(breaker: Breaker):
    assert [breaker.call(lambda: "found") for _ in range(FAILURES * 2)] == ["found"] * FAILURES * 2


def test_a_few_failures_in_a_row_stop_the_asking(breaker: Breaker):
    break_down(breaker)
    with pytest.raises(Unavailable, match="the store does not answer.*tried again in 30 s") as refusal:
        breaker.call(must_not_run)
    assert refusal.value.hint


def test_failures_with_a_success_between_them_do_not(breaker: Breaker):
    for _ in range(FAILURES):
        break_down(breaker, FAILURES - 1)
        assert breaker.call(lambda: True)


def test_the_time_that_is_left_is_told(breaker: Breaker, clock: Clock):
    break_down(breaker)
    clock.now += RETRY_S - 7
    with pytest.raises(Unavailable, match="in 7 s"):
        breaker.call(must_not_run)


def test_after_the_delay_one_success_is_enough(breaker: Breaker, clock: Clock):
    break_down(breaker)
    clock.now += RETRY_S
    assert breaker.call(lambda: "back") == "back"
    break_down(breaker, FAILURES - 1)  # counted from nothing again
    assert breaker.call(lambda: "still") == "still"


def test_a_trial_that_fails_waits_for_the_whole_delay_again(breaker: Breaker, clock: Clock):
    break_down(breaker)
    clock.now += RETRY_S
    break_down(breaker, 1)
    clock.now += RETRY_S - 1
    with pytest.raises(Unavailable, match="in 1 s"):
        breaker.call(must_not_run)
    clock.now += 1
    assert breaker.call(lambda: "back") == "back"


def test_while_one_tries_the_others_are_answered_at_once(breaker: Breaker, clock: Clock):
    break_down(breaker)
    clock.now += RETRY_S

    def trial() -> str:
        with pytest.raises(Unavailable, match="right now"):
            breaker.call(must_not_run)
        return "back"

    assert breaker.call(trial) == "back"
    assert breaker.call(lambda: "all") == "all"


def test_an_answer_that_comes_too_late_is_a_failure(breaker: Breaker, clock: Clock):
    def late() -> str:
        clock.now += LATE_S + 1
        return "late"

    for _ in range(FAILURES):
        assert breaker.call(late) == "late"
    with pytest.raises(Unavailable, match="no answer within 5 s"):
        breaker.call(must_not_run)


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


@pytest.mark.promise("000.degrade.log")
def test_an_outage_is_logged_once_however_long_it_lasts(
    breaker: Breaker, clock: Clock, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING)
    break_down(breaker)
    for _ in range(5):
        clock.now += RETRY_S
        break_down(breaker, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "semantic search is unavailable, answering from words alone: the store does not answer"
    ]
    clock.now += RETRY_S
    breaker.call(lambda: None)
    break_down(breaker, 1)
    assert len(caplog.records) == 2


def test_who_is_late_says_nothing_once_all_is_closed(breaker: Breaker, caplog: pytest.LogCaptureFixture):
    def fail_late() -> None:
        breaker.close()
        fail()

    for _ in range(FAILURES):
        with pytest.raises(BackendDown):
            breaker.call(fail_late)
    assert not caplog.records
    assert breaker.call(lambda: "asked") == "asked"


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


def until_idle(workers: WorkerThreads, count: int) -> None:
    ended = threading.Event()
    while len(workers._idle) < count:
        assert not ended.wait(0.001)


def test_a_thread_that_is_done_takes_the_next_piece():
    workers = WorkerThreads()
    first = done_by(workers)
    until_idle(workers, 1)
    assert done_by(workers) is first


def test_work_that_hangs_holds_up_nobody():
    workers, released = WorkerThreads(), threading.Event()
    workers.start(lambda: None if released.wait(BOUND_S) else None)
    assert done_by(workers).daemon
    released.set()


def test_after_a_burst_no_more_threads_stay_than_are_useful():
    workers, released = WorkerThreads(), threading.Event()
    for _ in range(3 * MAX_IDLE):
        workers.start(lambda: None if released.wait(BOUND_S) else None)
    released.set()
    until_idle(workers, MAX_IDLE)
    assert len(workers._idle) == MAX_IDLE


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


def test_work_with_a_limit_returns_what_it_comes_to_or_nothing_when_it_is_late():
    released = threading.Event()
    assert run_within(lambda: 7, float("inf")) == 7
    assert run_within(lambda: released.wait(BOUND_S), 20) is None
    assert run_within(lambda: released.wait(BOUND_S), -1) is None
    released.set()
    with pytest.raises(ZeroDivisionError):
        run_within(lambda: 1 // 0, 60_000)
