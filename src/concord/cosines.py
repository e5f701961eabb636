"""How near are the candidates of one search? Their vectors are fetched while others are still voting.

Some come with the votes, some are asked for early, the rest when all have voted. Whatever fails or is late is
named in the answer, and then there are none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from concord.errors import Unavailable
from concord.poll import Begun, reason_of
from concord.types import Candidate, ChunkId, Degraded, Vector

if TYPE_CHECKING:
    from concord.protocols import Comparison, Similarity

_Fetching = Begun[Mapping[ChunkId, Vector]]


class Cosines:
    """The cosines of one search. If they fail or are late, that is named, and from then on there are none."""

    def __init__(self, similarity: Similarity, budget_ms: float) -> None:
        self._similarity = similarity
        self._ends = time.perf_counter() + budget_ms / 1000
        self._begun: list[_Fetching] = []
        self._asked: set[ChunkId] = set()
        self.degraded: tuple[Degraded, ...] = ()

    def begin(self, chunk_ids: Sequence[ChunkId]) -> None:
        """Have vectors fetched that will be needed."""
        missing = sorted(set(chunk_ids) - self._asked)
        if missing and not self.degraded:
            self._asked.update(missing)
            self._begun.append(Begun(partial(self._similarity.fetch, missing)))

    def compare(self, text: str, voted: Sequence[Candidate]) -> Comparison:
        """Return how near candidates are: what is missing is asked for now, and waited for when needed."""
        sent = {one.chunk_id: one.vector for one in voted if one.vector}
        self.begin([one.chunk_id for one in voted if one.chunk_id not in sent])
        return _UnderWay(self, text, sent)

    def settled(self, text: str, sent: Mapping[ChunkId, Vector]) -> Comparison | None:
        """Return a comparison with all that was fetched, if that comes in time."""
        if self.degraded:
            return None
        stored = dict(sent)
        try:
            for begun in self._begun:
                stored.update(self._in_time(begun))
            return self._similarity.compare(text, stored)
        except Exception as fault:  # whatever an engine raises is reported in the answer
            self.degraded = (Degraded("semantic", reason_of(fault)),)
            return None

    def _in_time(self, begun: _Fetching) -> Mapping[ChunkId, Vector]:
        fetched = begun.result(max(0.0, self._ends - time.perf_counter()) * 1000)
        if fetched is None:
            raise Unavailable("no answer before the deadline", hint="ask again with a longer --deadline-ms")
        return fetched


class _UnderWay:
    """A comparison of which something may still be on its way."""

    def __init__(self, cosines: Cosines, text: str, sent: Mapping[ChunkId, Vector]) -> None:
        self._cosines, self._text, self._sent = cosines, text, sent
        self._found: Comparison | None = None

    def cosines(self, like: Sequence[ChunkId] = ()) -> Mapping[ChunkId, float]:
        self._found = self._found or self._cosines.settled(self._text, self._sent)
        return self._found.cosines(like) if self._found else {}
