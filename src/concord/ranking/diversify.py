"""In what order do the ranked chunks say most? Maximal marginal relevance (Carbonell and Goldstein 1998)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from concord.ranking.duplicates import Likeness
from concord.ranking.lift import stretched
from concord.types import Ranked

# Less word overlap than this is sharing a subject: nDCG@10 is 0.4307 where it counts, 0.4353 where not.
REPETITION = 0.5
STRETCH = 20  # how deep relevance is stretched, so that asking for more results moves none


def mmr(ranked: Sequence[Ranked], likeness: Likeness, limit: int, trade: float) -> list[Ranked]:
    """Pick greedily by λ·relevance − (1 − λ)·similarity to what is picked; a moved chunk says from where.

    Relevance is the score stretched to [0, 1] within the list: a fused score near 0.016 would leave λ without
    meaning, and similarity would decide alone.
    """
    scores = [one.score for one in ranked]
    relevance = stretched(scores, min(scores[:STRETCH], default=0.0))
    ids = [one.chunk_id for one in ranked]
    nearest = [0.0] * len(ranked)
    compared = [0] * len(ranked)  # with so many of those that are picked
    remaining = sorted(range(len(ranked)), key=lambda at: -relevance[at])
    picked: list[int] = []
    while remaining and len(picked) < limit:
        best, most = remaining[0], -math.inf
        for at in remaining:
            if trade * relevance[at] <= most:
                break  # even if it repeated nothing it would not be better, nor would any after it
            for other in picked[compared[at] :]:
                shared = likeness.similarity(ids[other], ids[at])
                nearest[at] = max(nearest[at], shared if shared >= REPETITION else 0.0)
            compared[at] = len(picked)
            score = trade * relevance[at] - (1 - trade) * nearest[at]
            if score > most:  # of equals the first, which was ranked higher
                best, most = at, score
        remaining.remove(best)
        picked.append(best)
    return [_moved(ranked[was], was + 1, now) for now, was in enumerate(picked, start=1)]


def _moved(one: Ranked, was: int, now: int) -> Ranked:
    return one if was == now else replace(one, moved_from=was)
