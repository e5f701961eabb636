"""Does a text hold a word, a phrase, or one word close to another? As the index would find them.

One text is asked for many words, so its tokens are cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from concord.text.terms import exclusion_match, index_terms, phrase_match, word_match
from concord.text.tokens import tokenize
from concord.types import AllOf, AnyOf, Match, Phrase, Word

_CLOSE = 2  # how many words on a word still stands close to another: a stop word may come between


def contains(text: str, term: str) -> bool:
    """Whether a text holds a word, a phrase (of several words) or a prefix*, as the index would find it."""
    match = _match_of(term)
    return match is not None and _holds(match, text)


def neighbours(text: str, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs whose second word follows the first in a text, at once or after one other word."""
    places = _places(text)
    return [pair for pair in pairs if _are_close(places, *pair)]


def _are_close(places: Mapping[str, Sequence[int]], first: str, second: str) -> bool:
    before, after = places.get(_token(first)), places.get(_token(second))
    if not before or not after:
        return False
    wanted = {*after}
    return any(at + step in wanted for at in before for step in range(1, _CLOSE + 1))


@lru_cache(maxsize=256)
def _token(word: str) -> str:
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


@lru_cache(maxsize=64)
def _places(text: str) -> dict[str, list[int]]:
    """Return where each token of a text stands."""
    places: dict[str, list[int]] = {}
    for at, token in enumerate(tokenize(text)):
        places.setdefault(token, []).append(at)
    return places


@lru_cache(maxsize=64)
def _further_places(text: str) -> dict[str, list[int]]:
    """Return the same of what the tokenizer cannot see: parts of identifiers, pairs of characters."""
    return _places(index_terms(text))


def _holds(match: Match, text: str) -> bool:
    if isinstance(match, (Word, Phrase)):
        return _has_run(match, _places(text)) or _has_run(match, _further_places(text))
    if isinstance(match, AnyOf):
        return any(_holds(part, text) for part in match.parts)
    if isinstance(match, AllOf):
        return all(_holds(part, text) for part in match.parts)
    return _holds(match.keep, text) and not _holds(match.drop, text)


def _has_run(match: Word | Phrase, places: Mapping[str, Sequence[int]]) -> bool:
    """Whether the tokens of a match follow each other; of a prefix only the beginning of the last must."""
    tokens = _tokens(match.text)
    if not tokens:
        return False
    if isinstance(match, Word) and match.prefix:
        ends = [at for token, held in places.items() if token.startswith(tokens[-1]) for at in held]
    else:
        ends = [*places.get(tokens[-1], ())]
    for back, token in enumerate(reversed(tokens[:-1]), 1):
        held = {*places.get(token, ())}
        ends = [at for at in ends if at - back in held]
    return bool(ends)
