"""What may a fusion know of a search besides its ballots?"""

from __future__ import annotations

from msgspec import Struct

from concord.ranking.ballots import Ballots
from concord.types import QueryKind

# Of z-scores: the best fixed weight over the development sets, 0.6 · dense + 0.4 · BM25.
SEMANTIC_WEIGHT = 0.6


class BlendNumbers(Struct, frozen=True):
    """The tuned numbers of a blend.

    `python -m benchmarks fusion` shows the values that each of its sets would choose. The chats and other
    collections of docs/quality.md were considered, too: they alone call for `lead`, and for `rare` below 0.8.
    """

    flat: float = 0.85  # semantic share where the lexical ballot is flat
    margin: float = 0.3  # taken off it where the first lexical candidate stands out
    code: float = 0.9  # semantic share among source code
    rare: float = 0.7  # taken off it for rare words
    lead: float = 0.1  # added for each standard deviation by which the first semantic candidate stands out


BLEND = BlendNumbers()


class Context(Struct, frozen=True):
    """What a fusion may know besides the ballots."""

    kind: QueryKind
    k: float  # of reciprocal rank fusion
    max_bm25: float | None = None  # the most the query could score: rarity.ceiling
    semantic_weight: float = SEMANTIC_WEIGHT
    code_share: float = 0.0  # of the candidates that are source code
    model_reads: float = 1.0  # how well the embedding model reads the query's script, from 0 to 1
    known_words: float = 1.0  # share of the query's words that are single tokens of the model
    rareness: float = 0.0  # of the query's words, from 0 to 1
    usual: tuple[float, float] | None = None  # mean and spread of the cosines that a usual search finds
    unfiltered: Ballots | None = None  # of the query without its narrow filter, to compare with
    is_literal: bool = False  # the query is a quotation or one identifier: a chunk with all of it is wanted
    blend: BlendNumbers = BLEND
