"""The few lines of a chunk that show why it was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from unicodedata import category

from msgspec import Struct

from concord.text.held import further_set
from concord.text.scripts import has_marks, has_unspaced, narrowed, places, segments
from concord.text.terms import identifier_parts, is_common, loose_words
from concord.text.tokens import folded, has_undivided, pattern, spelt_out, stem, tokens_at

ELLIPSIS = "…"
_MAX_SHIFT = 40  # how far an edge may move to reach a space; in a longer word it cuts
# Of what is left beside the words, a fifth stands before them: answers follow what they answer. Of 279 in
# licences, mail, tables, notes, changelogs and code 248 are shown so, with a third 244, with an eighth 245.
_BEFORE = 5
_MIDDLE = 2  # what answers is shown with as much before it as after it
_FRONT_MATTER = pattern(r"(---|\+\+\+)[ \t]*\n[\w-]+[ \t]*[:=][^\0]*?\n\1[ \t]*(?:\n|\Z)")
# The worth of a word whose frequency is unknown, such as the one meant by a mistyped word: a quarter hold it.
_USUAL = 1.0
_LEAST_BEGINNING = 4  # letters that a word must share with a searched one where none of those stands there


class Snippet(Struct, frozen=True):
    """A part of a text, and where in the text the word stands that most tells it from the rest."""

    text: str
    at: int | None = None  # None where none of the words was found


class _Place(Struct, frozen=True, order=True):
    start: int
    end: int
    target: str


class _Span(Struct, frozen=True):
    """A stretch of a text, and how many different words it holds."""

    words: int
    start: int
    end: int


def snippet(
    text: str,
    words: Sequence[str],
    width: int,
    worths: Mapping[str, float] = MappingProxyType({}),
    *,
    line: int | None = None,
    answer: tuple[int, int] | None = None,
) -> Snippet:
    """Return the part of a text, `width` characters at most, that has most of the words closest together.

    Of several such parts it is the one with the word of the highest worth. Lines stay lines, edges fall
    between words, and an ellipsis stands where text was left out. Front matter is shown only if it has more
    of the words than what follows. If `line` is given, the part shows the line at that offset and most of
    what follows; `answer` stands in its middle.
    """
    if answer is not None:
        return Snippet(_window(text, _Span(1, *answer), width, 0, before=_MIDDLE), answer[0])
    if line is not None:
        end = text.find("\n", line)
        whole = _Span(1, line, min(line + width, len(text) if end < 0 else end))
        return Snippet(_window(text, whole, width, 0), line)
    found = _places(text, words)
    by_stem = {stem(form): worth for word, worth in worths.items() for form in folded(word)}
    head = _FRONT_MATTER.match(text)
    first = head.end() if head and text[head.end() :].strip() else 0
    below = [place for place in found if place.start >= first]
    span = _best_span(below, width, by_stem, first)
    if first and (above := _best_span(found, width, by_stem)).words > span.words:
        span, first = above, 0
    often = Counter(place.target for place in found)
    inside = [place for place in found if span.start <= place.start and place.end <= span.end] or found
    rarest = min(inside, key=lambda place: (often[place.target], place.start), default=None)
    shown = _window(text, span, width, first if span.start >= first else 0)
    return Snippet(shown, rarest.start if rarest else None)


@lru_cache(maxsize=64)
def _targets(words: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the stems to show, and the pairs of characters, which are found within tokens too."""
    tokens = [token for word in words for token in loose_words(word) if not has_unspaced(token)]
    stems = frozenset(stem(token) for run in tokens for token in folded(run))
    runs = [segment.text for word in words if has_unspaced(word) for segment in segments(narrowed(word))]
    anywhere = dict.fromkeys(
        run[at : at + 2] for run in runs if has_unspaced(run) for at in range(max(1, len(run) - 1))
    )
    return stems, tuple(anywhere)


def _places(text: str, words: Sequence[str]) -> list[_Place]:
    """Return where the words stand, or identifiers with them; without any, where words begin like them."""
    stems, anywhere = _targets(tuple(words))
    tokens = tokens_at(text) if stems else []
    found = [_Place(*token) for token in tokens if token[2] in stems]
    missing = stems.difference([place.target for place in found])
    if missing and (inside := missing & further_set(text)):
        found += _inside(text, tokens, inside)
    if has_marks(text):  # of words with signs, tokens are only parts
        found += [_Place(*place) for place in places(stems, text)]
    for pair in anywhere:
        starts = (match.start() for match in re.finditer(f"(?={re.escape(pair)})", text))
        found += [_Place(at, at + len(pair), pair) for at in starts]
    if found:
        return sorted(found)
    begun = {root[:_LEAST_BEGINNING]: root for root in stems if len(root) >= _LEAST_BEGINNING}
    return [
        _Place(start, end, begun[token[:_LEAST_BEGINNING]])
        for start, end, token in tokens
        if token[:_LEAST_BEGINNING] in begun
    ]


def _inside(text: str, tokens: Sequence[tuple[int, int, str]], stems: frozenset[str]) -> Iterator[_Place]:
    """Yield identifiers of which a part has one of the stems, and words that have it once spelt out."""
    for start, end, _ in tokens:
        if is_common(word := text[start:end]):
            continue
        parts = (*identifier_parts(word), *([spelt_out(word)] if has_undivided(word) else []))
        for root in stems.intersection([stem(part.lower()) for part in parts]):
            yield _Place(start, end, root)


def _best_span(found: Sequence[_Place], width: int, worths: Mapping[str, float], start: int = 0) -> _Span:
    """Return the first of the narrowest stretches, within the width, that hold most different words.

    Among stretches with as many words, a rarer word counts before narrowness: on a page of settings "default"
    and "value" stand close together everywhere, and the name beside one of them is what was asked for. Width
    is measured between the first word and the last; how long these are says nothing. Without any words the
    stretch is the start.
    """
    inside: dict[str, int] = {}
    best_worth, best, left = (0, 0.0, 0), _Span(0, start, start), 0
    for place in found:
        inside[place.target] = inside.get(place.target, 0) + 1
        first = found[left]
        while first is not place and (place.end - first.start > width or inside[first.target] > 1):
            inside[first.target] -= 1
            if not inside[first.target]:
                del inside[first.target]
            left += 1
            first = found[left]
        if len(inside) < best.words:
            continue
        between = max(0, place.start - first.end)
        worth = len(inside), max([worths.get(target, _USUAL) for target in inside]), -between
        if worth > best_worth:
            best_worth, best = worth, _Span(len(inside), first.start, place.end)
    return best


def _window(text: str, span: _Span, width: int, first: int, before: int = _BEFORE) -> str:
    """Return the text around a stretch, nothing before a place, whole words at its edges."""
    end = len(text.rstrip())
    first += len(text[first:]) - len(text[first:].lstrip())
    left = span.start - max(0, width - (span.end - span.start)) // before
    left = max(first, min(left, end - width))
    right = min(left + width, end)
    left = _left_edge(text, left, span.start) if left > first else left
    spare = width - len(_tidied(text[left:right])) - 1  # indents and empty lines leave room for more
    right = _right_edge(text, min(right + max(0, spare), end), span.end)
    opening = ELLIPSIS if text[:left].strip() else ""
    closing = ELLIPSIS if right < end else ""
    return opening + _tidied(text[left:right]) + closing


def _tidied(text: str) -> str:
    """Return a text without empty lines, indents and more than one blank between words."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))


def _left_edge(text: str, left: int, start: int) -> int:
    if _is_inside_word(text, left):
        nearest = range(left, min(start, left + _MAX_SHIFT))
        left = next((at + 1 for at in nearest if text[at].isspace()), left)
    while left < start and _is_mark(text[left]):
        left += 1
    return left


def _right_edge(text: str, right: int, end: int) -> int:
    if _is_inside_word(text, right):
        nearest = range(right - 1, max(end, right - _MAX_SHIFT) - 1, -1)
        right = next((at for at in nearest if text[at].isspace()), right)
    while end < right < len(text) and _is_mark(text[right]):
        right -= 1
    return right


def _is_inside_word(text: str, at: int) -> bool:
    around = text[at - 1 : at + 1] if at else ""
    return len(around) == 2 and not any(map(str.isspace, around)) and not has_unspaced(around)


def _is_mark(character: str) -> bool:
    """Whether it belongs to the character before it: an accent, a vowel sign, a joiner of emoji."""
    return character == "\u200d" or category(character)[0] == "M"
