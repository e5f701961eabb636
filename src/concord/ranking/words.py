"""How is a query split for understanding it? Words as typed, with the punctuation around them told apart.

Unlike the tokens of the index these keep their case and inner signs: capitals, dots and underscores are what
tells a name from a word.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from concord.text.characters import is_near
from concord.text.pattern import pattern
from concord.text.unspaced import UNSPACED

READ_CHARS = 4000  # a query shows its kind early; the rest of a pasted page would only cost time

STOPS = "\"'`“”‘’,;:.!?"  # around a word; brackets may be part of one: getconn()
AROUND = STOPS + "()[]"

_QUOTES = '"“”„‟«»‹›「」『』＂`'
_OPENING = _QUOTES + "'‘’([{¿¡*,;:!?…–—（"
_CLOSING = _QUOTES + "'‘’)]}*,;:!?….。，！？、；：）–—"
_BREAKS = frozenset("()[]{},;:!?….。，！？、；：（）–—" + _QUOTES)
_LONE_UNITS = frozenset({"%", "‰"})
_INITIALS = pattern(r"[^\W\d_](?:\.[^\W\d_])*\.?")
# Their full stop ends nothing.
_TITLES = frozenset(
    {"St", "Dr", "Mr", "Mrs", "Ms", "Mt", "Ft", "Prof", "Sr", "Jr", "Gen", "Rev", "Capt", "Lt"}
)
_CLITICS = frozenset({"s", "re", "ve", "ll", "d", "m"})  # what's, you're
_ELISIONS = frozenset({"l", "d", "j", "m", "t", "s", "n", "c", "qu"})  # l'accès, qu'est-ce


class Word(Struct, frozen=True):
    """A word of the query without the punctuation around it."""

    text: str
    starts: bool  # punctuation stands before it
    ends: bool  # punctuation stands after it


def words(text: str) -> list[Word]:
    """Split a query at white space and where the script changes, and strip what surrounds each word."""
    parts = text.split() if is_near(text) else _by_script().findall(text)
    found = map(_word, parts)
    return [word for word in found if any(map(str.isalnum, word.text)) or word.text in _LONE_UNITS]


def bare_words(text: str) -> list[str]:
    """Return what white space divides, without what a sentence puts around it; its dashes stay."""
    return [typed.strip(AROUND) for typed in text.split()]


def plain(text: str) -> str:
    """Return a word in lower case without its clitic: What's → what, l'accès → l, don't → not."""
    lowered = text.lower().replace("’", "'")
    head, mark, tail = lowered.partition("'")
    if not mark:
        return lowered
    if tail == "t" and head.endswith("n"):
        return "not"
    return head if tail in _CLITICS or head in _ELISIONS else lowered


def is_initials(text: str) -> bool:
    """Whether the word is one or more capital letters with full stops between: J. or J.R.R or U.S."""
    return text.isupper() and bool(_INITIALS.fullmatch(text))


@cache
def _by_script() -> re.Pattern[str]:  # costs milliseconds to compile: only a query that needs it pays
    return re.compile(f"[{UNSPACED}]+|[^\\s{UNSPACED}]+")


def _word(raw: str) -> Word:
    text = raw.lstrip(_OPENING)
    before = raw[: len(raw) - len(text)]
    core = text.rstrip(_CLOSING)
    after = text[len(core) :]
    if after.startswith(")") and core.endswith("("):  # a call keeps its brackets
        core, after = core + ")", after[1:]
    if after.startswith(".") and is_initials(core):
        core, after = core + ".", after[1:]
    return Word(core, not _BREAKS.isdisjoint(before), _ends(core, after))


def _ends(core: str, after: str) -> bool:
    if after == "." and core in _TITLES:
        return False
    return not _BREAKS.isdisjoint(after)
