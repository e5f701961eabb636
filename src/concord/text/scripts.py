"""Scripts that FTS5 cannot divide into words.

Chinese, Japanese, Korean, Thai, Lao, Khmer and Myanmar are written without spaces: FTS5 sees a whole clause
as one token, so they are indexed by overlapping pairs of characters. Korean has spaces, but its particles
grow onto its words: pairs find the word inside.

Hindi, Bengali, Tamil, Tibetan and their like, and pointed Hebrew and Arabic, have vowel signs: FTS5 ends a
token at every combining mark but the accents of Latin letters, which leaves of बिल्ली the letters ब, ल and ल.
So such words are indexed whole, in a form that FTS5 does not divide. In scripts whose signs make the word,
each sign becomes a private-use character, and another such character begins the form. Hebrew, Arabic and
Syriac are mostly written without their points, and so is the form. Patterns are compiled at first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import groupby, pairwise
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


_FIRST = "\u0591"  # of all characters that matter here
# Begins the form of a word that is made by signs, which are stored before it, from U+F000 on; scripts without
# spaces have their own range up to there.
_LEAD = "\uf7ff"
_SIGNED = (  # as ranges of a regular expression's class; only those that FTS5 knew in Unicode 6.1 matter
    "\u0780-\u07ff"  # Thaana, N'Ko
    "\u0900-\u0dff"  # Devanagari, Bengali, Gurmukhi, Gujarati, Oriya, Tamil, Telugu … Sinhala
    "\u0f00-\u0fff"  # Tibetan
    "\u1700-\u177f"  # scripts of the Philippines
    "\u1900-\u194f\u1a00-\u1a1f\u1b80-\u1bff\u1c00-\u1c4f"  # Limbu, Buginese, Sundanese, Batak, Lepcha
    "\u1cd0-\u1cff\ua8e0-\ua8ff"  # signs of the Vedas
    "\ua800-\ua82f\ua880-\ua8df\ua900-\ua95f"  # Syloti Nagri, Saurashtra, Kayah Li, Rejang
    "\uaa00-\uaa5f\uaae0-\uaaff\uabc0-\uabff"  # Cham, Meetei Mayek
    "\U00011000-\U0001114f\U00011180-\U000111df\U00011680-\U000116cf"  # Brahmi, Kaithi, Chakma …
)
# Hebrew, Arabic, Syriac, Samaritan, Mandaic.
_POINTED = "\u0591-\u074f\u0750-\u077f\u0800-\u085f\u08a0-\u08ff"
_STRETCHER = "\u0640"  # makes an Arabic word longer and no other; FTS5 takes it for a letter
_JOINERS = "\u200c\u200d"  # within words with signs they only say how to draw them; they part Persian ones
# A stretch of words: if one of them is pointed, all get a form, so that phrases are found.
_STRETCH = r"[^0-9A-Za-z.!?;:।॥؟۔؛\n]+"


# The signs and points of the most used of these scripts, as ranges of a character class. \w lacks them: add
# them to it to find words as they are written.
MARKS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0730-\u074a"
    "\u07a6-\u07b0\u08d3-\u0963\u0981-\u0df3\u0f71-\u0f84\u0f8d-\u0fbc" + _JOINERS
)


class Piece(Struct, frozen=True):
    """A part of a query: the forms of words that follow each other, or what stands between such words."""

    forms: tuple[str, ...]
    text: str = ""


class _Tables(Struct, frozen=True):
    word: re.Pattern[str]  # as it is written, or its form
    beside: re.Pattern[str]  # words of other scripts that touch these
    signed: re.Pattern[str]
    pointed: re.Pattern[str]
    private: dict[int, int | None]  # what becomes of signs, points and joiners in a form
    public: dict[str, str]  # the signs that a private character may stand for: one of a script at most


def has_marks(text: str) -> bool:
    """Whether a text holds words of which FTS5 sees only parts, or their forms."""
    return not text.isascii() and any(map(_tells, set(beyond_ascii(text))))


def whole_words(text: str) -> Iterator[str]:
    """Yield the forms of a text's words, in order; of Hebrew and Arabic only near pointed words.

    Last come words of other scripts that touch such a word: FTS5 sees both as one token.
    """
    tables = _tables()
    for stretch in re.findall(_STRETCH, text):
        is_pointed = tables.pointed.search(stretch) is not None
        for word in tables.word.findall(stretch):
            if (is_pointed or tables.signed.search(word)) and (form := _form(word)):
                yield form
    for other in tables.beside.finditer(text):
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
    for match in _tables().word.finditer(text):
        form = _form(match[0])
        if form and (forms is None or form in forms):
            yield *match.span(), form


def is_form(token: str) -> bool:
    """Whether a token is the form of a word that is made by signs."""
    return token.startswith(_LEAD)


def letters_of(token: str) -> str:
    """Return the form of a word as people write it, without what is private to the index."""
    letters = ""
    for character in token[1:]:
        known = _tables().public.get(character, character)
        letters += min(known, key=lambda sign: abs(ord(sign) - ord(letters[-1:] or sign)))  # of one script
    return letters


@lru_cache(maxsize=1 << 13)
def _tells(character: str) -> bool:
    """Whether a character shows that a text has such words."""

    def is_in(ranges: str) -> bool:
        return any(first <= character <= last for first, last in zip(ranges[::3], ranges[2::3], strict=True))

    if character < _FIRST:
        return False
    is_point = is_in(_POINTED) and category(character)[0] == "M"
    return is_point or character in (_LEAD, _STRETCHER) or is_in(_SIGNED)


def _form(word: str) -> str:
    if is_form(word):
        return word
    tables = _tables()
    letters = word.translate(tables.private)
    return _LEAD + letters if tables.signed.search(word) else letters


@cache
def _tables() -> _Tables:
    signs = [c for c in _characters(_SIGNED) if category(c)[0] == "M" and not is_token_character(c)]
    points = [*(c for c in _characters(_POINTED) if category(c)[0] == "M"), _STRETCHER]
    letters = filter(str.isalnum, _characters(_SIGNED + _POINTED))
    joined = f"(?<=[{_SIGNED}])[{_JOINERS}]+(?=[{_SIGNED}])"
    ours = _SIGNED + _POINTED
    public: dict[str, str] = {}
    for sign in signs:
        public[_private(sign)] = public.get(_private(sign), "") + sign
    return _Tables(
        re.compile(f"{_LEAD}\\S+|(?:[{_class([*letters, *signs, *points])}]+|{joined})+"),
        re.compile(rf"(?<![^\W_{ours}])[^\W_{ours}]++(?=[{ours}])|(?<=[{ours}])[^\W_{ours}]+"),
        re.compile(f"[{_SIGNED}{_LEAD}]"),
        re.compile(f"[{_class(points)}]"),
        {ord(sign): ord(_private(sign)) for sign in signs} | dict.fromkeys(map(ord, [*points, *_JOINERS])),
        public,
    )


def _private(sign: str) -> str:
    return chr(0xF000 | ord(sign) & 0x7FF)


def _characters(ranges: str) -> Iterator[str]:
    for first, last in zip(ranges[::3], ranges[2::3], strict=True):
        yield from map(chr, range(ord(first), ord(last) + 1))


def _class(characters: Sequence[str]) -> str:
    """Return characters as ranges of a regular expression's class."""
    codes = sorted(map(ord, characters))
    runs = groupby(enumerate(codes), key=lambda numbered: numbered[1] - numbered[0])
    listed = [[code for _, code in run] for _, run in runs]
    return "".join(f"{chr(run[0])}-{chr(run[-1])}" for run in listed)
