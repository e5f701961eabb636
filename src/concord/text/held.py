"""Does a text hold a word, a phrase, or one word close to another? As the index would find them.

One text is asked for many words, so its tokens are cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from concord.text.terms import exclusion_match, index_terms, phrase_match, word_match
from concord.text.tokens import tokenize
from concord.types import AllOf, AnyOf, Match, Phrase, Word

_CLOSE = 2  # how many words on a word still stands close to another: a stop word may come between


def contains(text: str, term: str) -> bool:
    """Whether a text holds a word, a phrase (of several words) or a prefix*, as the index would find it."""
    match = _match_of(term)
    return match is not None and _holds(match, text)


def held_words(words: Iterable[str], text: str) -> set[str]:
    """Return the words that a text holds: most are told by its tokens alone."""
    tokens, lowered, is_ascii = token_set(text), _lowered(text), text.isascii()
    held: set[str] = set()
    for word in words:
        token = _single_token(word)
        if token in tokens or (not is_ascii or not token or token[:-1] in lowered) and contains(text, word):
            held.add(word)
    return held


@lru_cache(maxsize=512)
def _single_token(word: str) -> str:
    """Return the token of a word; empty if it has several."""
    tokens = tokenize(word)
    return tokens[0] if len(tokens) == 1 else ""


def neighbours(text: str, pairs: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    """Return the pairs whose second word follows the first in a text, at once or after one other word."""
    held = token_set(text)
    likely = [
        (pair, first, second)
        for pair, first, second in _with_tokens(pairs)
        if first in held and second in held
    ]
    return [pair for pair, first, second in likely if _are_close(_tokens_of(text), first, second)]


@lru_cache(maxsize=16)
def _with_tokens(pairs: tuple[tuple[str, str], ...]) -> list[tuple[tuple[str, str], str, str]]:
    return [(pair, _first_token(pair[0]), _first_token(pair[1])) for pair in pairs]


def _are_close(tokens: Sequence[str], first: str, second: str) -> bool:
    after = {at for at, token in enumerate(tokens) if token == second}
    return any(
        not after.isdisjoint(range(at + 1, at + _CLOSE + 1))
        for at, token in enumerate(tokens)
        if token == first
    )


@lru_cache(maxsize=256)
def _first_token(word: str) -> str:
    return "".join(_tokens(word)[:1])


@lru_cache(maxsize=256)
def _match_of(term: str) -> Match | None:
    if term.endswith("*"):
        return word_match(term[:-1], prefix=True)
    return phrase_match(term) if " " in term else exclusion_match(term)


@lru_cache(maxsize=512)
def _tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a part of a query; cached, because it is looked for in many texts."""
    return tuple(tokenize(text))


@lru_cache(maxsize=128)
def _tokens_of(text: str) -> list[str]:
    return tokenize(text)


@lru_cache(maxsize=128)
def token_set(text: str) -> frozenset[str]:
    """Return the different tokens of a text."""
    return frozenset(_tokens_of(text))


@lru_cache(maxsize=128)
def _further_tokens(text: str) -> list[str]:
    """Return what the tokenizer cannot see: parts of identifiers, pairs of characters."""
    return tokenize(index_terms(text))


@lru_cache(maxsize=128)
def _lowered(text: str) -> str:
    return text.lower()


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
    is_prefix = isinstance(match, Word) and match.prefix
    if len(tokens) == 1 and not is_prefix:
        if tokens[0] in token_set(text):
            return True
    elif not tokens:
        return False
    elif _may_have_run(text, tokens, is_prefix) and _has_run(_tokens_of(text), tokens, is_prefix):
        return True
    return _may_have_inside(text, tokens) and _has_run(_further_tokens(text), tokens, is_prefix)


def _may_have_run(text: str, tokens: Sequence[str], is_prefix: bool) -> bool:
    return token_set(text).issuperset(tokens[:-1] if is_prefix else tokens)


def _may_have_inside(text: str, tokens: Sequence[str]) -> bool:
    """Whether identifiers of a text may have such parts: cheap to say, and mostly they have not.

    Stemming changes the last letter of a word at most, and takes off what follows.
    """
    return not text.isascii() or all(token[:-1] in _lowered(text) for token in tokens)


def _has_run(held: Sequence[str], tokens: Sequence[str], is_prefix: bool) -> bool:
    """Whether tokens follow each other; of a prefix only the beginning of the last must."""
    *whole, last = tokens
    size = len(tokens)
    ends = (at for at, token in enumerate(held) if token == last or is_prefix and token.startswith(last))
    return any(at + 1 >= size and [*held[at + 1 - size : at]] == whole for at in ends)
