"""Does a text hold a word, a phrase, or one word close to another? As the index would find them.

One query is looked for in many texts, and one text is asked for many words, so both are cached in the form in
which they are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from concord.text.characters import folded
from concord.text.identifiers import symbols_in
from concord.text.spellings import other_spellings
from concord.text.stem import beginning, candidates, stem
from concord.text.terms import exclusion_match, index_terms, phrase_match, tokenize, word_match
from concord.types import AllOf, AnyOf, Match, Phrase, Without, Word

_CLOSE = 2  # words after another that still stand close to it: a stop word may come between


def contains(text: str, term: str) -> bool:
    """Whether a text holds a word, a phrase (of several words) or a prefix*, as the index would find it."""
    match = _asked_for(term)
    if match is None or text.isascii() and not _may_hold(match, _lowered(text)):
        return False
    return _holds(match, text)


def follows(text: str, first: str, second: str) -> bool:
    """Whether a word stands in a text right after another, or one word later, in any spelling of both."""
    befores = _possible_roots(text, first)
    afters = _possible_roots(text, second) if befores else ()
    if not afters:
        return False
    words = _words(text)
    return any(
        root in afters
        for before in befores
        for at, word in candidates(words, before)
        if stem(word) == before
        for root in map(stem, words[at:].split(" ", _CLOSE + 1)[1 : _CLOSE + 1])
    )


def _possible_roots(text: str, word: str) -> tuple[str, ...]:
    """Return the stems of a word's spellings, without those that the text clearly does not hold."""
    spellings = _spellings(word)
    if not text.isascii():
        return tuple(root for root, _ in spellings)
    lowered = _lowered(text)
    return tuple([root for root, start in spellings if start in lowered])


@lru_cache(maxsize=256)
def _spellings(word: str) -> tuple[tuple[str, str], ...]:
    """Return the first token of a word and those of its other spellings, each with its beginning."""
    roots = (*_tokens(word)[:1], *map(stem, other_spellings(word)))
    return tuple((root, beginning(root)) for root in roots)


@lru_cache(maxsize=256)
def _asked_for(term: str) -> Match | None:
    if term.endswith("*"):
        return word_match(term[:-1], prefix=True)
    return phrase_match(term) if " " in term else exclusion_match(term)


@lru_cache(maxsize=512)
def _tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a part of a query, which is looked for in one text after another."""
    return tuple(tokenize(text))


@lru_cache(maxsize=32)
def _lowered(text: str) -> str:
    return " ".join([text.lower(), *symbols_in(text)])


@lru_cache(maxsize=32)
def _words(text: str) -> str:
    """Return the words of a text before stemming, a space between them."""
    return " ".join(folded(text))


@lru_cache(maxsize=32)
def _further_words(text: str) -> str:
    """Return the parts of a text's identifiers, and what else the tokenizer cannot see, before stemming."""
    return _words(index_terms(text))


def _holds(match: Match, text: str) -> bool:
    if isinstance(match, AnyOf):
        return any(_holds(part, text) for part in match.parts)
    if isinstance(match, AllOf):
        return all(_holds(part, text) for part in match.parts)
    if isinstance(match, Without):
        return _holds(match.keep, text) and not _holds(match.drop, text)
    end = "" if isinstance(match, Word) and match.prefix else " "
    tokens = _tokens(match.text)
    if not tokens:
        return False
    return _has_run(_words(text), tokens, end) or _has_run(_further_words(text), tokens, end)


def _has_run(words: str, tokens: Sequence[str], end: str) -> bool:
    """Whether words with these stems follow each other; of the last stem, `end` is what must follow it."""
    wanted = " ".join(tokens) + end
    for at, word in candidates(words, tokens[0]):
        stems = stem(word) if len(tokens) == 1 else _first_stems(words[at:], len(tokens))
        if f"{stems} ".startswith(wanted):
            return True
    return False


def _first_stems(words: str, count: int) -> str:
    return " ".join(map(stem, words.split(" ", count)[:count]))


def _may_hold(match: Match, lowered: str) -> bool:
    """Whether the beginnings of all needed tokens occur: but for a letter, a stem begins as its words do."""
    if isinstance(match, AnyOf):
        return any(_may_hold(part, lowered) for part in match.parts)
    if isinstance(match, Word | Phrase):
        return all(beginning(token) in lowered for token in _tokens(match.text))
    return True
