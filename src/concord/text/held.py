"""Does a text hold a word, a phrase, or one word close to another? As the index would find them.

One text is asked for many words, so its tokens are cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from concord.text.terms import exclusion_match, index_terms, phrase_match, word_match
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


def neighbours(text: str, pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the pairs whose second word follows the first in a text, at once or after one other word."""
    held = token_set(text)
    likely = [row for row in _with_tokens(pairs) if row[1] in held and row[2] in held]
    return [pair for pair, first, second in likely if _are_close(_line(text), first, second)]


@lru_cache(maxsize=128)
def token_set(text: str) -> frozenset[str]:
    """Return the different tokens of a text."""
    return frozenset(_line(text).split())


@lru_cache(maxsize=128)
def further_set(text: str) -> frozenset[str]:
    """Return the different tokens of a text that the tokenizer cannot see: see `index_terms`."""
    return frozenset(_further_line(text).split())


@lru_cache(maxsize=16)
def _with_tokens(pairs: tuple[tuple[str, str], ...]) -> list[tuple[tuple[str, str], str, str]]:
    """Return pairs of words, each with the first token of either word."""
    tokens = {word: "".join(tokenize(word)[:1]) for pair in pairs for word in pair}
    return [(pair, tokens[pair[0]], tokens[pair[1]]) for pair in pairs]


def _are_close(line: str, first: str, second: str) -> bool:
    return re.search(rf" {re.escape(first)} (?:\S+ )?{re.escape(second)} ", line) is not None


@lru_cache(maxsize=512)
def _single_token(word: str) -> str:
    """Return the token of a word; empty if it has several forms or tokens."""
    match = _match_of(word)
    return _run_of(match).strip() if isinstance(match, Word) and not match.prefix else ""


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
    return f" {' '.join(tokenize(text))} "


@lru_cache(maxsize=128)
def _further_line(text: str) -> str:
    """Return the same of what the tokenizer cannot see: parts of identifiers, pairs of characters."""
    return _line(index_terms(text))


def _holds(match: Match, text: str) -> bool:
    if isinstance(match, (Word, Phrase)):
        run = _run_of(match)
        return bool(run) and (run in _line(text) or run in _further_line(text))
    if isinstance(match, AnyOf):
        return any(_holds(part, text) for part in match.parts)
    if isinstance(match, AllOf):
        return all(_holds(part, text) for part in match.parts)
    return _holds(match.keep, text) and not _holds(match.drop, text)
