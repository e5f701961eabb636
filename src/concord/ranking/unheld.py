"""What of all that a query names does no text hold, and what does that leave of the chances of an answer?

Of other words that no text has only a note is made (`answering/remarks.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from concord.ranking import rarity
from concord.ranking.named.kinds import Found, Kind, kinds_in
from concord.text.stopwords import is_stop_word
from concord.text.terms import loose_words
from concord.types import Query

# Shares of a query, by rarity: up to the first, what nothing holds is one word of many; from the second on it
# is what was asked for. Between them a word more or less in the query must not decide.
LITTLE, MOSTLY = 0.2, 0.4

# Factors on the chances of an answer.
NOTHING_ASKED = 0.1  # where a query is stop words alone: no text is its answer
MISQUOTED = 0.3  # where nothing holds what was quoted; not measured
SLIP = 0.05  # at least, where nothing holds a code: it may be a slip for one that is like it; not measured


def unheld(found: Found) -> tuple[str, ...]:
    """Return what a query names and nothing holds: codes, days, versions, options, quotations …"""
    kinds = kinds_in(found.query)
    named = dict.fromkeys(one for kind in kinds for one in kind.named(found))
    return tuple(one for one in named if not _is_held(one, found, kinds))


def _is_held(named: str, found: Found, kinds: Sequence[Kind]) -> bool:
    """Whether something holds what was named, as the first kind that it is of tells, or else by its words."""
    verdicts = (kind.is_held(named, found) for kind in kinds)
    told = next((verdict for verdict in verdicts if verdict is not None), None)
    return found.has_words(named) if told is None else told


def discount(query: Query, missing: Sequence[str], chunks: int) -> float:
    """Return what chances are worth: all, but of a query that asks for nothing, or for what nothing holds."""
    if query.words and not (query.phrases or query.entities) and all(map(is_stop_word, query.words)):
        return NOTHING_ASKED
    held = {word: holding for word, holding in query.frequencies.items() if holding}
    share = _share(missing, rarity.worths(chunks, held), rarity.worth(chunks, 0))
    if share <= LITTLE:
        return 1.0
    left = 1 - share if share >= MOSTLY else 1 - MOSTLY * (share - LITTLE) / (MOSTLY - LITTLE)
    is_misquoted = share >= MOSTLY and not {*query.phrases}.isdisjoint(missing)
    return min(MISQUOTED, left) if is_misquoted else max(SLIP, left)


def _share(missing: Sequence[str], worths: Mapping[str, float], whole: float) -> float:
    """Return how much of a query, by rarity, is what nothing holds; its parts may be common, it is not.

    `worths` are of the words that something holds: whatever is put beside a code, it is asked for as much.
    """
    parts = {part for code in missing for part in loose_words(code)}
    others = math.fsum(worth for word, worth in worths.items() if word not in parts)
    own = max(whole * len(missing), math.fsum(worth for word, worth in worths.items() if word in parts))
    return own / (own + others) if own else 0.0
