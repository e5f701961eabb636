"""Does a dash in a query belong to an option, such as `find -mtime`, or does it exclude a word?

A word is an option if a passage writes it with its dash, as `-mtime` or in `tar -xzf`; so are several letters
if passages about the same command write each of them with a dash. Other dashes of prose make no option: lists
("- pie", "-pie"), divided words and "Vor- und -nachname". Numbers and single letters are never excluded
(`text.expression`), so they are not looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from concord.text.contains import contains
from concord.text.parse import Dashed
from concord.text.terms import any_of, phrase_match, word_match
from concord.types import Chunk, Document, Filter, Match

if TYPE_CHECKING:
    from concord.storage import Store

LOOKED_AT = 20  # passages, those first that have the word or the two side by side
MAX_BUNDLE = 4  # letters of several options behind one dash, as in -xzf
_BEFORE = r"(?<![^\s(\[{<|,/\"'`“‘=])"  # a dash after anything else joins two words
_DIVIDED = re.compile(r"-\s+\w+\s+\Z")  # Vor- und
_LETTER = re.compile(rf"{_BEFORE}-([A-Za-z])(?![\w-])")


def is_option(dashed: Dashed, store: Store) -> bool:
    """Whether passages write a word with its dash, as the query does, or each of its letters."""
    match = _where_to_look(dashed)
    if match is None:
        return False
    found = store.lexical.search(match, Filter(include_superseded=True), LOOKED_AT)
    read = store.catalog.read([one.chunk_id for one in found]).values()
    written = re.compile(rf"{_BEFORE}-{re.escape(dashed.word)}(?![\w-])", re.IGNORECASE)
    return any(_writes(written, chunk.text) for chunk, _ in read) or _is_bundle(dashed, read)


def _where_to_look(dashed: Dashed) -> Match | None:
    asked = [
        phrase_match(f"{dashed.before} {dashed.word}"),
        word_match(dashed.word),
        word_match(dashed.before),
    ]
    if dashed.before and _is_short(dashed.word):
        asked += map(word_match, dashed.word)
    return any_of([one for one in asked if one])


def _writes(option: re.Pattern[str], text: str) -> bool:
    return any(_is_one(text, *found.span()) for found in option.finditer(text))


def _is_one(text: str, start: int, end: int) -> bool:
    """Whether what has a dash is an option, and no item of a list or second half of a compound."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    rest = text[end:].partition("\n")[0]
    if not line.strip():  # an option is described, on its line or in those below
        return bool(rest.strip()) or _is_described(text, end, indent=len(line))
    return not _DIVIDED.search(line)


def _is_described(text: str, end: int, indent: int) -> bool:
    below = text[end:].partition("\n")[2].partition("\n")[0]
    return len(below) - len(below.lstrip()) > indent and below.lstrip()[:1] != "-"


def _is_bundle(dashed: Dashed, read: Iterable[tuple[Chunk, Document]]) -> bool:
    """Whether each letter is an option in passages that name the command."""
    if not dashed.before or not _is_short(dashed.word):
        return False
    about = (c.text for c, document in read if contains(f"{document.title}\n{c.text}", dashed.before))
    return set(dashed.word) <= {letter for text in about for letter in _LETTER.findall(text)}


def _is_short(word: str) -> bool:
    return word.isascii() and word.isalpha() and 2 <= len(word) <= MAX_BUNDLE
