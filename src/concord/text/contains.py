"""Does a text hold a word, a phrase, or one word close to another? As the index would find them.

One query is looked for in many texts, and one text is asked for many words, so both are cached in the form in
which they are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from concord.text.characters import spaced
from concord.text.identifiers import parts_with, symbols_in
from concord.text.spellings import other_spellings
from concord.text.stem import beginning, candidates, stem
from concord.text.terms import exclusion_match, index_terms, phrase_match, tokenize, word_match
from concord.types import AllOf, AnyOf, Match, Phrase, Word

_CLOSE = 2  # how many words on a word still stands close to another: a stop word may come between


def contains(text: str, term: str) -> bool:
    """Whether a text holds a word, a phrase (of several words) or a prefix*, as the index would find it."""
    match = _asked_for(term)
    return match is not None and _holds(match, text)


def may_contain(text: str, words: Iterable[str]) -> bool:
    """Whether a text has a word that begins like each of these: a quick look before asking for a phrase."""
    line = _line(text)
    return all(any(map(line.__contains__, _starts(word))) for word in words)


def neighbours(text: str, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs whose second word follows the first in a text, at once or after one other word.

    Both words count in any spelling.
    """
    line = _line(text)
    words = dict.fromkeys(chain.from_iterable(pairs))
    likely = {word for word in words if any(map(line.__contains__, _starts(word)))}
    return [pair for pair in pairs if likely.issuperset(pair) and _are_close(line, *pair)]


def _are_close(line: str, first: str, second: str) -> bool:
    """Whether the second word follows the first closely in a line, to go by their stems.

    Stemming is slow, so only words are stemmed that begin with the right letters in the right places.
    """
    befores, afters = _spellings(first), _spellings(second)
    return any(
        stem(word) in befores and not {*map(stem, following)}.isdisjoint(afters)
        for start in _starts(first)
        for beginning in _starts(second)
        for word, *following in _begun_close(line, start, beginning)
    )


def _begun_close(line: str, first: str, second: str) -> Iterator[list[str]]:
    """Yield each place where a word that begins with `second` closely follows one that begins with `first`.

    A place is the first word and the `_CLOSE` words after it.
    """
    at, after = line.find(first), -1
    while at >= 0:
        if after <= at:
            after = line.find(second, at + 1)
            if after < 0:
                return
        if len(line[at:after].split(None, _CLOSE)) <= _CLOSE:
            yield line[at:].split(None, _CLOSE + 1)[: _CLOSE + 1]
        at = line.find(first, at + 1)


@lru_cache(maxsize=256)
def _starts(word: str) -> tuple[str, ...]:
    """Return strings of which a line must contain one to hold a word, in any spelling."""
    return tuple(f" {beginning(root)}" for root in _spellings(word))


@lru_cache(maxsize=256)
def _spellings(word: str) -> tuple[str, ...]:
    """Return the first token of a word and those of its other spellings."""
    return (*_tokens(word)[:1], *map(stem, other_spellings(word)))


@lru_cache(maxsize=256)
def _asked_for(term: str) -> Match | None:
    if term.endswith("*"):
        return word_match(term[:-1], prefix=True)
    return phrase_match(term) if " " in term else exclusion_match(term)


@lru_cache(maxsize=512)
def _tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a part of a query; cached, because it is looked for in many texts."""
    return tuple(tokenize(text))


@lru_cache(maxsize=64)
def _lowered(text: str) -> str:
    return " ".join([text.lower(), *symbols_in(text), ""])


@lru_cache(maxsize=64)
def _line(text: str) -> str:
    """Return the words of a text before stemming, with spaces before, between and after them."""
    return f" {spaced(text)} "


@lru_cache(maxsize=64)
def _further_line(text: str) -> str:
    """Return the parts of a text's identifiers, and what else the tokenizer cannot see, before stemming."""
    return f" {spaced(index_terms(text))} "


def _holds(match: Match, text: str) -> bool:
    if isinstance(match, (Word, Phrase)):
        return _holds_words(match, text)
    if isinstance(match, AnyOf):
        return any(_holds(part, text) for part in match.parts)
    if isinstance(match, AllOf):
        return all(_holds(part, text) for part in match.parts)
    return _holds(match.keep, text) and not _holds(match.drop, text)


def _holds_words(match: Word | Phrase, text: str) -> bool:
    tokens = _tokens(match.text)
    end = "" if isinstance(match, Word) and match.prefix else " "
    if not tokens or _has_run(_line(text), tokens, end):
        return bool(tokens)
    return _may_have_inside(text, tokens, end) and _has_run(_further_line(text), tokens, end)


def _has_run(line: str, tokens: Sequence[str], end: str) -> bool:
    """Whether words with these stems follow each other in a line.

    `end` must follow the last stem: a space, or nothing if that is only the beginning of a word.
    """
    if not all(f" {beginning(token)}" in line for token in tokens[1:]):  # cheap, and mostly enough
        return False
    for at, word in candidates(line, tokens[0]):
        stems = stem(word) if len(tokens) == 1 else _first_stems(line[at:], len(tokens))
        if f"{stems} ".startswith(" ".join(tokens) + end):
            return True
    return False


def _first_stems(words: str, count: int) -> str:
    return " ".join(map(stem, words.split(None, count)[:count]))


def _may_have_inside(text: str, tokens: Sequence[str], end: str) -> bool:
    """Whether a text's identifiers may have parts with these stems: cheap to tell, and mostly they do not."""
    if not text.isascii():
        return True
    lowered = _lowered(text)
    if not all(map(lowered.__contains__, map(beginning, tokens))):
        return False
    is_word = len(tokens) == 1 and end
    return not is_word or any(True for _ in parts_with(text, lowered, tokens[0]))
