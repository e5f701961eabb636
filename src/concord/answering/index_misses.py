"""Did the vector index miss a near chunk? If so, it is asked again with its highest effort.

An index of vectors is a graph that is walked from one place. Where topics lie far apart, a walk may end in
the wrong one and bring back forty texts, none of which is among the nearest. Lexical candidates reveal that,
because their cosines are known as well: if one of them is nearer than the tenth of what the walk found, and
the walk did not find it, then the walk has missed it. An index that compares everything misses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.answering.deadline import Deadline
from concord.answering.poll import Poll, merged, poll
from concord.answering.understand import MAX_EF_SEARCH
from concord.ranking.ballots import Ballots

if TYPE_CHECKING:
    from concord.protocols import Strategy
    from concord.types import Candidate, Query

NEAREST_WANTED = 10  # a miss further down does not matter: every fifth search misses the fortieth
ROUNDING = 1e-4  # by which one vector may be nearer than the same elsewhere


def has_missed(ballots: Ballots) -> bool:
    """Whether a chunk that only words have found is near enough that the index should have found it."""
    nearest = sorted((ballots.cosine[one] for one in ballots.semantic), reverse=True)
    if len(nearest) < NEAREST_WANTED:
        return False
    near = nearest[NEAREST_WANTED - 1] + ROUNDING
    return any(cosine > near for one, cosine in ballots.cosine.items() if one not in ballots.semantic)


def search_harder(
    strategies: Sequence[Strategy], query: Query, first: Poll, deadline: Deadline
) -> Poll | None:
    """Return the poll with the votes of a second search at the highest effort; None if there is none.

    If that fails or is late, the first votes stand.
    """
    meaning = [one for one in strategies if one.family == "semantic" and one.name in first.votes]
    if not meaning or not deadline.left_ms() or (query.ef_search or 0) >= MAX_EF_SEARCH:
        return None
    second = poll(meaning, replace(query, ef_search=MAX_EF_SEARCH), deadline)
    if not second.votes:
        return None
    joined = {
        name: _joined(first.votes[name], votes, query.candidates) for name, votes in second.votes.items()
    }
    return merged(first, replace(second, votes=joined, degraded=[]))


def _joined(first: Sequence[Candidate], second: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Return the best of both, ranked anew."""
    found = {one.chunk_id: one for one in (*first, *second)}
    best = sorted(found.values(), key=lambda one: (-one.score, one.chunk_id))[:limit]
    return [replace(one, rank=rank) for rank, one in enumerate(best, 1)]
