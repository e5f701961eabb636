"""Does a text hold a word, a phrase, or one word close to another? As the index would find them.

One text is asked for many words, so its tokens are cached.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from concord.text.terms import (
    SYMBOL_TOKENS,
    exclusion_match,
    identifiers_with,
    index_terms,
    phrase_match,
    word_match,
)
from concord.text.tokens import tokenize
from concord.types import AllOf, AnyOf, Match, Phrase, Word


def contains(text: str, term: str) -> bool:
    """Whether a text holds a word, a phrase (of several words) or a prefix*, as the index would find it."""
    match = _match_of(term)
    return match is not None and _holds(match, text)


def held_words(words: Iterable[str], text: str) -> set[str]:
    """Return the words that a text holds; most are one token, and are looked up in its set of tokens."""
    tokens = token_set(text)
    return {word for word in words if _single_token(word) in tokens or contains(text, word)}


@lru_cache(maxsize=512)
def _single_token(word: str) -> str:
    """Return the token of a word; empty if it has several forms or tokens."""
    match = _match_of(word)
    return _run_of(match).strip() if isinstance(match, Word) and not match.prefix else ""


def neighbours(text: str, pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the pairs whose second word follows the first in a text, at once or after one other word."""
    held = token_set(text)
    likely = [row for row in _with_tokens(pairs) if row[1] in held and row[2] in held]
    return [pair for pair, first, second in likely if _are_close(_line(text), first, second)]


@lru_cache(maxsize=16)
def _with_tokens(pairs: tuple[tuple[str, str], ...]) -> list[tuple[tuple[str, str], str, str]]:
    return [(pair, _first_token(pair[0]), _first_token(pair[1])) for pair in pairs]


def _are_close(line: str, first: str, second: str) -> bool:
    if not first or f" {first} {second} " in line:
        return bool(first and second)
    last = f"{second} "
    at = line.find(f" {first} ") if f" {last}" in line else -1
    while at >= 0:
        between = line.find(" ", at + len(first) + 2)
        if line.startswith(last, between + 1):
            return between >= 0
        at = line.find(f" {first} ", at + 1)
    return False


@lru_cache(maxsize=256)
def _first_token(word: str) -> str:
    return "".join(tokenize(word)[:1])


@lru_cache(maxsize=256)
def _match_of(term: str) -> Match | None:
    if term.endswith("*"):
        return word_match(term[:-1], prefix=True)
    return phrase_match(term) if " " in term else exclusion_match(term)


@lru_cache(maxsize=512)
def _run_of(match: Word | Phrase) -> str:
    """Return the tokens of a match as they stand in a line; of a prefix, the last may go on."""
    tokens = tokenize(match.text)
    end = "" if isinstance(match, Word) and match.prefix else " "
    return f" {' '.join(tokens)}{end}" if tokens else ""


@lru_cache(maxsize=128)
def _line(text: str) -> str:
    """Return the tokens of a text, a space around each."""
    return f" {' '.join(_tokens(text))} "


@lru_cache(maxsize=128)
def _tokens(text: str) -> list[str]:
    return tokenize(text)


@lru_cache(maxsize=128)
def token_set(text: str) -> frozenset[str]:
    """Return the different tokens of a text."""
    return frozenset(_tokens(text))


@lru_cache(maxsize=128)
def _further_line(text: str) -> str:
    """Return the same of what the tokenizer cannot see: parts of identifiers, pairs of characters."""
    return _line(index_terms(text))


@lru_cache(maxsize=128)
def further_set(text: str) -> frozenset[str]:
    """Return the different tokens that the tokenizer cannot see."""
    return frozenset(_further_line(text).split())


@lru_cache(maxsize=128)
def _lowered(text: str) -> str:
    return text.lower()


def _holds(match: Match, text: str) -> bool:
    if isinstance(match, (Word, Phrase)):
        run = _run_of(match)
        return bool(run) and (
            run in _line(text) or _may_have_inside(text, run) and run in _further_line(text)
        )
    if isinstance(match, AnyOf):
        return any(_holds(part, text) for part in match.parts)
    if isinstance(match, AllOf):
        return all(_holds(part, text) for part in match.parts)
    return _holds(match.keep, text) and not _holds(match.drop, text)


def _may_have_inside(text: str, run: str) -> bool:
    """Whether identifiers of a text may have such parts: cheap to say, and mostly they have not."""
    if not text.isascii():
        return True
    *whole, begun = run[1:].split(" ")
    lowered = _lowered(text)
    return begun in lowered and all(
        token in SYMBOL_TOKENS or any(identifiers_with(text, lowered, token)) for token in whole
    )
