"""A name that has one spelling: a code, an e-mail address, or an identifier, whose last part counts."""

from __future__ import annotations

from collections.abc import Iterator

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.ranking.word_shapes import SNAKE, shape
from concord.text.pattern import pattern
from concord.types import Query

# One thing of many, told by its number; not a product (e2fsprogs), a compound or a list (MP3/Ogg).
_ENDS_IN_NUMBER = pattern(r"[^/<>]*[0-9][A-Za-z]{0,2}")
_MAIL = pattern(r"[^\s/@]+@[^\s/@]+\.[^\s/@]+")


def _named(found: FoundTexts) -> Iterator[str]:
    yield from (name for name in found.query.entities if _decisive(name, found.query))


def _is_held(named: str, found: FoundTexts) -> bool | None:
    part = _decisive(named, found.query) if named in found.query.entities else None
    return found.has_words(part) if part else None


def _decisive(name: str, query: Query) -> str | None:
    """Return the part of a name that a text must have as it is written; None for a name with other spellings.

    A text that defines `URL.copy_with` has its second part alone. In a sentence, words joined by capitals may
    be brands, which other texts spell otherwise (PostgreSQL, Postgres).
    """
    if shape(name) != "sure" or name.startswith("-"):  # an option is a kind of its own
        return None
    last = name.removesuffix("()").rpartition(".")[2].rpartition("::")[2]
    is_alone = query.text.strip() == name
    if SNAKE.fullmatch(last) or is_alone and last.isalpha() and shape(last) == "sure":
        return last
    return name if _ENDS_IN_NUMBER.fullmatch(name) or _MAIL.fullmatch(name) else None


KIND = Kind(_named, _is_held)
