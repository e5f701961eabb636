"""What may a fusion know of a search, and what does it give a chunk?

The fused score is (lexical + semantic) × factor for every fusion, so any of them can be explained alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from concord.ranking.ballots import Ballots
from concord.ranking.plan import EQUAL, Weights
from concord.types import ChunkId, QueryKind, Ranked

RRF_K = 60  # Cormack, Clarke and Büttcher 2009
SEMANTIC_WEIGHT = (
    0.6  # of z-scores: the best fixed weight over the development sets, 0.6 · dense + 0.4 · BM25
)


class Recipe(Struct, frozen=True):
    """The tuned numbers of a blend; `python -m benchmarks fusion` chooses them with each set left out."""

    flat: float = 0.75  # semantic share where the lexical ballot is flat
    margin: float = 0.2  # what a lexical first that stands out takes off it
    code: float = 0.9  # semantic share among source code
    rare: float = 0.6  # what rare words take off it, where some chunk holds all that were asked for


RECIPE = Recipe()


class Context(Struct, frozen=True):
    """What a fusion may know besides the ballots."""

    kind: QueryKind = "exploratory"
    k: float = RRF_K
    weights: Weights = EQUAL  # multipliers of the ballots in plain rrf
    max_bm25: float | None = None  # the most the query could score: rarity.ceiling
    semantic_weight: float = SEMANTIC_WEIGHT
    code_share: float = 0.0  # of the candidates that are source code
    model_reads: float = 1.0  # how well the embedding model reads the query's script, from 0 to 1
    known_words: float = 1.0  # share of the query's words that the model has whole
    rareness: float = 0.0  # of the query's words, from 0 to 1
    usual: tuple[float, float] | None = None  # mean and spread of the cosines that a usual search finds
    is_literal: bool = False  # the query is a quotation or one identifier: who has it whole is wanted
    recipe: Recipe = RECIPE


class Share(Struct, frozen=True):
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
        Ranked(chunk_id, found[chunk_id].score, votes) for chunk_id, votes in ballots.votes.items()
    )


def moments(sample: list[float]) -> tuple[float, float]:
    """Return mean and standard deviation; 1 where all are equal but for rounding, so that they stay equal."""
    if not sample:
        return 0.0, 1.0
    mean = math.fsum(sample) / len(sample)
    deviation = math.sqrt(math.fsum([(score - mean) ** 2 for score in sample]) / len(sample))
    return mean, deviation if deviation > 1e-9 * max(1.0, abs(mean)) else 1.0
