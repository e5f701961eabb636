"""What kind of query is this? Five kinds, of which the first that fits wins.

Corners that the rules leave open, and what a user expects there:
- French « » and East Asian 「」 quote like “ ”. An inch sign (5" disk) opens no quote: a word touches it.
- A question about a sure name (`getUserName`, Oak Ridge) is of kind entity; about a merely odd word
  (COVID-19, mp3, 1000 threads) it stays a question.
- A year, a date and a number with its unit are values (factual); other numbers of three digits or more are
  names; and a query that is one number looks for that number.
- A capitalised headline of four words, and capitals throughout, are a way of writing, not names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from concord.ranking.entities import entities
from concord.ranking.lexicon import CONCEPT_WORDS, METRIC_WORDS, UNSPACED_CONCEPTS, UNSPACED_METRICS
from concord.ranking.questions import asks
from concord.ranking.word_shapes import is_measure, is_year
from concord.ranking.words import READ_CHARS, Word, plain, words
from concord.text.pattern import pattern
from concord.text.unspaced import has_unspaced
from concord.types import QueryKind

_OPENING = frozenset('"＂“„‟”«»「『')
# What stands between a pair may not hold the opening sign: a run of unclosed ones is scanned once, not each.
_QUOTED = pattern(
    r"(?<!\w)[\"＂][^\"＂\w]*\w[^\"＂]*[\"＂](?!\w)"
    r"|“[^“”„\w]*\w[^“”„]*”|[„‟][^“”„‟\w]*\w[^“”„‟]*[“”]|(?<!\w)”[^“”\w]*\w[^“”]*”(?!\w)"
    r"|«[^«»\w]*\w[^«»]*»|»[^«»\w]*\w[^«»]*«"
    r"|「[^「」\w]*\w[^「」]*」|『[^『』\w]*\w[^『』]*』"
)


def classify(text: str) -> QueryKind:
    """Return the kind of a query."""
    read = text[:READ_CHARS]
    if not _OPENING.isdisjoint(read) and _QUOTED.search(read):
        return "exact_quote"
    if entities(read):
        return "entity"
    query = words(read)
    if asks(read, query) or _compares_or_explains(read, query):
        return "conceptual"
    if _wants_a_value(read, query):
        return "factual"
    return "exploratory"


def _compares_or_explains(text: str, query: Sequence[Word]) -> bool:
    return any(plain(word.text) in CONCEPT_WORDS for word in query) or _holds(UNSPACED_CONCEPTS, text)


def _holds(pattern: str, text: str) -> bool:
    return has_unspaced(text) and re.search(pattern, text) is not None


def _wants_a_value(text: str, query: Sequence[Word]) -> bool:
    following = [word.text for word in query[1:]] + [""]
    return (
        any(plain(word.text) in METRIC_WORDS or is_year(word.text) for word in query)
        or any(is_measure(word.text, after) for word, after in zip(query, following, strict=False))
        or _holds(UNSPACED_METRICS, text)
    )
