"""A part that keeps failing is left alone for a while, and asked again without a restart."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pytest

from concord.answering.breaker import FAILURES, PROMPT_S, Breaker, Guarded
from concord.errors import BackendDown, Unavailable
from concord.strategies.semantic import Fetched
from concord.types import Candidate, ChunkId, Family, Query, Vector
from support.small_library import library, understood

T = TypeVar("T")
RETRY_S, LATE_S = 30.0, 5.0
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


class Halfway:
    """Meaning of which a part may be down: the model that votes, or the vectors."""

    name = "semantic"
    family: Family = "semantic"

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.asked = 0

    def candidates(self, query: Query) -> list[Candidate]:
        return self._unless_down("model", [])

    def is_at_hand(self, query: Query) -> bool:
        return False

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        self.asked += 1
        return self._unless_down("vectors", {})

    def fetch_ahead(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector] | None:
        return self.fetch(chunk_ids)

    def remembered(self, text: str) -> Vector | None:
        return None

    def forget(self) -> None: ...

    def known_words(self, text: str) -> float:
        return 1.0

    def is_word(self, word: str) -> bool:
        return True

    def compare(self, text: str, stored: Mapping[ChunkId, Vector], query: Vector | None = None) -> Fetched:
        return Fetched(query or b"", stored)

    def _unless_down(self, part: str, found: T) -> T:
        if part in self.down:
            raise DOWN
        return found


QUERY = understood(library(), "login")


def test_vectors_that_are_fetched_ahead_do_not_speak_for_a_model_that_is_down(breaker: Breaker):
    inner = Halfway()
    guarded = Guarded(inner, breaker)
    assert guarded.fetch_ahead([1]) == {}
    inner.down = {"model"}
    for _ in range(FAILURES):
        with pytest.raises(BackendDown):
            guarded.candidates(QUERY)
        assert guarded.fetch_ahead([1]) is None
    with pytest.raises(Unavailable, match="3 times in a row"):
        guarded.candidates(QUERY)
    assert inner.asked == 1


def test_vectors_that_cannot_be_fetched_ahead_count_when_they_are_needed(breaker: Breaker):
    inner = Halfway()
    guarded = Guarded(inner, breaker)
    inner.down = {"vectors"}
    assert [guarded.fetch_ahead([1]) for _ in range(FAILURES)] == [None] * FAILURES
    for _ in range(FAILURES):
        with pytest.raises(BackendDown):
            guarded.fetch([1])
    with pytest.raises(Unavailable):
        guarded.candidates(QUERY)


def test_nothing_is_fetched_ahead_while_somebody_waits_for_an_answer_for_long(breaker: Breaker, clock: Clock):
    inner = Halfway()
    guarded = Guarded(inner, breaker)

    def ask_meanwhile() -> None:
        assert guarded.fetch_ahead([1]) == {}
        clock.now += PROMPT_S
        assert guarded.fetch_ahead([1]) is None

    breaker.call(ask_meanwhile)
    assert guarded.fetch_ahead([1]) == {}
