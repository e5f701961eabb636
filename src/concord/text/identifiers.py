"""The parts of identifiers: getUserName is get, user and name; 386DX33 is 386, DX and 33."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from msgspec import Struct

from concord.text.characters import folded, has_foreign_case
from concord.text.pattern import pattern
from concord.text.stem import beginning, occurrences, stem

# More parts than this, and shorter on average than that: a hash or a key, not an identifier.
_MANY_PARTS, _SHORT_PART = 4, 2.5
_MAX_CHARACTERS = 80  # longer words are data

# Names that differ in punctuation only; the letter alone would find every C.
_SYMBOL = pattern(r"[+#](?:(?<=\b[CcFf]#)(?!\w)|\+(?<=\b[CcGg]\+\+)(?!\+))")
_SIGNS = ("++", "C#", "c#", "F#", "f#")  # every symbol has one of them; headings of Markdown have none
_SYMBOL_NAMES = {"c++": "cplusplus", "g++": "gplusplus", "c#": "csharp", "f#": "fsharp"}


_VERSION = pattern(r"[vV]?[0-9]+(?:\.[0-9]+)+")
_JOINED = pattern(r"[^\W_]+(?:_+[^\W_]+)+")
_NUMBERED = pattern(r"(?<![\w-])[^\W\d_]+(?:-[^\W_]+)*-[^\W\d_]*\d[^\W_]*(?![\w-])")


class _Patterns(Struct, frozen=True):
    tail: re.Pattern[str]  # a word that has parts, from its first inner boundary on
    part: re.Pattern[str]


def identifiers_in(text: str) -> Iterator[str]:
    """Yield the words of a text that may have parts, each with a version number after it."""
    for found in _patterns_for(text).tail.finditer(text):
        start = found.start()
        while start and text[start - 1].isalnum():
            start -= 1
        yield text[start : found.end()]


@lru_cache(maxsize=1 << 14)
def identifier_parts(token: str) -> tuple[str, ...]:
    """Return the parts of a word; nothing when it is one part, or a hash."""
    if len(token) > _MAX_CHARACTERS or (token.isascii() and token.isalpha() and token.islower()):
        return ()
    parts = tuple(_patterns_for(token).part.findall(token))
    is_shattered = len(parts) > _MANY_PARTS and len(token) < _SHORT_PART * len(parts)
    return () if is_shattered or parts == tuple(token.split(".")) else parts


def camel_parts(token: str) -> tuple[str, ...]:
    """Return the parts of a word, numbers left on the part before: HTTP2Server is HTTP2 and Server."""
    joined: list[str] = []
    for part in identifier_parts(token):
        if joined and part.isdigit():
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)


def part_at(text: str, at: int) -> str:
    """Return the part of an identifier that begins at an offset; empty where none begins."""
    pair = text[at - 1 : at + 1] if at else ""
    if pair.isalpha() and pair.islower():  # mostly: inside of a word
        return ""
    before, first, after = pair[:1], text[at], text[at + 1 : at + 2]
    changes = first.isupper() != before.isupper() or first.isdigit() != before.isdigit()
    if before.isalnum() and not changes and not (first.isupper() and after.islower()):
        return ""
    # To look at all of a text for each place in it would take time by the square of its length.
    found = _patterns_for(text[at : at + _MAX_CHARACTERS]).part.match(text, at)
    return found[0] if found else ""


def parts_with(text: str, lowered: str, root: str) -> Iterator[tuple[int, str]]:
    """Yield where a word with a stem is part of an identifier or all of it, and that part.

    `lowered` is the text in lower case, which may have more words at its end, a space after each.
    """
    for at in occurrences(beginning(root), lowered):
        part = part_at(text, at) if at < len(text) else lowered[at : lowered.find(" ", at)]
        if part and stem("".join(folded(part))) == root:
            yield at, part


def symbols_in(text: str) -> list[str]:
    """Return the spelled-out names of C++, C# and their like in a text."""
    # One character is looked for many times faster than two, and most texts hold neither.
    if "+" not in text and "#" not in text or not any(sign in text for sign in _SIGNS):
        return []
    return [_SYMBOL_NAMES[text[found.start() - 1 : found.end()].lower()] for found in _SYMBOL.finditer(text)]


def symbol_name(word: str) -> str | None:
    """Return the spelled-out name of a word like C++."""
    return _SYMBOL_NAMES.get(word.lower())


def joined_names(word: str) -> list[str]:
    """Return the names in a word whose parts are joined: by underscores, both of add_int|add_bytes(x).

    Or by hyphens, with a number behind the last: log-3, us-east-1, IL-6, whose numbers say nothing alone.
    """
    joined = _JOINED.findall(word) if "_" in word else []
    return [*joined, *_NUMBERED.findall(word)] if "-" in word else joined


def version_number(word: str) -> str | None:
    """Return the number of a version with a v before it: 3.2 for v3.2. Without a dot (v3) it is a name."""
    return word[1:] if word[:1] in ("v", "V") and is_version(word) else None


def is_version(word: str) -> bool:
    """Whether a word is a version, or a decimal: numbers with dots between them, after a v or alone."""
    return "." in word and word[-1].isdigit() and _VERSION.fullmatch(word) is not None


def _patterns_for(text: str) -> _Patterns:
    return _cased_patterns() if has_foreign_case(text) else _ascii_patterns()


@cache
def _ascii_patterns() -> _Patterns:
    return _compiled("A-Z", "a-z")


@cache
def _cased_patterns() -> _Patterns:
    cased = [chr(code) for code in (*range(0x80, 0x530), *range(0x1E00, 0x1F00))]  # Latin, Greek, Cyrillic
    upper = "".join(filter(str.isupper, cased))
    return _compiled("A-Z" + upper, "a-z" + "".join(filter(str.islower, cased)))


def _compiled(upper: str, lower: str) -> _Patterns:
    """Build both patterns for an alphabet.

    The tail begins with a set of characters that prose has few of: the engine skips to them at once. It takes
    a version number along. A part is an acronym in the plural, an acronym, a word, a number, or letters that
    have no case.
    """
    letter = upper + lower
    tail = (
        rf"[{upper}0-9](?:(?<=[{lower}][{upper}])|(?<=[{letter}][0-9])|(?<=[0-9])(?=[{letter}])"
        rf"|(?<=[{upper}][{upper}])(?=[{lower}]))[^\W_]*(?:\.[0-9]+)*"
    )
    part = (
        rf"[{upper}]{{2,}}s(?![{lower}])|[{upper}]+(?![{lower}])|[{upper}]?[{lower}]+|[0-9]+"
        rf"|[^\W_0-9{letter}]+"
    )
    return _Patterns(re.compile(tail), re.compile(part))
