"""What does each ballot add to a chunk's score, and which order do the scores make?

For every fusion the score is (lexical + semantic) × factor, so all of them are explained in the same way.
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
    """Return mean and standard deviation; 1 for the latter if all are equal, so that z-scores stay equal."""
    if not sample:
        return 0.0, 1.0
    mean = math.fsum(sample) / len(sample)
    deviation = math.sqrt(math.fsum([(score - mean) ** 2 for score in sample]) / len(sample))
    return mean, deviation if deviation > 1e-9 * max(1.0, abs(mean)) else 1.0
