"""What does a fusion give a chunk, and in what order do chunks then stand?

The fused score is (lexical + semantic) × factor for every fusion, so any of them can be explained alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from concord.ranking.ballots import Ballots
from concord.types import ChunkId, Ranked


class Share(Struct, frozen=True, gc=False):
    """What each ballot adds to a chunk's score."""

    lexical: float
    semantic: float
    factor: float = 1.0

    @property
    def score(self) -> float:
        """The fused score."""
        return (self.lexical + self.semantic) * self.factor


Shares = dict[ChunkId, Share]


def ordered(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Return the best first; ties go to more votes, then to the lower chunk id."""
    return sorted(ranked, key=lambda one: (-one.score, -len(one.votes), one.chunk_id))


def ranked_by(ballots: Ballots, found: Shares) -> list[Ranked]:
    """Return the chunks that were voted for in the order of their shares."""
    return ordered(
        [Ranked(chunk_id, found[chunk_id].score, votes) for chunk_id, votes in ballots.votes.items()]
    )


def moments(sample: list[float]) -> tuple[float, float]:
    """Return mean and standard deviation; 1 where all are equal but for rounding, so that they stay equal."""
    if not sample:
        return 0.0, 1.0
    mean = math.fsum(sample) / len(sample)
    deviation = math.sqrt(math.fsum([(score - mean) ** 2 for score in sample]) / len(sample))
    return mean, deviation if deviation > 1e-9 * max(1.0, abs(mean)) else 1.0
