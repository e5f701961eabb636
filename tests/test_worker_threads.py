"""Threads are used again, and one that hangs holds up nobody."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import concord
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


FORKS = """
import os
from concord import worker_threads

gate = worker_threads.closed_gate()
worker_threads.start(gate.release)
gate.acquire()
while not worker_threads._workers._idle:  # its thread has done that, and waits for more
    pass
child = os.fork()
if not child:
    os._exit(0 if worker_threads.run_within(lambda: "done", {wait_ms}) == "done" else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_has_threads_of_its_own():
    # In a process of its own, which has no other threads that could hold a lock while it is forked.
    script = FORKS.format(wait_ms=BOUND_S * 1000)
    environment = {**os.environ, "PYTHONPATH": str(Path(concord.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, timeout=2 * BOUND_S, check=False)
    assert done.returncode == 0


def test_a_budget_may_be_as_long_or_short_as_it_likes():
    assert run_within(lambda: 7, float("inf")) == 7
    released = threading.Event()
    assert run_within(lambda: released.wait(BOUND_S), -1) is None
    released.set()
