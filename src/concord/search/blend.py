"""What is each leg worth here? The default fusion: z-scores of both legs, weighted query by query."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from concord.text.tokens import K1, idfs
from concord.types import Candidate, ChunkId, QueryType

ALL_WORDS = "fts_exact"  # the strategy whose chunks hold every word and phrase of the query
COMMON = 0.3  # logarithmic: of 10,000 chunks 630 hold such a word, as link texts' words are
SMOOTHING = 20  # texts added to a store, which matter in a small one and not at all in a large one

# The numbers of the blend: `python -m benchmarks fusion` shows which each development set would choose.
FLAT = 0.85  # semantic weight where the lexical leg cannot tell its first from its tenth
MARGIN = 0.3  # taken off it where the first lexical candidate stands out
CODE = 0.9  # semantic weight among source code
RARE = 0.7  # taken off it for rare words
LEAD = 0.1  # added for each standard deviation by which the first semantic candidate stands out
# How deep means and spreads look: a strategy proposes at least one more. All 40 order no set better.
POOL = 39
FEW = 20  # candidates, below which they cannot tell what stands out
LEAST_SEMANTIC = 0.1  # as where the query quotes
# How far the nearest chunk is ahead of the tenth, in standard deviations: as usual, and the most that counts.
# Where people chat it is 0.9 to 1.4, where abstracts are searched 1.8 to 2.
USUAL_LEAD, MOST_LEAD = 1.6, 1.5
MOST_SCATTERED = 0.3  # rareness that counts where no chunk holds all words; more costs questions about names
# Share of its words that a model has whole, below which a query is in another language than the model's:
# German questions are so in 88 of 100 cases, English ones in 0 to 6 on nine collections of prose.
MOSTLY_KNOWN = 0.42
UNREAD_WEIGHT = 0.7  # what is left of the semantic weight there
VERBATIM_GAIN = 3.0  # standard deviations: hardly any other chunk can be further ahead
# For a chunk that defines what the query names: it comes first, and words and meaning order equals. With 6
# one option in ten was not first.
NAME_GAIN = 12.0


class Context(Struct, frozen=True):
    """What a fusion may know besides the candidates."""

    type: QueryType = "exploratory"
    k: float = 60.0  # of reciprocal rank fusion
    max_bm25: float | None = None  # the most the query could score
    code_share: float = 0.0  # of the candidates that are source code
    model_reads: float = 1.0  # how well the embedding model reads the query's script, from 0 to 1
    known_words: float = 1.0  # share of the query's words that are single tokens of the model
    rareness: float = 0.0  # of the query's words, from 0 to 1
    usual: tuple[float, float] | None = None  # mean and spread of the cosines that a usual search finds
    is_verbatim: bool = False  # the query is a quotation or one identifier: a chunk with all of it is wanted


class Contribution(Struct, frozen=True, gc=False):
    """What each leg adds to a candidate's score, which is (lexical + semantic) × factor + gain."""

    lexical: float
    semantic: float
    factor: float = 1.0
    gain: float = 0.0

    @property
    def score(self) -> float:
        """The fused score."""
        return (self.lexical + self.semantic) * self.factor + self.gain


Contributions = dict[ChunkId, Contribution]


def blend(candidates: Sequence[Candidate], context: Context) -> Contributions:
    """Return what each leg adds to each candidate in the default order of `auto`."""
    pool = pool_of(candidates)
    weight = semantic_weight(candidates, context)
    words = _z_scores({row.chunk_id: row.bm25 or 0.0 for row in candidates}, pool)
    near = {
        row.chunk_id: row.cosine if row.feedback_cosine is None else row.feedback_cosine for row in candidates
    }
    meaning = _z_scores({chunk_id: near for chunk_id, near in near.items() if near is not None}, pool)
    given = {}
    for row in candidates:
        verbatim = VERBATIM_GAIN if context.is_verbatim and ALL_WORDS in row.ranks else 0.0
        gain = verbatim + NAME_GAIN * row.name_score
        lexical, semantic = words[row.chunk_id], meaning.get(row.chunk_id)
        if semantic is None:  # without a vector it is not far in meaning: its words alone count
            given[row.chunk_id] = Contribution(lexical, 0.0, gain=gain)
        else:
            given[row.chunk_id] = Contribution((1 - weight) * lexical, weight * semantic, gain=gain)
    return given


def semantic_weight(candidates: Sequence[Candidate], context: Context) -> float:
    """Return the semantic weight of a blend.

    - A leg whose first chunk is hardly better than its tenth cannot tell an answer from a mention. The more
      the first stands out, the more the leg counts.
    - Rare words, such as a person's name, mean nothing to a model: with them, words count for more.
    - Among source code the words of a question are noise, unless a chunk holds all of them, or the query is a
      name or a quotation that was found.
    - A model that cannot read the query's script does not count; one that reads its letters but not its
      language counts for less.
    - While documents are being embedded, meaning counts by the share of lexical candidates that have vectors.
      With 2 to 25 in 100 documents embedded, nDCG@10 of datatalks-faq was 0.77 to 0.86 without that (0.94 by
      words alone), and is 0.94.
    """
    weight = FLAT - MARGIN * _margin(candidates) + LEAD * _lead(candidates)
    is_held = any(ALL_WORDS in row.ranks for row in candidates)
    if context.is_verbatim and is_held:
        weight = min(weight, WEIGHTS[context.type].semantic)
    else:
        weight += (CODE - weight) * context.code_share
        most = 1.0 if is_held else MOST_SCATTERED * (1 - context.code_share)
        weight = max(LEAST_SEMANTIC, weight - RARE * min(context.rareness, most))
        if context.known_words < MOSTLY_KNOWN:
            weight *= UNREAD_WEIGHT
    weight *= context.model_reads
    lexical = [row for row in candidates if (row.lexical_rank or math.inf) <= POOL]
    if not lexical or all(row.cosine is None for row in candidates):
        return weight
    return weight * (sum(row.cosine is not None for row in lexical) / len(lexical))


class Weights(Struct, frozen=True):
    """How much each leg counts."""

    semantic: float
    lexical: float


# Meaning matters more the less exactly the query says what the text must say (seed 003).
WEIGHTS: Mapping[QueryType, Weights] = {
    "exact_quote": Weights(semantic=0.1, lexical=0.9),
    "entity": Weights(semantic=0.4, lexical=0.6),
    "conceptual": Weights(semantic=0.8, lexical=0.2),
    "factual": Weights(semantic=0.5, lexical=0.5),
    "exploratory": Weights(semantic=0.7, lexical=0.3),
}


def z_of(row: Candidate, given: Contribution, pool: Collection[ChunkId], context: Context) -> float:
    """Return how far a candidate stands above the others, as evidence: its blended score without gains.

    A z-score needs others to compare with. Where there are few, it is pulled to the cosines of a usual
    search, because a few texts do not tell how rare a word is.
    """
    own = given.lexical + given.semantic
    if len(pool) >= FEW or context.usual is None or row.cosine is None:
        return own
    mean, spread = context.usual
    share = len(pool) / FEW
    return share * own + (1 - share) * (row.cosine - mean) / spread


def pool_of(candidates: Sequence[Candidate]) -> set[ChunkId]:
    """Return the candidates that z-scores are measured on: the same, however many results are asked for."""
    first = {
        row.chunk_id
        for row in candidates
        if (row.lexical_rank or math.inf) <= POOL or (row.semantic_rank or math.inf) <= POOL
    }
    return first or {row.chunk_id for row in candidates}


def _z_scores(scores: Mapping[ChunkId, float], pool: Iterable[ChunkId]) -> dict[ChunkId, float]:
    mean, spread = moments([scores[chunk_id] for chunk_id in pool if chunk_id in scores])
    return {chunk_id: (score - mean) / spread for chunk_id, score in scores.items()}


def moments(sample: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation; 1 for the latter if all are equal, so that z-scores stay equal."""
    if not sample:
        return 0.0, 1.0
    mean = math.fsum(sample) / len(sample)
    deviation = math.sqrt(math.fsum([(score - mean) ** 2 for score in sample]) / len(sample))
    return mean, deviation if deviation > 1e-9 * max(1.0, abs(mean)) else 1.0


def _lead(candidates: Sequence[Candidate]) -> float:
    """Return by how much the nearest chunk is further ahead of the tenth than usual; 0 without a tenth."""
    cosines = {row.chunk_id: row.cosine for row in candidates if row.cosine is not None}
    falling = sorted(cosines.values(), reverse=True)
    if len(falling) < 10:
        return 0.0
    _, spread = moments([cosines[chunk_id] for chunk_id in pool_of(candidates) if chunk_id in cosines])
    return max(-MOST_LEAD, min(MOST_LEAD, (falling[0] - falling[9]) / spread - USUAL_LEAD))


def _margin(candidates: Sequence[Candidate]) -> float:
    """Return how far the first by words is above the tenth, as a share of the first; 1 without a tenth."""
    falling = sorted((row.bm25 or 0.0 for row in candidates if row.lexical_rank), reverse=True)
    if not falling or falling[0] <= 0:
        return 0.0
    return 1 - (falling[9] if len(falling) >= 10 else 0.0) / falling[0]


def smoothed_idfs(chunks: int, frequencies: Mapping[str, int]) -> dict[str, float]:
    """Return what each word of a query is worth as evidence: its idf, as if some more texts lacked it.

    Otherwise, in a store of few texts, a word would be worth nothing if all hold it, and all if none does.
    """
    return idfs(chunks + SMOOTHING, frequencies)


def max_bm25(idfs: Iterable[float]) -> float:
    """Return the most that BM25 could score for terms of these idfs: each saturated."""
    return math.fsum(weight * (K1 + 1) for weight in idfs)


def rareness(chunks: int, frequencies: Mapping[str, int]) -> float:
    """Return how rare the words of a query are on average: 0 if many chunks hold each, 1 if one does."""
    if chunks < 2 or not frequencies:
        return 0.0
    total = math.fsum(math.log(chunks / max(1, holding)) for holding in frequencies.values())
    return max(0.0, total / len(frequencies) / math.log(chunks) - COMMON) / (1 - COMMON)
