"""Which things that a query names stand in no text, and how much less likely is an answer then?

Ordinary words that no text has are only mentioned in a note (`answering/remarks.py`); `absent_names.py` tells
which of them may be names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from concord.ranking import rarity
from concord.ranking.messages import own_values
from concord.ranking.named.kinds import FoundTexts, Kind, kinds_in
from concord.text.stopwords import is_stop_word
from concord.text.terms import loose_words
from concord.types import Query

# Shares of a query, by rarity, that are missing. Up to the first it is one word of many; from the second on
# it is the very thing that was asked for. In between the discount grows, so that no single word decides.
LITTLE, MOSTLY = 0.2, 0.4
# The same of words that may be names. Of questions of seven collections that were asked with another name in
# the place of their rarest word 0.38 are refused without regard to it, 0.48 with this (`benchmarks names`).
# With 0.25 and 0.45 it would be 0.57, but fewer questions of other collections were refused, too.
LITTLE_NAMED, MOSTLY_NAMED = 0.35, 0.55

# Texts of a store whose silence about a name counts half: one document lacks many a word of a question that
# it answers.
FEW = 2

# Factors on the chances of an answer.
NOTHING_ASKED = 0.1  # if a query is stop words alone: no text is its answer
MISQUOTED = 0.3  # if no text holds what was quoted; not measured
SLIP = 0.05  # at least, if no text holds a code: it may be mistyped; not measured


def missing_things(found: FoundTexts) -> tuple[str, ...]:
    """Return the things that a query names and no text holds: codes, days, versions, options, quotations …

    The addresses and ids in a pasted message do not count.
    """
    kinds = kinds_in(found.query)
    named = dict.fromkeys(one for kind in kinds for one in kind.named(found))
    missing = tuple(one for one in named if not _is_held(one, found, kinds))
    return tuple(one for one in missing if one not in own_values(found.query.text)) if missing else ()


def _is_held(named: str, found: FoundTexts, kinds: Sequence[Kind]) -> bool:
    """Whether a text holds what was named: the first kind that recognises it decides, else its words do."""
    verdicts = (kind.is_held(named, found) for kind in kinds)
    told = next((verdict for verdict in verdicts if verdict is not None), None)
    return found.has_words(named) if told is None else told


def discount(query: Query, missing: Sequence[str], absent_names: Sequence[str], chunks: int) -> float:
    """Return a factor on all probabilities: below 1 if the query is all stop words, or things are missing.

    `absent_names` are words that may be names and that no text has: in a store of few texts that says little.
    """
    if query.words and not (query.phrases or query.entities) and all(map(is_stop_word, query.words)):
        return NOTHING_ASKED
    held = {word: holding for word, holding in query.frequencies.items() if holding}
    whole = rarity.worth(chunks, 0)
    share = _share(missing, rarity.worths(chunks, held), whole)
    is_misquoted = share >= MOSTLY and not {*query.phrases}.isdisjoint(missing)
    left = min(_left(share, LITTLE, MOSTLY), MISQUOTED if is_misquoted else 1.0)
    if not absent_names:
        return left
    share = _share(absent_names, rarity.worths(chunks, query.frequencies), whole)
    silence = chunks / (chunks + FEW)
    return min(left, 1 - silence * (1 - _left(share, LITTLE_NAMED, MOSTLY_NAMED)))


def _left(share: float, little: float, mostly: float) -> float:
    """Return how much of all chances is left where such a share of the query is missing."""
    if share <= little:
        return 1.0
    return max(SLIP, 1 - share if share >= mostly else 1 - mostly * (share - little) / (mostly - little))


def _share(missing: Sequence[str], worths: Mapping[str, float], whole: float) -> float:
    """Return the share of a query, by rarity, that is missing.

    A missing thing counts as a word that no text has, even if its parts are common words. `worths` are those
    of the words that it is compared with: beside a code, further unknown words change nothing.
    """
    parts = {part for code in missing for part in loose_words(code)}
    others = math.fsum(worth for word, worth in worths.items() if word not in parts)
    own = max(whole * len(missing), math.fsum(worth for word, worth in worths.items() if word in parts))
    return own / (own + others) if own else 0.0
