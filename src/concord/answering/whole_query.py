"""How much of a query does a passage hold, word for word, and which passages hold all of it?"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from msgspec import Struct

from concord.ranking import proximity, rarity
from concord.ranking.plan import LEXICAL_STRATEGIES
from concord.text.contains import contains, may_contain
from concord.text.pattern import pattern
from concord.text.stopwords import significant
from concord.types import Query, Survivor

LEAST_QUESTION_WORDS = 3  # two words, one of them a stop word, stand in a text in their order by chance
# "is not set" stands in much code, and texts of links have two or three words: if three are enough,
# one in a hundred of k8s-anchor's were answered with the page that has the link.
LEAST_MESSAGE_WORDS = 4
MOST_WORDS = 64  # of a query that are looked for in a text: more could hardly tell two places apart
_WORD = pattern(r"[^\W_]+")
_MAY_BE_MESSAGE = pattern(r"[\d'‘\"“„`<]|:\s")


class WholeQuery(Struct, frozen=True):
    """How a passage that holds all of a query is recognised."""

    is_in: Callable[[Survivor], bool]
    found_by: Collection[str]  # strategies that find such a passage: all its words, or some of a message


def closeness_in(query: Query) -> Callable[[Survivor], float]:
    """Return what tells how close a query's words stand in a passage, from 0 to 1: all of it, in order."""
    pairs = proximity.neighbouring(query.words, rarity.idfs(query.chunks, query.frequencies))
    bare, is_question = _is_bare(query), is_sentence(query)
    rarest_first = sorted(filter(str.isascii, query.words), key=lambda word: query.frequencies.get(word, 0))

    def close(survivor: Survivor) -> float:
        text = f"{survivor.document.title}\n{survivor.chunk.text}"
        # Its words need not stand close: "node is not the leader" has three others between them.
        if is_question and may_contain(text, rarest_first) and contains(text, query.meaning):
            return 1.0
        return proximity.closeness(pairs, text, bare=bare)

    return close


def message_in(query: Query) -> Callable[[str], bool] | None:
    """Return what tells whether a text says a pasted message but for its values; None for other queries."""
    if not _MAY_BE_MESSAGE.search(query.meaning):
        return None
    from concord.ranking.messages import saying  # late: few queries are messages

    return saying(query.meaning)


def whole_query(query: Query) -> WholeQuery | None:
    """Return how to recognise a passage that holds all of a query; None where that would say little.

    A few words stand together in many texts about something else, such as links to what is asked for.
    """
    if len(query.meaning.split()) < LEAST_MESSAGE_WORDS:
        return None
    close, has_message = closeness_in(query), message_in(query)
    if has_message is None:
        return WholeQuery(lambda one: close(one) == 1, ("fts_exact",))
    return WholeQuery(lambda one: close(one) == 1 or has_message(one.chunk.text), LEXICAL_STRATEGIES)


def whole_query_at(query: Query, text: str) -> int | None:
    """Return where a text holds a whole query, word for word; None if it has other forms of its words."""
    words = _WORD.findall(query.meaning)[:MOST_WORDS]
    form = r"[\W_]+".join(map(re.escape, words))
    found = re.search(rf"(?<![^\W_]){form}(?![^\W_])", text, re.IGNORECASE)
    return found.start() if found else None


def is_sentence(query: Query, least: int = LEAST_QUESTION_WORDS) -> bool:
    """Whether a query is a whole sentence of some words: no text has all of it in its order by chance."""
    return not _is_bare(query) and len(query.meaning.split()) >= least


def _is_bare(query: Query) -> bool:
    """Whether a query has no stop words, but for what is nothing else."""
    typed = query.meaning.split()
    return len(significant(typed)) == len(typed)
