"""The few words of a chunk that show why it was found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple
from unicodedata import category

from msgspec import Struct

from concord.text.characters import aligned, folded, has_undivided, spelt_out
from concord.text.identifiers import parts_with
from concord.text.pattern import pattern
from concord.text.spellings import other_spellings
from concord.text.stem import beginning, candidates, occurrences, stem, with_stem
from concord.text.terms import loose_words
from concord.text.unspaced import has_unspaced, narrowed, segments
from concord.text.vowel_signs import has_marks, places

ELLIPSIS = "…"
_LEFT_OUT = f" {ELLIPSIS} "
_MAX_SHIFT = 40  # how far an edge may move to reach a space; in a longer word it cuts
# Of what is left beside the words, a fifth stands before them: answers follow what they answer. Of 279 in
# licences, mail, tables, notes, changelogs and code 248 are shown so, with a third 244, with an eighth 245.
_BEFORE = 5
_FRONT_MATTER = pattern(r"(---|\+\+\+)[ \t]*\n[\w-]+[ \t]*[:=][^\0]*?\n\1[ \t]*(?:\n|\Z)")

_NUMBER_IN_ROW = pattern(r"""(?:^|[,;\t|])["' ]*[-+]?\d""")  # what has one is no row of names
_UNCOUNTED: Mapping[str, float] = {}
# The worth of a word whose frequency is unknown, such as the one meant by a mistyped word: a quarter hold it.
_USUAL = 1.0

_TOKEN = pattern(r"[^ ]+")


class _Targets(Struct, frozen=True):
    """What to show of a text."""

    stems: frozenset[str]
    anywhere: tuple[str, ...]  # found within tokens too: unspaced scripts


class _Place(Struct, frozen=True, order=True):
    start: int
    end: int
    target: str


class _Span(NamedTuple):
    """A stretch of a text, and how many different words it holds."""

    words: int
    start: int
    end: int


class Excerpt(Struct, frozen=True):
    """A part of a text, and where in the text the word stands that most tells it from the rest."""

    text: str
    at: int | None = None  # None where none of the words was found


def excerpt(
    text: str,
    words: Sequence[str],
    width: int,
    worths: Mapping[str, float] = _UNCOUNTED,
    *,
    is_table: bool = False,
    has_headings: bool = False,
    line: int | None = None,
) -> Excerpt:
    """Return the part of a text, `width` characters at most, that has most of the words closest together.

    Of several such parts it is the one with the word of the highest worth. White space is collapsed, edges
    fall between words, and an ellipsis stands where text was left out. Front matter is shown only if it has
    more of the words than any place below it, and the row with the names of a table's columns only if no
    other row has words: a query for the price of something wants its row. The heading that a text begins with
    is shown above it anyway, so a section further down is shown instead if its own heading has words. If
    `line` is given, the part begins with the line at that offset.
    """
    flat = " ".join(text.split())
    if line is not None:
        return Excerpt(_of_line(text, flat, line, width), line)
    places = _places(flat, _targets(tuple(words)))
    by_stem = _by_stem(tuple(worths.items()))
    first = _body_start(text)
    rows = _parted(places, _rows_start(text))[1] if is_table else []
    span = _best_span(rows or places, width, by_stem)
    if first:
        above, below = _parted(places, first)
        spans = _best_span(below, width, by_stem, first), _best_span(above, width, by_stem)
        span = max(spans, key=itemgetter(0))
        first = first if span.start >= first else 0
    if has_headings and (inside := _in_section(text, places, span)):
        span = _best_span(inside, width, by_stem)
    at = _unflattened(text, flat, _rarest(places, span)) if places else None
    if len(flat) <= width:
        return Excerpt(flat, at)
    shown = _window(flat, span, width, first)
    return Excerpt(_with_names(shown, text, flat, span, width) if places and "|" in text else shown, at)


def _of_line(text: str, flat: str, line: int, width: int) -> str:
    """Return the part of a text around the line that begins at an offset, mostly what follows the line."""
    if len(flat) <= width:
        return flat
    above, whole = " ".join(text[:line].split()), " ".join(text[line:].lstrip().partition("\n")[0].split())
    start = len(above) + 1 if above else 0
    span = _Span(1, start, start + min(len(whole), width))
    shown = _window(flat, span, width, 0)
    return _with_names(shown, text, flat, span, width) if "|" in text else shown


def _with_names(shown: str, text: str, flat: str, span: _Span, width: int) -> str:
    """Return a row of a Markdown table with the names of the columns before it.

    The names are left out if they are shown already, or would take more than half of the width.
    """
    from concord.text.markdown import line_at, row_at  # late: few passages have tables

    row = row_at(text, _unflattened(text, flat, span.start))
    if row is None or row.names in shown or 2 * len(row.names) > width:
        return shown
    room = width - len(row.names) - len(_LEFT_OUT)
    start = len(" ".join(text[: row.start].split())) + 1
    end = start + len(" ".join(line_at(text, row.start).split()))
    whole = _Span(span.words, start, max(end, span.end))
    span = whole if whole.end - start <= room else span
    if span.end - span.start > room:
        return shown
    return row.names + _LEFT_OUT + _window(flat, span, room, start).removeprefix(ELLIPSIS)


def _body_start(text: str) -> int:
    """Return where in its flat form a text begins below its front matter; 0 if it has none."""
    found = _FRONT_MATTER.match(text)
    above = " ".join(found[0].split()) if found else ""
    return len(above) + 1 if found and text[found.end() :].strip() else 0


def _in_section(text: str, places: Sequence[_Place], span: _Span) -> list[_Place]:
    """Return places in sections whose heading has one, if a stretch begins in the heading above them all."""
    from concord.text.headings import heading_lines  # late: few passages have headings inside

    lines = [(_flat_offset(text, start), _flat_offset(text, end)) for start, end in heading_lines(text)]
    if not lines or not lines[0][0] <= span.start < lines[0][1]:
        return []
    ends = [*(start for start, _ in lines[1:]), math.inf]
    return [
        place
        for (start, title_end), end in list(zip(lines, ends, strict=True))[1:]
        if any(start <= one.start < title_end for one in places)
        for place in places
        if start <= place.start < end
    ]


def _flat_offset(text: str, at: int) -> int:
    """Return where in its flat form stands what follows an offset between two lines."""
    before = " ".join(text[:at].split())
    return len(before) + 1 if before else 0


def _rows_start(text: str) -> int:
    """Return where in its flat form a table's rows begin, below its columns' names; 0 without any."""
    names, _, rows = text.partition("\n")
    return len(" ".join(names.split())) + 1 if rows and not _NUMBER_IN_ROW.search(names) else 0


def _parted(places: Sequence[_Place], at: int) -> tuple[list[_Place], list[_Place]]:
    return [one for one in places if one.start < at], [one for one in places if one.start >= at]


def _rarest(places: Sequence[_Place], span: _Span) -> int:
    """Return where in a stretch that word stands which occurs least often in the text."""
    often = Counter([place.target for place in places])
    inside = [place for place in places if span.start <= place.start and place.end <= span.end]
    return min(inside, key=lambda place: (often[place.target], place.start)).start


def _unflattened(text: str, flat: str, at: int) -> int:
    """Return where in a text the word begins that is at an offset of its flat form."""
    if len(flat) == len(text):  # one blank between any two words, and none around them
        return at
    return len(text) - len(text.split(None, flat.count(" ", 0, at))[-1].lstrip())


@lru_cache(maxsize=64)
def _by_stem(worths: Sequence[tuple[str, float]]) -> Mapping[str, float]:
    return {stem(form): worth for word, worth in worths for form in folded(word)}


@lru_cache(maxsize=64)
def _targets(words: Sequence[str]) -> _Targets:
    tokens = [token for word in words for token in loose_words(word) if not has_unspaced(token)]
    tokens += [other for token in tokens for other in other_spellings(token)]
    stems = frozenset(stem(token) for run in tokens for token in folded(run))
    runs = [segment.text for word in words if has_unspaced(word) for segment in segments(narrowed(word))]
    anywhere = dict.fromkeys(pair for run in runs if has_unspaced(run) for pair in _raw_pairs(run))
    return _Targets(stems, tuple(anywhere))


def _raw_pairs(run: str) -> list[str]:
    """Return pairs of characters as they stand in a text, vowel signs and all."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def _places(flat: str, targets: _Targets) -> list[_Place]:
    """Return where the words stand; if none is there, where words stand that begin like them."""
    letters = aligned(flat)
    line = f" {letters} "
    begun = [root for root in targets.stems if beginning(root) in letters]
    found = [_Place(at, at + len(word), root) for root in begun for at, word in with_stem(line, root)]
    if has_marks(flat):  # of words with signs, those letters are only parts
        found += [_Place(*place) for place in places(targets.stems, flat)]
    if has_undivided(flat):
        found += _spelt(letters, targets.stems)
    missing = set(begun).difference([place.target for place in found])
    found += [
        _Place(at, at + len(part), root) for root in missing for at, part in parts_with(flat, letters, root)
    ]
    found += [_Place(at, at + len(pair), pair) for pair in targets.anywhere for at in occurrences(pair, flat)]
    found = found or [place for root in targets.stems for place in _beginnings(line, root)]
    return sorted(found)


def _spelt(letters: str, stems: frozenset[str]) -> Iterator[_Place]:
    """Yield the tokens that have one of the stems once their letters are spelt out: Straße for strasse."""
    for found in _TOKEN.finditer(letters):
        if has_undivided(found[0]) and (root := stem(spelt_out(found[0]))) in stems:
            yield _Place(*found.span(), root)


def _beginnings(line: str, root: str) -> Iterator[_Place]:
    for at, word in candidates(line, root):
        if word.startswith(root[:2]):
            yield _Place(at, at + len(root), root)


def _best_span(places: Sequence[_Place], width: int, worths: Mapping[str, float], start: int = 0) -> _Span:
    """Return the first of the narrowest stretches, within the width, that hold most different words.

    Among stretches with as many words, a rarer word counts before narrowness: on a page of settings "default"
    and "value" stand close together everywhere, and the name beside one of them is what was asked for. Width
    is measured between the first word and the last; how long these are says nothing. Without any words the
    stretch is the start.
    """
    inside: dict[str, int] = {}
    best_worth, best, left = (0, 0.0, 0), _Span(0, start, start), 0
    for place in places:
        inside[place.target] = inside.get(place.target, 0) + 1
        first = places[left]
        while first is not place and (place.end - first.start > width or inside[first.target] > 1):
            inside[first.target] -= 1
            if not inside[first.target]:
                del inside[first.target]
            left += 1
            first = places[left]
        if len(inside) < best.words:
            continue
        between = max(0, place.start - first.end)
        worth = len(inside), max([worths.get(target, _USUAL) for target in inside]), -between
        if worth > best_worth:
            best_worth, best = worth, _Span(len(inside), first.start, place.end)
    return best


def _window(flat: str, span: _Span, width: int, first: int) -> str:
    """Return the text around a stretch, nothing before a place, whole words at its edges."""
    left = span.start - (width - (span.end - span.start)) // _BEFORE
    left = max(first, min(left, len(flat) - width))
    right = min(left + width, len(flat))
    left = _left_edge(flat, left, span.start) if left > first else left
    right = _right_edge(flat, right, span.end)
    before = ELLIPSIS if left > 0 else ""
    after = ELLIPSIS if right < len(flat) else ""
    return before + flat[left:right].strip() + after


def _left_edge(flat: str, left: int, start: int) -> int:
    if left > 0 and _is_inside_word(flat, left):
        gap = flat.find(" ", left, min(start, left + _MAX_SHIFT))
        left = gap + 1 if gap >= 0 else left
    while 0 < left < start and _is_mark(flat[left]):
        left += 1
    return left


def _right_edge(flat: str, right: int, end: int) -> int:
    if right < len(flat) and _is_inside_word(flat, right):
        gap = flat.rfind(" ", max(end, right - _MAX_SHIFT), right)
        right = gap if gap >= 0 else right
    while end < right < len(flat) and _is_mark(flat[right]):
        right -= 1
    return right


def _is_inside_word(flat: str, at: int) -> bool:
    return " " not in flat[at - 1 : at + 1] and not has_unspaced(flat[at - 1 : at + 1])


def _is_mark(character: str) -> bool:
    """Whether it belongs to the character before it: an accent, a vowel sign, a joiner of emoji."""
    return character == "\u200d" or category(character)[0] == "M"
