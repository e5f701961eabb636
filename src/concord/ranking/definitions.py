"""Which name does a query ask for the definition of, and where is it defined?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from concord.ranking.identifiers import shape
from concord.ranking.words import STOPS
from concord.text.pattern import pattern
from concord.text.symbols import defines
from concord.types import Survivor

_NAME = r"(?P<{}>[^\W\d][\w$]*(?:(?:\.|::|->|#)[^\W\d][\w$]*)*[?!]?(?:\(\))?)"
_KIND = r"(?:def|class|func|function|fn|fun|method|struct|interface|enum|trait|macro)"
_ASKED = pattern(
    rf"{_NAME.format('alone')}"
    rf"|{_KIND}\s+{_NAME.format('kind')}"  # def getconn
    rf"|where\s+(?:is|are)\s+(?:the\s+)?(?:{_KIND}\s+)?{_NAME.format('where')}"
    r"\s+(?:defined|implemented|declared)\s*\?*"
    rf"|(?:the\s+)?(?:definition|implementation|signature|source)\s+of\s+(?:the\s+)?(?:{_KIND}\s+)?"
    rf"{_NAME.format('what')}"
    rf"|{_NAME.format('before')}\s+(?:definition|implementation|signature|source)",
    re.IGNORECASE,
)
# One of these is in whatever else asks for a definition: most queries are answered without the pattern.
_ASKING = {
    "def", "class", "func", "function", "fn", "fun", "method", "struct", "interface", "enum", "trait",
    "macro", "where", "definition", "implementation", "signature", "source",
}  # fmt: skip
# Words around a name that ask what it is, and for nothing else.
_ABOUT = {
    "a", "an", "the", "of", "for", "in", "is", "are", "what", "which", "does", "do", "mean", "means",
    "meaning", "default", "defaults", "value", "setting", "option", "parameter", "argument", "variable",
    "attribute", "property", "field", "type", "config", "configuration", "function", "method", "class",
    "purpose", "explain", "describe", "description", "documentation", "docs", "reference",
}  # fmt: skip
_BEFORE_OWNER = {"in", "of", "from"}
MOST_WORDS = 8
_PARTS = pattern(r"\.|::|->|#")
_WHOLE_NAME = pattern(_NAME.format("whole"))


class AskedName(NamedTuple):
    """A name as it was written, and what it is said to be of: argparse, in "parse_args in argparse"."""

    written: str
    within: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What is defined: acquire, of pool.acquire()."""
        return self._parts()[-1]

    @property
    def owners(self) -> tuple[str, ...]:
        """What the name belongs to: pool, of pool.acquire()."""
        return (*self._parts()[:-1], *self.within)

    @property
    def is_qualified(self) -> bool:
        """Whether it is written with what it belongs to."""
        return len(self._parts()) > 1

    @property
    def is_sure(self) -> bool:
        """Whether it can only be a name, whatever words are around it."""
        return shape(self.written) == "sure"

    def _parts(self) -> list[str]:
        return _PARTS.split(self.written.removesuffix("()"))


def asked_name(text: str) -> AskedName | None:
    """Return the name whose definition a query asks for, if it asks for nothing else.

    It is a name alone, whatever its case, or with words that ask for it; or what can only be a name, with
    words that ask what it is.
    """
    words = text.split()
    if len(words) == 1 and words[0].removesuffix("()").isidentifier():
        return AskedName(words[0])  # most names, read without a regular expression
    if len(words) > MOST_WORDS:
        return None
    if len(words) == 1 or not _ASKING.isdisjoint(map(str.lower, words)):
        found = _ASKED.fullmatch(text.strip())
        if name := next((part for part in found.groupdict().values() if part), None) if found else None:
            return AskedName(name)
    return _asked_about(words)


def _asked_about(words: Sequence[str]) -> AskedName | None:
    """Return the one sure name in what else only asks for it, with what it is in: what does X do in Y?"""
    bare = [word.strip(STOPS) for word in words]
    told = [at for at, word in enumerate(bare) if word.lower() not in _ABOUT]
    if not 1 <= len(told) <= 2:
        return None
    names = [at for at in told if shape(bare[at]) == "sure" and _WHOLE_NAME.fullmatch(bare[at])]
    owners = [at for at in told if at not in names]
    if len(names) != 1 or any(at == 0 or bare[at - 1].lower() not in _BEFORE_OWNER for at in owners):
        return None
    return AskedName(bare[names[0]], tuple(bare[at] for at in owners))


def is_definition(survivor: Survivor, asked: AskedName) -> bool:
    """Whether a passage defines a name: code where that begins, what stands under it, or its entry.

    Many have an entry for run: that of subprocess.run stands in a place about subprocess.
    """
    text, name = survivor.chunk.text, asked.name
    if survivor.document.type == "code":
        return defines(name, text)
    if name in survivor.chunk.heading[-1:]:
        return True
    from concord.ranking.places import share_in_place  # late, both: few queries ask for a name
    from concord.text.term_lines import explains

    is_entry = explains(name, text, is_page=survivor.document.type == "html")
    return is_entry and (not asked.is_qualified or share_in_place(asked.owners, survivor) > 0)
