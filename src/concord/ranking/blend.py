"""The default fusion: z-scores of both families, weighted by how clearly each tells hits from the rest."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct
from msgspec.structs import replace

from concord.ranking.ballots import Ballots, first_of, with_all_words, without_copies
from concord.ranking.context import Context
from concord.ranking.plan import WEIGHTS
from concord.ranking.share import Share, Shares, moments, ranked_by
from concord.types import ChunkId, Ranked

# How deep means and spreads look: a strategy proposes at least one more. All 40 order no set better.
POOL = 39
FEW = 20  # candidates, below which they cannot tell what stands out
LEAST_SEMANTIC = 0.1  # as where the query quotes
# How far the nearest chunk is ahead of the tenth, in standard deviations: as usual, and the most that counts.
# Where people chat (who said what, in passing) it is 0.9 to 1.4, where abstracts are searched 1.8 to 2.
USUAL_LEAD, MOST_LEAD = 1.6, 1.5
MOST_SCATTERED = 0.3  # rareness that counts where no chunk holds all words; more costs questions about names
# Share of its words that a model has whole, below which a query is in another language than the model's:
# German questions are so in 88 of 100 cases, English ones in 0 to 6 on nine collections of prose.
MOSTLY_KNOWN = 0.42
UNREAD_SHARE = 0.7  # what is left of the semantic share there
LITERAL_GAIN = 3.0  # standard deviations: hardly any other chunk can be further ahead


class Basis(Struct, frozen=True):
    """The part of a blend that does not depend on cosines: it is computed once, with feedback or without."""

    pool: AbstractSet[ChunkId]  # candidates whose mean and spread the z-scores use
    weight: float  # the semantic share
    words: Mapping[ChunkId, float]  # z-scores of BM25


def blend(ballots: Ballots, context: Context, basis: Basis | None = None) -> list[Ranked]:
    """Return the chunks in the default order of `auto`; `basis` is that of these ballots, if known."""
    return ranked_by(ballots, blend_shares(ballots, context, basis))


def blend_basis(ballots: Ballots, context: Context) -> Basis:
    """Return the basis of all blends of these ballots."""
    pool = _pool(ballots)
    # A chunk without any of the words scores 0.
    words = {chunk_id: ballots.bm25.get(chunk_id, 0.0) for chunk_id in ballots.votes}
    return Basis(pool, blend_weight(ballots, context, pool), _above_pool(words, pool))


def blend_weight(ballots: Ballots, context: Context, pool: AbstractSet[ChunkId] | None = None) -> float:
    """Return the semantic share of a blend; `pool` is that of these ballots, if known.

    - A ballot whose first chunk is hardly better than its tenth cannot tell an answer from a mention. The
      more the first stands out, the more the ballot counts.
    - Rare words, such as a person's name, mean nothing to a model: with them, words count for more.
    - Among source code the words of a question are noise, unless a chunk holds all of them, or the query is a
      name or a quotation that was found.
    - A model that cannot read the query's script does not count; one that reads its letters but not its
      language counts for less.
    - While documents are being embedded, meaning counts by the share of lexical candidates that have
      vectors. With 2 to 25 in 100 documents embedded, nDCG@10 of datatalks-faq was 0.77 to 0.86 without that
      (0.94 by words alone), and is 0.94.
    """
    margin = _margin([score for chunk_id, score in ballots.bm25.items() if chunk_id in ballots.lexical])
    numbers = context.blend
    weight = numbers.flat - numbers.margin * margin + numbers.lead * _lead(ballots, pool or _pool(ballots))
    held = with_all_words(ballots)
    if context.is_literal and held:
        weight = min(weight, WEIGHTS[context.kind].semantic)
    else:
        weight += (numbers.code - weight) * context.code_share
        most = 1.0 if held else MOST_SCATTERED * (1 - context.code_share)
        weight = max(LEAST_SEMANTIC, weight - numbers.rare * min(context.rareness, most))
        if context.known_words < MOSTLY_KNOWN:
            weight *= UNREAD_SHARE
    return weight * context.model_reads * _compared_share(ballots)


def blend_shares(ballots: Ballots, context: Context, basis: Basis | None = None) -> Shares:
    """Return what each ballot adds to each chunk."""
    basis = basis or blend_basis(ballots, context)
    weight, words = basis.weight, basis.words
    # That a chunk has no vector does not make it far in meaning: its words alone count.
    meaning = _above_pool(ballots.feedback or ballots.cosine, basis.pool)
    found = {
        chunk_id: Share((1 - weight) * words[chunk_id], weight * meaning[chunk_id])
        if chunk_id in meaning
        else Share(words[chunk_id], 0.0)
        for chunk_id in ballots.votes
    }
    if not context.is_literal:
        return found
    return found | {
        chunk_id: replace(found[chunk_id], lexical=found[chunk_id].lexical + LITERAL_GAIN)
        for chunk_id in with_all_words(ballots)
    }


def standings(blended: Iterable[Ranked], ballots: Ballots, context: Context) -> dict[ChunkId, float]:
    """Return how far candidates stand above the others, highest first: blended scores with corrections.

    - A z-score needs other candidates to compare with. Those under a narrow filter are compared with what the
      query finds without the filter; those of a small store with what a usual search finds, by cosine alone,
      because a few texts do not tell how rare a word is.
    - Copies of the first hit, such as other versions of a page, count as one. Otherwise each further copy
      would make all of them stand out less.
    - The more chunks hold a quotation, the less likely each is the one that is meant. In the order all of
      them gain the same; as evidence they share that gain.
    """
    found = {one.chunk_id: one.score for one in blended}
    if ballots.copies:
        found = _counted_once(found, blend(without_copies(ballots), context), ballots.copies)
    if context.unfiltered:
        found |= {
            one.chunk_id: one.score for one in blend(context.unfiltered, context) if one.chunk_id in found
        }
    elif context.usual and len(pool := _pool(ballots)) < FEW:
        mean, spread = context.usual
        own = len(pool) / FEW
        for chunk_id, cosine in ballots.cosine.items():
            found[chunk_id] = own * found[chunk_id] + (1 - own) * (cosine - mean) / spread
    if context.is_literal:
        holders = with_all_words(ballots)
        for chunk_id in holders:
            found[chunk_id] -= min(LITERAL_GAIN, math.log(len(holders)))
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def _counted_once(
    found: Mapping[ChunkId, float], alone: Iterable[Ranked], copies: Collection[ChunkId]
) -> dict[ChunkId, float]:
    """Return how high chunks stand if copies count as one; each copy stays as far behind the first."""
    known = {one.chunk_id: one.score for one in alone}
    ahead = max(known.values(), default=0.0) - max(found.values(), default=0.0)
    return known | {chunk_id: found[chunk_id] + ahead for chunk_id in copies if chunk_id in found}


def fall(first: float, tenth: float) -> float:
    """Return how much of the first score is lost by the tenth place."""
    return 1 - tenth / first if first > 0 else 0.0


def are_few(ballots: Ballots) -> bool:
    """Whether there are too few candidates for one to stand out among them."""
    return len(_pool(ballots)) < FEW


def _pool(ballots: Ballots) -> set[ChunkId]:
    """Return the candidates that z-scores are measured on: the same, however many results are asked for."""
    return first_of(ballots.lexical, POOL) | first_of(ballots.semantic, POOL) or set(ballots.votes)


def _above_pool(scores: Mapping[ChunkId, float], pool: Iterable[ChunkId]) -> dict[ChunkId, float]:
    """Return z-scores measured on the pool."""
    mean, spread = moments([scores[chunk_id] for chunk_id in pool if chunk_id in scores])
    return {chunk_id: (score - mean) / spread for chunk_id, score in scores.items()}


def _compared_share(ballots: Ballots) -> float:
    """Return the share of lexical candidates whose cosine is known; 1 if only one family has voted."""
    found = first_of(ballots.lexical, POOL)
    return len(found & ballots.cosine.keys()) / len(found) if found and ballots.cosine else 1.0


def _lead(ballots: Ballots, pool: AbstractSet[ChunkId]) -> float:
    """Return by how much the nearest chunk is further ahead of the tenth than usual; 0 without a tenth."""
    falling = sorted(ballots.cosine.values(), reverse=True)
    if len(falling) < 10:
        return 0.0
    _, spread = moments([ballots.cosine[one] for one in pool if one in ballots.cosine])
    return max(-MOST_LEAD, min(MOST_LEAD, (falling[0] - falling[9]) / spread - USUAL_LEAD))


def _margin(scores: Iterable[float]) -> float:
    """Return how far the first stands above the tenth, as a share of the first; 1 where there is no tenth."""
    falling = sorted(scores, reverse=True)
    return fall(falling[0], falling[9] if len(falling) >= 10 else 0.0) if falling else 0.0
