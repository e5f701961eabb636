"""Which name does a query ask for the definition of, and where is it defined?"""

from __future__ import annotations

import re

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
MOST_WORDS = 8
_PARTS = pattern(r"\.|::|->|#")


def asked_name(text: str) -> str | None:
    """Return the name whose definition a query asks for, if it asks for nothing else.

    It is a name alone, whatever its case, or with words that ask for it; of `pool.acquire()`, acquire.
    """
    words = text.split()
    if len(words) == 1 and words[0].removesuffix("()").isidentifier():
        return words[0].removesuffix("()")  # most names, read without a regular expression
    if len(words) > MOST_WORDS or len(words) > 1 and _ASKING.isdisjoint(map(str.lower, words)):
        return None
    found = _ASKED.fullmatch(text.strip())
    name = next((part for part in found.groupdict().values() if part), None) if found else None
    return _PARTS.split(name.removesuffix("()"))[-1] if name else None


def is_definition(survivor: Survivor, name: str) -> bool:
    """Whether a passage is where a name is defined: code where that begins, or what stands under it."""
    if survivor.document.type == "code":
        return defines(name, survivor.chunk.text)
    return name in survivor.chunk.heading[-1:]
