"""Does a query ask a question? Judged by how it opens, in the languages of the lexicon."""

from __future__ import annotations

import re
from collections.abc import Sequence

from concord.ranking.lexicon import (
    AUXILIARIES,
    QUESTION_LEADS,
    QUESTION_WORDS,
    SHARED_QUESTION_WORDS,
    SUBJECTS,
    UNSPACED_QUESTIONS,
)
from concord.ranking.words import Word, plain
from concord.text.unspaced import has_unspaced

_QUESTION_MARKS = ("?", "？", "؟")
_AFTER_A_MARK = " \t\n\r\v\f" + "\"'”’»)"
# How far a companion word or a small letter is looked for: a sentence, not a pasted page.
_SENTENCE_WORDS = 24


def asks(text: str, words: Sequence[Word]) -> bool:
    """Whether the query opens with a question word, or asks in another way that leaves no doubt."""
    if not words:
        return False
    return (
        _opens_with_question_word(words)
        or _is_yes_no(words)
        or _asks_without_spaces(text)
        or (text.rstrip(_AFTER_A_MARK).endswith(_QUESTION_MARKS) and _could_ask(text, words))
    )


def _opens_with_question_word(words: Sequence[Word]) -> bool:
    first = plain(words[0].text)
    if first in QUESTION_WORDS:
        return not _is_health_organization(words)
    if first in SHARED_QUESTION_WORDS:
        companions = SHARED_QUESTION_WORDS[first]
        return any(plain(word.text) in companions for word in words[1:_SENTENCE_WORDS])
    return first in QUESTION_LEADS and len(words) > 1 and plain(words[1].text) in QUESTION_WORDS


def _asks_without_spaces(text: str) -> bool:
    return has_unspaced(text) and re.search(UNSPACED_QUESTIONS, text) is not None


def _is_health_organization(words: Sequence[Word]) -> bool:
    # WHO in capitals is a name where the rest of the query is not in capitals too.
    return words[0].text == "WHO" and any(not word.text.isupper() for word in words[1:_SENTENCE_WORDS])


def _is_yes_no(words: Sequence[Word]) -> bool:
    # Without a subject an auxiliary is too often a noun or a name: can openers, Will Smith.
    return _is_auxiliary(words[0]) and len(words) > 1 and words[1].text.lower() in SUBJECTS


def _could_ask(text: str, words: Sequence[Word]) -> bool:
    """Whether what ends in a question mark is a sentence: "revenue 2024?" is not."""
    if _is_auxiliary(words[0]) or has_unspaced(text):
        return True
    return any(plain(word.text) in QUESTION_WORDS for word in words[-_SENTENCE_WORDS:])


def _is_auxiliary(word: Word) -> bool:
    return word.text.lower().replace("’", "'") in AUXILIARIES
