"""Globs over citation paths: `*` and `?` stay within a folder, `**` crosses folders, all else is literal."""

from __future__ import annotations

import re
from functools import lru_cache

from concord.text.tokens import pattern

_WILDCARD = pattern(r"[*?]")
_ACROSS = pattern(r"((?<![^/])\*\*/|\*\*+)")  # with its slash where it stands for whole folders
_STEP = pattern(r"((?<![^/])\*\*/|\*\*+|[*?])")
_ANYTHING = "(?s:.*?)"
_FOLDERS = "(?:(?s:.*?)/)??"  # `docs/**/a.md` finds docs/a.md too


def literal_prefix(glob: str) -> str:
    """Return what every matching path begins with."""
    return _WILDCARD.split(glob, maxsplit=1)[0]


def is_prefix(glob: str) -> bool:
    """Whether a path matches exactly when it begins with the literal prefix."""
    return glob == literal_prefix(glob) + "**"


def sections(glob: str) -> list[str]:
    """Return a glob taken apart: `**/`, `**`, `*`, `?` and the literal text between them."""
    return ["**" if step.startswith("***") else step for step in _STEP.split(glob) if step]


def glob_matches(glob: str, path: str) -> bool:
    """Whether a path matches a glob as a whole."""
    return _compiled(glob).fullmatch(path) is not None


@lru_cache(maxsize=64)
def _compiled(glob: str) -> re.Pattern[str]:
    """Return a pattern that cannot backtrack without end, whatever the glob.

    What follows a star is taken where it first fits and never tried again (an atomic group). That loses no
    match: a later fit would only make the star longer, and the next star can be as much longer instead.
    """
    sections = _ACROSS.split(glob)
    last = len(sections) - 1
    pattern = _within_folder(sections[0], is_last=last == 0)
    for at in range(1, last, 2):
        skipped = _FOLDERS if sections[at].endswith("/") else _ANYTHING
        step = skipped + _within_folder(sections[at + 1], is_last=at + 1 == last)
        pattern += step if at + 1 == last else f"(?>{step})"
    return re.compile(pattern)


def _within_folder(section: str, is_last: bool) -> str:
    """Return a pattern for what stands between two `**`; the last one must reach the end of the path."""
    first, *rest = section.split("*")
    pattern = _literal(first)
    for number, part in enumerate(rest, 1):
        step = f"[^/]*?{_literal(part)}"
        pattern += step if is_last and number == len(rest) else f"(?>{step})"
    return pattern


def _literal(text: str) -> str:
    return "[^/]".join(map(re.escape, text.split("?")))
