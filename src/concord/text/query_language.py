"""The query language: what was typed becomes two questions, an exact and a loose one.

Words are words and "quoted phrases" are phrases, whatever they hold; `expression` reads the operators. What
does not parse (a dangling AND, parentheses or quotes that do not close, nothing but exclusions) is read as
words and phrases, so that no text is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from concord.text.expression import (
    OPERATORS,
    DoesNotParse,
    Node,
    NothingWanted,
    Token,
    match_of,
    read,
    tokens_of,
)
from concord.text.terms import (
    all_of,
    any_of,
    is_version,
    joined_names,
    loose_match,
    loose_words,
    phrase_match,
)
from concord.text.tokens import pattern
from concord.text.word_lists import is_stop_word, significant
from concord.types import Match, Without

MAX_TERMS = 64  # that one query looks for: a pasted page is told apart by its longest words, and stays fast
MAX_NAMES = 16  # that are looked for as a whole among loose words: a phrase takes longer than a word
MAX_DASHED = 4  # words that are looked up for being options: each takes a search
_LONGEST_WORD = 30  # longer ones are data, and come last when terms are chosen
_MAX_COMPOSED = 256  # composing takes quadratic time in a run of combining marks, so no longer word is

_CONTROL = pattern(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_CURLY = pattern('[“„]([^“„”"]*)[”“]')


class Parsed(Struct, frozen=True):
    """A query taken apart."""

    terms: tuple[str, ...]  # as typed, operators and stop words taken out (never to nothing)
    phrases: tuple[str, ...]
    excluded: tuple[str, ...]  # words, phrases or prefix*, none of which a hit may contain
    exact: Match | None  # None when nothing in the query can be searched by words
    loose: Match | None
    words: tuple[str, ...] = ()  # the tokens `loose` looks for one by one: ask for the frequencies of these
    kept: tuple[Match, ...] = ()  # what `loose` looks for besides, however frequent: phrases, prefixes, names
    dropped: Match | None = None  # what `loose` excludes
    nothing_wanted: bool = False  # it only excludes (-word), so its words are looked for instead


def parse(text: str, options: Collection[str] = ()) -> Parsed:
    """Return what a query asks for; `options` are words that are not excluded by their dash.

    Never raises, whatever the text.
    """
    cleaned = _cleaned(text)
    is_paired = cleaned.count('"') % 2 == 0
    tokens = tokens_of(cleaned if is_paired else cleaned.replace('"', " "))
    tokens = [replace(t, is_excluded=False) if t.is_excluded and t.text in options else t for t in tokens]
    has_operators = any(t.kind in OPERATORS or t.is_excluded or t.is_prefix for t in tokens)
    nothing_wanted = False
    if has_operators and is_paired and len(tokens) <= MAX_TERMS:
        try:
            return _parsed(read(_marked(tokens)))
        except DoesNotParse as fault:
            nothing_wanted = isinstance(fault, NothingWanted)
    return replace(_parsed(_literals(tokens)), nothing_wanted=nothing_wanted)


def dashed(text: str) -> list[str]:
    """Return the words that may be options: each excluded by a dash."""
    tokens = tokens_of(_cleaned(text))
    return [token.text for token in tokens if token.kind == "word" and token.is_excluded][:MAX_DASHED]


def prune(parsed: Parsed, keep: Callable[[str], bool]) -> Match | None:
    """Return the loose match without the words that are not to be kept; whole when nothing would be left."""
    words = [word for word in parsed.words if keep(word)]
    return _loose(words, parsed.kept, parsed.dropped) if words or parsed.kept else parsed.loose


def _cleaned(text: str) -> str:
    """Return a text without control characters and lone surrogates, composed, its quotes straight."""
    words = (text if text.isprintable() else _CONTROL.sub(" ", text)).split()
    composed = " ".join(normalize("NFC", word) if len(word) <= _MAX_COMPOSED else word for word in words)
    return composed if composed.isascii() else _CURLY.sub(r'"\1"', composed)


def _marked(tokens: Iterable[Token]) -> list[Token]:
    """Return the tokens with stop words marked; a prefix or an excluded word is never one."""
    words = [token.text for token in tokens if token.kind == "word"]
    stop_words = set(words).difference(significant(words))
    return [
        replace(token, is_stop_word=True)
        if token.text in stop_words and not token.is_prefix and not token.is_excluded
        else token
        for token in tokens
    ]


def _literals(tokens: Sequence[Token]) -> Node | None:
    """Read everything as words and phrases."""
    words = [token.text or token.kind for token in tokens if token.kind in ("word", *OPERATORS)]
    terms = _limited(significant(words))
    phrases = dict.fromkeys(token.text for token in tokens if token.kind == "phrase")
    asked = [Token("word", term) for term in terms] + [Token("phrase", text) for text in phrases][:MAX_TERMS]
    found = {token: match for token in asked if (match := match_of(token))}
    match = all_of([*found.values()])
    return Node(match, tuple(found)) if match else None


def _parsed(node: Node | None) -> Parsed:
    if node is None:
        return Parsed((), (), (), None, None)
    phrases = [token.text for token in node.asked if token.kind == "phrase"]
    begun = {token.text for token in node.asked if token.is_prefix}
    terms = _limited(significant([token.text for token in node.asked if token.kind == "word"]))
    spoken = [word for word in significant(" ".join(phrases).split()) if not is_stop_word(word)]
    words = _loose_words([*(term for term in terms if term not in begun), *spoken])
    # The numbers of 8.32 say little apart.
    whole = [
        token for token in node.asked if token.kind == "phrase" or token.is_prefix or is_version(token.text)
    ]
    kept = [match for token in whole if (match := match_of(token))]
    kept += _names(term for term in terms if term not in begun)
    return Parsed(
        terms=tuple(terms),
        phrases=tuple(phrases),
        excluded=tuple(dict.fromkeys(node.excluded)),
        exact=node.match,
        loose=_loose(words, kept, node.dropped),
        words=words,
        kept=tuple(kept),
        dropped=node.dropped,
    )


def _names(terms: Iterable[str]) -> list[Match]:
    """Return matches of identifiers as a whole: many texts have the words of wait_for, but apart."""
    names = dict.fromkeys(name for term in terms for name in joined_names(term))
    return [match for name in list(names)[:MAX_NAMES] if (match := phrase_match(name))]


def _loose_words(words: Iterable[str]) -> tuple[str, ...]:
    tokens = dict.fromkeys(token for word in words for token in loose_words(word))
    return tuple(significant(list(tokens)))[:MAX_TERMS]


def _limited(words: Iterable[str]) -> list[str]:
    """Return the distinct words in order; if they are too many, the longest, because these are rare."""
    distinct = list(dict.fromkeys(words))
    if len(distinct) <= MAX_TERMS:
        return distinct
    by_length = sorted(distinct, key=lambda word: -len(word) if len(word) <= _LONGEST_WORD else 0)
    chosen = set(by_length[:MAX_TERMS])
    return [word for word in distinct if word in chosen]


def _loose(words: Iterable[str], kept: Iterable[Match], dropped: Match | None) -> Match | None:
    match = any_of([*kept, *map(loose_match, words)])
    return Without(match, dropped) if match and dropped else match
