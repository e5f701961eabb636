"""Where is a name given its value: a constant of a piece of code, a key or section of a file of settings?

`LIMIT = 3`, `limit: int = 3`, `export LIMIT=3`, `#define LIMIT 3`, `static final int LIMIT = 3;` in code;
`limit = 3`, `limit: 3`, `"limit": 3`, `[limits]` in settings. What only uses a name gives it none:
`if x == LIMIT`, `run(limit=3)`.
"""

from __future__ import annotations

import re
from functools import lru_cache

_MODIFIERS = (
    r"(?:(?:export|declare|readonly|typeset|public|private|protected|internal|static|final|pub(?:\([a-z]+\))?"
    r"|const|constexpr|inline|extern|let|var|val|ENV|ARG|set|setenv)[ \t]+(?:-\w+[ \t]+)?)"
)
_TYPE = r"(?:[\w<>\[\]:.]+[ \t*&]+)?"  # of static final int LIMIT
_ANNOTATED = r"[ \t]*+:[ \t]*+[^\s=][^=\n]{0,79}"  # of limit: int = 3
_SIGN = r"[ \t]*[:?+]?=(?![=~>])"
# Without spaces and before a comma it is an argument of a call: limit=3,
_NO_ARGUMENT = r"(?:(?<=[ \t]=)[ \t]|(?![^\n]*,[ \t]*$))"


def assigned_at(name: str, code: str) -> int | None:
    """Return where the line begins that gives a name its value in a piece of code.

    It is not indented, unless the name has a capital, as constants of classes have, or its type stands there.
    """
    return _line_of(_assignment(name), code) if name in code else None


def set_at(name: str, settings: str) -> int | None:
    """Return where the line begins that has a name as its key, or is the heading of its section.

    A key in a comment shows what would be so: `#limit = 3`.
    """
    if name not in settings:
        return None
    at = _line_of(_key(name), settings)
    return _line_of(_key_in_comment(name), settings) if at is None else at


def _line_of(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return found.start() if found else None


@lru_cache(maxsize=16)
def _assignment(name: str) -> re.Pattern[str]:
    whole = rf"{re.escape(name)}(?![\w$])"
    indent = r"[ \t]*" if name.lstrip("_")[:1].isupper() else ""
    defined = rf"^[ \t]*#[ \t]*define[ \t]+{whole}"
    declared = rf"^{indent}{_MODIFIERS}+{_TYPE}{whole}(?:{_ANNOTATED})?(?:[ \t]*+[=;]|[ \t]++\S)"
    several = rf"^{indent}[(\[]?(?:\w+,[ \t]*)*{whole}(?:,[ \t]*\w+)*[)\]]?{_SIGN}{_NO_ARGUMENT}"
    after_others = rf"^(?:\w+[ \t]*=[ \t]*)+{whole}{_SIGN}"
    annotated = rf"^[ \t]*{whole}{_ANNOTATED}=(?!=){_NO_ARGUMENT}"
    exported = rf"^(?:module\.)?exports\.{whole}{_SIGN}"
    return re.compile("|".join((defined, declared, several, after_others, annotated, exported)), re.MULTILINE)


@lru_cache(maxsize=16)
def _key(name: str) -> re.Pattern[str]:
    whole = rf"(?:[\w-]+\.)*{re.escape(name)}"
    key = rf"^[ \t]*(?:-[ \t]+)?(?:export[ \t]+)?[\"']?{whole}[\"']?[ \t]*(?:=(?!=)|:(?!\S))"
    section = rf"^[ \t]*\[+[ \t\"']*{whole}[ \t\"']*\]"
    return re.compile(f"{key}|{section}", re.MULTILINE)


@lru_cache(maxsize=16)
def _key_in_comment(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*[#;][ \t]?{re.escape(name)}[ \t]*=(?!=)", re.MULTILINE)
