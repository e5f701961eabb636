"""How near are the candidates of one search? Their vectors are fetched while strategies are still voting.

Some vectors come with the votes, some are asked for early, the rest when all have voted. If any of this fails
or is late, the answer says so, and the search goes on without cosines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from concord.answering.deadline import Deadline
from concord.errors import Unavailable, reason_of
from concord.types import Candidate, ChunkId, Degraded, Vector
from concord.worker_threads import Task

if TYPE_CHECKING:
    from concord.protocols import Comparison, Similarity

T = TypeVar("T")
_Vectors = Mapping[ChunkId, Vector]


class Cosines:
    """The cosines of one search. If one fetch fails or is late, the answer says so and none follows."""

    def __init__(self, similarity: Similarity, deadline: Deadline) -> None:
        self._similarity = similarity
        self._deadline = deadline
        self._foreseen: frozenset[ChunkId] = frozenset()
        self._ahead: Task[_Vectors | None] | None = None
        self.degraded: tuple[Degraded, ...] = ()

    def foresee(self, chunk_ids: Sequence[ChunkId]) -> None:
        """Start fetching vectors that will be needed if the semantic strategy finds anything."""
        if chunk_ids:
            self._foreseen = frozenset(chunk_ids)
            self._ahead = Task(partial(self._similarity.fetch_ahead, sorted(self._foreseen)))

    def compare(self, text: str, voted: Sequence[Candidate]) -> Comparison:
        """Compare candidates with the query: missing vectors are asked for now, and awaited when needed."""
        sent = {one.chunk_id: one.vector for one in voted if one.vector}
        wanted = {one.chunk_id for one in voted} - sent.keys()
        missing = sorted(wanted - self._foreseen)
        rest = Task(partial(self._similarity.fetch, missing)) if missing and not self.degraded else None
        known = self._similarity.remembered(text)  # now, just after it was searched with
        return _UnderWay(partial(self._settled, text, known, sent, wanted & self._foreseen, rest))

    def _settled(
        self,
        text: str,
        query: Vector | None,
        sent: _Vectors,
        foreseen: set[ChunkId],
        rest: Task[_Vectors] | None,
    ) -> Comparison | None:
        """Return a comparison with all that was fetched, if that comes in time."""
        if self.degraded:
            return None
        try:
            fetched = self._in_time(rest) if rest else {}
            stored = {**sent, **self._fetched_ahead(foreseen), **fetched}
            if query is not None:
                return self._similarity.compare(text, stored, query)
            return self._in_time(Task(partial(self._similarity.compare, text, stored)))
        except Exception as fault:  # whatever an engine raises is reported in the answer
            self.degraded = (Degraded("semantic", reason_of(fault)),)
            return None

    def _fetched_ahead(self, foreseen: set[ChunkId]) -> _Vectors:
        """Return the vectors that were asked for early; if that failed, they are asked for again."""
        ahead = self._ahead.result(self._deadline.left_ms()) if self._ahead and foreseen else {}
        if ahead is None:
            if not self._deadline.left_ms():
                raise _late()
            ahead = self._in_time(Task(partial(self._similarity.fetch, sorted(foreseen))))
        return ahead

    def _in_time(self, task: Task[T]) -> T:
        found = task.result(self._deadline.left_ms())
        if found is None:
            raise _late()
        return found


def _late() -> Unavailable:
    return Unavailable("no answer before the deadline", hint="ask again with a longer --deadline-ms")


class _UnderWay:
    """A comparison whose vectors may still be on their way: whoever needs it waits for them."""

    def __init__(self, settle: Callable[[], Comparison | None]) -> None:
        self._settle = settle
        self._found: Comparison | None = None

    def cosines(self) -> Mapping[ChunkId, float]:
        found = self._waited_for()
        return found.cosines() if found else {}

    def feedback_cosines(self, like: Mapping[ChunkId, float], strength: float) -> Mapping[ChunkId, float]:
        found = self._waited_for()
        return found.feedback_cosines(like, strength) if found else {}

    def likeness(self, chunk_id: ChunkId) -> Mapping[ChunkId, float]:
        found = self._waited_for()
        return found.likeness(chunk_id) if found else {}

    def _waited_for(self) -> Comparison | None:
        self._found = self._found or self._settle()
        return self._found
