"""When a part keeps failing, stop asking it for a while: a circuit breaker around looking for meaning.

It stands around the strategy, so that one breaker covers the embedder and the vector store alike. A few
failures in a row open it; then searches answer from words at once, and say when meaning is tried again. After
a delay one search tries, and closes it or leaves it open. An outage is logged once, when it begins.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from concord.errors import Unavailable, reason_of
from concord.types import Candidate, ChunkId, Family, Query, Vector

if TYPE_CHECKING:
    from concord.protocols import Comparison, Semantic

T = TypeVar("T")

LATE_S = 5.0  # without an answer count as a failure; more where search.deadline_ms allows more
PROMPT_S = 1.0  # within which nearly everything answers that is well
FAILURES = 3  # in a row: one may be a server that restarts, three are an outage


class Breaker:
    """Counts what fails in a row. A call that takes longer than `late_s` has failed, whatever it returns."""

    def __init__(
        self, what: str, *, retry_s: float, late_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._retry_s = retry_s
        self._late_s = late_s
        self._clock = clock
        self._lock = threading.Lock()
        self._started: dict[object, float] = {}  # calls under way
        self._failures = 0
        self._reason = ""
        self._retry_at = 0.0
        self._trial: object | None = None  # the one call that may find out whether it works again
        self._is_closed = False

    def call(self, work: Callable[[], T]) -> T:
        """Return what a piece of work comes to.

        Raises:
            Unavailable: it has failed too often of late to be tried now.
            Exception: whatever the work raises.
        """
        turn = object()
        with self._lock:
            self._admit(turn)
        try:
            value = work()
        except Exception as fault:
            with self._lock:
                self._end(turn, reason_of(fault))
            raise
        with self._lock:
            self._end(turn, None)
        return value

    def is_well(self) -> bool:
        """Whether nothing has failed of late, and nobody has been waiting for long."""
        with self._lock:
            now = self._clock()
            return not self._failures and all(now - began < PROMPT_S for began in self._started.values())

    def close(self) -> None:
        """Count and log no more: a call that ends late finds everything closed, which is no outage."""
        with self._lock:
            self._is_closed = True
            self._started.clear()

    def _admit(self, turn: object) -> None:
        if self._is_closed:
            return
        now = self._clock()
        for late in [call for call, began in self._started.items() if now - began > self._late_s]:
            self._end(late, None)
        if self._failures >= FAILURES:
            if self._trial is not None or now < self._retry_at:
                self._refuse(now)
            self._trial = turn
        self._started[turn] = now

    def _refuse(self, now: float) -> None:
        left = max(0.0, self._retry_at - now)
        when = f"in {left:.0f} s" if self._trial is None else "right now"
        raise Unavailable(
            f"{self._what} has failed {self._failures} times in a row ({self._reason});"
            f" it is tried again {when}",
            hint="until then answers come from words alone",
        )

    def _end(self, turn: object, reason: str | None) -> None:
        """Count a call as failed, as late, or as a success, which ends an outage."""
        began = self._started.pop(turn, None)
        if began is None:  # it was given up as late already, or nobody counts any more
            return
        self._trial = None if turn is self._trial else self._trial
        now = self._clock()
        if reason is None and now - began > self._late_s:
            reason = f"no answer within {self._late_s:g} s"
        if reason is None:
            self._failures = 0
            return
        self._failures += 1
        self._reason = reason
        self._retry_at = now + self._retry_s
        if self._failures == 1:
            self._log(reason)

    def _log(self, reason: str) -> None:
        import logging  # 5 ms, for those who need it

        logging.getLogger(__name__).warning(
            "%s is unavailable, answering from words alone: %s", self._what, reason
        )


class Guarded:
    """The semantic strategy behind a breaker."""

    name = "semantic"
    family: Family = "semantic"

    def __init__(self, inner: Semantic, breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    def candidates(self, query: Query) -> list[Candidate]:
        """Return the strategy's votes."""
        return self._breaker.call(lambda: self._inner.candidates(query))

    def is_at_hand(self, query: Query) -> bool:
        """Whether the strategy asks nobody."""
        return self._inner.is_at_hand(query)

    def fetch(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        """Return the vectors of chunks."""
        return self._breaker.call(lambda: self._inner.fetch(chunk_ids))

    def fetch_ahead(self, chunk_ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector] | None:
        """Return vectors that may be needed; this counts neither as a success nor as a failure.

        If it counted, one search would count twice, and a vector store that answers would hide an embedder
        that does not.
        """
        if not self._breaker.is_well():
            return None
        try:
            return self._inner.fetch_ahead(chunk_ids)
        except Exception:  # whoever needs them asks again, and that counts
            return None

    def remembered(self, text: str) -> Vector | None:
        """Return a query's vector, if it is known."""
        return self._inner.remembered(text)

    def forget(self) -> None:
        """Forget the vectors of recent queries."""
        self._inner.forget()

    def known_words(self, text: str) -> float:
        """Return the share of a query's words that the model has whole."""
        return self._inner.known_words(text)

    def is_word(self, word: str) -> bool:
        """Whether the model has a word whole."""
        return self._inner.is_word(word)

    def compare(self, text: str, stored: Mapping[ChunkId, Vector], query: Vector | None = None) -> Comparison:
        """Return how near chunks are to a query."""
        if query is not None:  # which says nothing about who would have to be asked
            return self._inner.compare(text, stored, query)
        return self._breaker.call(lambda: self._inner.compare(text, stored))

    def close(self) -> None:
        """Report no failure from now on. The index that is searched belongs to the store, which closes it."""
        self._breaker.close()
