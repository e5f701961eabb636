"""Is a name the term of a line, as manuals explain it: in a directive, a list of definitions or a table?

Such lines are `.. function:: mod.name(`, `* **name** (string) …`, `` - `name`: … `` and `| name | … |`; a
line of its own above what is said of it, as the terms of an HTML page's lists arrive here; and `name=` above
indented text, as in manuals set as plain text. Terms of a manual page may have arguments: `olddir directory`.
"""

from __future__ import annotations

import re
from functools import lru_cache

_KINDS = (
    "function|class|method|classmethod|staticmethod|attribute|property|data|exception|decorator"
    "|decoratormethod|option|envvar|confval|setting|module|member|macro|type|var|struct|union|enum|enumerator"
    "|describe|object|autofunction|autoclass|automethod|autoattribute|autodata|autoexception"
)
_MARKS = r"[*_`]{0,4}"
_LINKED = r"(?:<a\b[^<>\n]*>)?\[?"  # a row may be linked to, or link to more
_LINK_END = r"(?:\]\([^()\n]*\))?(?:</a>)?"
_MARKED = r"[*_`]{1,4}"
_MODIFIERS = r"(?:(?:class|exception|async|static|classmethod|staticmethod|property|abstract|final)[ \t]+)*"
_OWNERS = r"(?:\w+(?:\.|::|->|#))*"


def explained_at(name: str, text: str, *, is_page: bool = False) -> int | None:
    """Return where the line begins whose term is a name; None if there is none.

    A term may have parameters only on an HTML page: elsewhere that is a call.
    """
    found = _term(name, is_page).search(text) if name in text else None
    return text.rfind("\n", 0, text.index(name, found.start())) + 1 if found else None


@lru_cache(maxsize=16)
def _term(name: str, is_page: bool) -> re.Pattern[str]:
    """Return where a name is a term; a query looks for one name in many texts."""
    last = rf"(?<!\w){re.escape(name)}(?![\w.])"
    whole = _OWNERS + last
    # Up to three signatures stand below each other.
    directive = rf"^[ \t]*\.\.[ \t]+(?:\w+:)?(?:{_KINDS})::(?:[^\n]+\n){{0,2}}?[^\n(=]*?{last}"
    # A sign follows, or a type: "- `name` is faster", in a list of changes, explains nothing.
    item = rf"^[ \t]*[*+-][ \t]+{_MARKED}{whole}(?:\(\))?{_MARKS}+[ \t]*(?:$|[-–—:(\[{{<=|,?*_`])"
    cell = rf"^[ \t]*\|[ \t]*{_LINKED}{_MARKS}{whole}(?:\(\))?{_MARKS}{_LINK_END}[ \t]*\|"
    parameters = r"(?:\([^\n]*)?" if is_page else r"(?:\(\))?"
    kind = r"(?:[ \t]\([^()\n]*\))?:{0,2}[ \t]*"
    paragraph = rf"(?:\A|^[ \t]*\n){_MODIFIERS}{_MARKS}{whole}{parameters}{_MARKS}{kind}\n\s*\S"
    others = r"[\w-]+(?:=[\w-]*)?"
    above = r"(?:\A|^[ \t]*\n|^[A-Z][A-Z ]*\n)"
    manual = (
        rf"{above}(?P<indent>[ \t]*+){_MARKS}(?:{others},[ \t]+)*{last}(?:=[\w-]*)?(?:,[ \t]+{others})*"
        rf"{_MARKS}[ \t]*\n(?P=indent)[ \t]+\S"
    )
    entry = rf"(?:\A|^[ \t]*\n){whole}[ \t]+[^\s:][^\n:]{{0,60}}\n {{2,3}}\S"
    return re.compile(f"{directive}|{item}|{cell}|{paragraph}|{manual}|{entry}", re.MULTILINE)
