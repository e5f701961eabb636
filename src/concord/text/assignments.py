"""Where is a name given its value: a constant of a piece of code, a key or section of a file of settings?

`LIMIT = 3`, `limit: int = 3`, `export LIMIT=3`, `#define LIMIT 3`, `static final int LIMIT = 3;` in code;
`limit = 3`, `limit: 3`, `"limit": 3`, `[limits]` in settings; `limit 3;`, `limits {` and `Limit 3` where most
lines are such, as those of nginx, sshd and Redis. What only uses a name gives it none: `if x == LIMIT`,
`run(limit=3)`.
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
_COMMENT = re.compile(r"[ \t]*+(?:[#;]|//)")
# `listen 80;`, `location / {`, `}`, or without a mark at its end: then no row of a table, and no sentence.
_DIRECTIVE = re.compile(
    r"[ \t]*+(?:\}[ \t]*+$|[A-Za-z_][\w.-]*+(?![ \t]*+[=:,])"
    r"(?:[^;{}\n]*+[;{][ \t]*+(?:#|$)|(?:[ \t]++[^;{},\t]*+)?(?<!\.)$))"
)
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
    forms = [_key(name), _key_in_comment(name)]
    if _has_directives(settings):
        forms = [_key(name), _directive(name), _key_in_comment(name), _directive_in_comment(name)]
    return next((at for form in forms if (at := _line_of(form, settings)) is not None), None)


def _has_directives(settings: str) -> bool:
    """Whether most lines that are no comments have a word and what it is set to, without a sign between."""
    lines = [line for line in settings.split("\n") if line.strip() and not _COMMENT.match(line)]
    return 3 * sum(_DIRECTIVE.match(line) is not None for line in lines) >= 2 * len(lines)


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
def _directive(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*+{re.escape(name)}(?:[ \t]++(?![=:,])\S|[ \t]*+\{{)", re.MULTILINE)


@lru_cache(maxsize=16)
def _directive_in_comment(name: str) -> re.Pattern[str]:
    """Return what finds `#Port 22`, and with a space no more than one value: `# maxmemory <bytes>`."""
    word = re.escape(name)
    return re.compile(
        rf"^[ \t]*+#(?:{word}[ \t]++(?![=:,])\S|[ \t]{word}[ \t]++(?![=:,])\S++[ \t]*+$)", re.MULTILINE
    )


@lru_cache(maxsize=16)
def _key_in_comment(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*[#;][ \t]?{re.escape(name)}[ \t]*=(?!=)", re.MULTILINE)
