"""Threads are used again, and one that hangs holds up nobody."""

from __future__ import annotations

import threading

from concord import crew
from concord.crew import MOST_IDLE, Crew, bounded

BOUND_S = 60


def done_by(one: Crew) -> threading.Thread:
    """Have one piece of work done; return the thread that did it, once it is idle again."""
    found: list[threading.Thread] = []
    done = threading.Event()

    def work() -> None:
        found.append(threading.current_thread())
        done.set()

    one.do(work)
    assert done.wait(BOUND_S)
    return found[0]


def until_idle(one: Crew, count: int) -> None:
    ended = threading.Event()
    while len(one._idle) < count:
        assert not ended.wait(0.001)


def test_a_thread_that_is_done_takes_the_next_piece():
    one = Crew()
    first = done_by(one)
    until_idle(one, 1)
    assert done_by(one) is first


def test_work_that_hangs_holds_up_nobody():
    one, released = Crew(), threading.Event()
    one.do(lambda: None if released.wait(BOUND_S) else None)
    assert done_by(one).daemon
    released.set()


def test_after_a_burst_no_more_threads_stay_than_are_useful():
    one, released = Crew(), threading.Event()
    for _ in range(3 * MOST_IDLE):
        one.do(lambda: None if released.wait(BOUND_S) else None)
    released.set()
    until_idle(one, MOST_IDLE)
    assert len(one._idle) == MOST_IDLE


def test_a_forked_process_has_a_crew_of_its_own():
    before = crew._crew
    crew._start_anew()
    assert crew._crew is not before
    done = threading.Event()
    crew.do(done.set)
    assert done.wait(BOUND_S)


def test_a_budget_may_be_as_long_or_short_as_it_likes():
    assert bounded(lambda: 7, float("inf")) == 7
    released = threading.Event()
    assert bounded(lambda: released.wait(BOUND_S), -1) is None
    released.set()
