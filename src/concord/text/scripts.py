"""Scripts that FTS5 cannot divide into words.

Chinese, Japanese, Korean, Thai, Lao, Khmer and Myanmar are written without spaces: FTS5 sees a whole clause
as one token, so they are indexed by overlapping pairs of characters. Korean has spaces, but its particles
grow onto its words: pairs find the word inside.

Hindi, Bengali, Tamil, Tibetan and their like have vowel signs: FTS5 ends a token at every combining mark but
the accents of Latin letters, which leaves of बिल्ली the letters ब, ल and ल. Such words are indexed whole, in
a form that FTS5 does not divide: a private-use character for each sign, and one that begins the form.
Patterns are compiled at first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from itertools import pairwise
from unicodedata import category, normalize

from msgspec import Struct

from concord.text.tokens import beyond_ascii, is_near, is_token_character

# Vowel signs and tone marks end a token in FTS5, so they are stored as private-use characters, which do not.
# This range counts as unspaced, so that mapping a text twice changes nothing.
_MARKS = "\ue000-\uefff"
UNSPACED = (  # as ranges of a regular expression's class
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e80-\u0ecf\u0edc-\u0edf"  # Lao
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3"  # Hangul
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
)
_UNSPACED = UNSPACED + _MARKS
_MARKED_SCRIPTS = "\u0e00-\u10ff\u1780-\u17ff\uaa60-\uaa7f\u3099\u309a"
_WIDE = "\uff01-\uffee\uf900-\ufaff"  # full-width and half-width forms, compatibility ideographs
_EMOJI = "\u20bf\U0001f32d-\U0001faff"  # most are later than Unicode 6.1, and FTS5 takes those for letters


class Segment(Struct, frozen=True):
    """A run of one kind of characters."""

    text: str
    is_unspaced: bool
    start: int
    end: int


def is_plain(text: str) -> bool:
    """Whether FTS5's own tokens are enough for a text."""
    return is_near(text) or not _pattern(f"[{_UNSPACED}{_WIDE}{_EMOJI}]").search(text)


def has_unspaced(text: str) -> bool:
    """Whether any character of a text belongs to a script without spaces."""
    return not is_near(text) and _pattern(f"[{_UNSPACED}]").search(text) is not None


def segments(text: str) -> Iterator[Segment]:
    """Yield the runs of unspaced scripts and, between them, words (with a version number after them)."""
    pattern = _pattern(rf"([{_UNSPACED}]+)|[^\W_{_UNSPACED}]+(?:\.[0-9]+)*")
    for match in pattern.finditer(text):
        yield Segment(match[0], match[1] is not None, *match.span())


def narrowed(text: str) -> str:
    """Return a text with its full-width and half-width forms as the usual ones."""
    if is_near(text):
        return text
    return _pattern(f"[{_WIDE}]+").sub(lambda run: normalize("NFKC", run[0]), text)


def characters(run: str) -> list[str]:
    """Return the characters of an unspaced run, each with the vowel signs and tone marks that follow it."""
    if not _pattern(f"[{_MARKED_SCRIPTS}{_MARKS}]").search(run):
        return list(run)
    return _pattern(f"[^{_MARKS}][{_MARKS}]*|[{_MARKS}]+").findall(run.translate(_private_marks()))


def with_marks(token: str) -> str:
    """Return a token with its vowel signs and tone marks as people write them."""
    if is_near(token):
        return token
    return token.translate({private: code for code, private in reversed(_private_marks().items())})


def pairs(parts: Sequence[str]) -> list[str]:
    """Return each part together with the next."""
    return [first + second for first, second in pairwise(parts)]


def unspaced_terms(run: str, alone: bool) -> list[str]:
    """Return pairs of characters and the last character, so that every character begins a term.

    A run of one or two characters that stands alone is a token already.
    """
    parts = characters(run)
    if alone and len(parts) <= 2 and "".join(parts) == run:
        return parts[1:]
    return [*pairs(parts), parts[-1]]


def is_glued(text: str, start: int, end: int) -> bool:
    """Whether FTS5 would see the characters on either side as part of the same token."""
    return any(map(is_token_character, text[max(0, start - 1) : start] + text[end : end + 1]))


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)


@cache
def _private_marks() -> dict[int, int]:
    codes = map(ord, _pattern(f"[{_MARKED_SCRIPTS}]").findall("".join(map(chr, range(0x0E00, 0xAA80)))))
    return {code: 0xE000 | code & 0xFFF for code in codes if not is_token_character(chr(code))}


# Begins the form of a word that is made by signs, which are stored before it, from U+F000 on; scripts without
# spaces have their own range up to there.
_LEAD = "\uf7ff"
_SIGNED = (range(0x0900, 0x0E00), range(0x0F00, 0x1000))  # Devanagari, Bengali, Tamil … Sinhala; Tibetan
_JOINERS = "\u200c\u200d"  # within such words they only say how to draw them

# The signs and points of the most used scripts, as ranges of a character class. \w lacks them: add them to it
# to find words as they are written.
MARKS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0730-\u074a"
    "\u07a6-\u07b0\u08d3-\u0963\u0981-\u0df3\u0f71-\u0f84\u0f8d-\u0fbc" + _JOINERS
)


class Piece(Struct, frozen=True):
    """A part of a query: the forms of words that follow each other, or what stands between such words."""

    forms: tuple[str, ...]
    text: str = ""


def has_marks(text: str) -> bool:
    """Whether a text holds words of scripts with signs, of which FTS5 sees only parts, or their forms."""
    return not text.isascii() and any(
        "\u0900" <= character < "\u0e00" or "\u0f00" <= character < "\u1000" or character == _LEAD
        for character in set(beyond_ascii(text))
    )


def whole_words(text: str) -> Iterator[str]:
    """Yield the forms of words with signs, then other words that touch them: FTS5 sees both as one token."""
    yield from (form for _, _, form in places(None, text))
    for other in _pattern(r"(?<![^\W_\u0900-\u0fff])[^\W_\u0900-\u0fff]++(?=[\u0900-\u0fff])").finditer(text):
        if is_glued(text, *other.span()):
            yield other[0]


def pieces(text: str) -> Iterator[Piece]:
    """Yield the parts of a query: words with a form, neighbours together, and the text between them."""
    forms: tuple[str, ...] = ()
    end = 0
    for start, next_end, form in [*places(None, text), (len(text), len(text), "")]:
        between = text[end:start]
        has_word = any(map(str.isalnum, between))
        if forms and (has_word or not form):
            yield Piece(forms)
            forms = ()
        if has_word:
            yield Piece((), between)
        forms, end = (*forms, form), next_end


def places(forms: AbstractSet[str] | None, text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and form of the words of a text that have one of these forms, or any."""
    for match in _signed_word().finditer(text):
        form = match[0] if is_form(match[0]) else _LEAD + match[0].translate(_private_signs())
        if forms is None or form in forms:
            yield *match.span(), form


def is_form(token: str) -> bool:
    """Whether a token is the form of a word that is made by signs."""
    return token.startswith(_LEAD)


def letters_of(token: str) -> str:
    """Return the form of a word as people write it, without what is private to the index."""
    return "".join(chr(0x0800 | ord(c) & 0x7FF) if "\uf000" <= c < _LEAD else c for c in token[1:])


@cache
def _private_signs() -> dict[int, int | None]:
    """Return what becomes of signs and joiners in a form."""
    signs = {code for block in _SIGNED for code in block if category(chr(code))[0] == "M"}
    private = {code: 0xF000 | code & 0x7FF for code in signs if not is_token_character(chr(code))}
    return private | dict.fromkeys(map(ord, _JOINERS))


@cache
def _signed_word() -> re.Pattern[str]:
    """Return what finds a word with signs, as it is written, or its form."""
    known = [chr(code) for block in _SIGNED for code in block]
    word = "".join(c for c in known if c.isalnum() or ord(c) in _private_signs())
    return re.compile(f"{_LEAD}\\S+|[{word}]+(?:[{_JOINERS}]+[{word}]+)*")
