"""Git's ignore rules, one folder's at a time, fast enough to be asked about every file.

A pattern means here what it means to git, path by path; that nothing below an ignored folder counts is the
walk's affair. A name is looked up in sets made of the patterns' last parts; few patterns are ever tried.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from concord.files.opening import open_regular

IGNORE_FILES = (".gitignore", ".kbignore")  # both git's syntax; within a folder the later has the last word
MAX_IGNORE_BYTES = 1_000_000

_WILD = re.compile(r"[*?\[\\]")
_BRACKET = re.compile(r"\[([!^]?)(\]?(?:\[:\w+:\]|\\.|[^\]\\])*+)\]", re.DOTALL)
# A class, a character, a range.
_BRACKET_ITEM = re.compile(r"\[:(\w+):\]|(\\.|.)(?:-(\\.|[^\]]))?", re.DOTALL)
_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "xdigit": "0-9a-fA-F",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
}


class Pattern(NamedTuple):
    """One line of an ignore file."""

    ignores: bool  # False for a !line, which takes back
    folders_only: bool
    by_name: bool  # it has no slash, and is matched against the last part of a path
    last: str  # its own last part
    regex: str  # compiled when a path first comes near: most never are

    def speaks_of(self, name: str, path: str, is_folder: bool) -> bool:
        """Return whether the line is about this path."""
        if self.folders_only and not is_folder:
            return False
        return _compiled(self.regex).fullmatch(name if self.by_name else path) is not None


@lru_cache(maxsize=4096)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


def parse(line: str) -> Pattern | None:
    """Return what a line says; None for a comment, an empty line and what makes no sense to git either."""
    body = _without_trailing_spaces(line)
    if body.startswith("#"):
        return None
    ignores = not body.startswith("!")
    body = body if ignores else body[1:]
    bare = body.removesuffix("/")
    parts = bare.removeprefix("/").split("/")
    if not any(parts):
        return None
    try:
        regex = _path_regex(parts) if "/" in bare else _part_regex(bare)
    except (ValueError, LookupError):
        return None
    return Pattern(ignores, body != bare, "/" not in bare, parts[-1], regex)


def _without_trailing_spaces(line: str) -> str:
    kept = line.rstrip(" ")
    escaped = (len(kept) - len(kept.rstrip("\\"))) % 2 == 1
    return kept + " " if escaped and kept != line else kept


def _path_regex(parts: Sequence[str]) -> str:
    """Return a regular expression for a pattern with slashes.

    What stands between two ** may match at the first place where it can, for what follows can then match
    wherever it could have matched: the group is atomic, and a crafted pattern costs no more than its length.
    """
    runs: list[list[str]] = [[]]  # of parts, between the **
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(_part_regex(part))
    first, *others = ("/".join(run) for run in runs)
    if not others:
        return first
    last = others.pop()
    between = "".join(rf"(?>(?:[^/]+/)*?{run}/)" for run in others if run)
    start = first + "/" if first else ""
    return start + between + (rf"(?:[^/]+/)*{last}" if last else ".+")


def _part_regex(part: str) -> str:
    """Return a regular expression for the pattern of one name; atomic between stars, as above."""
    if not _WILD.search(part):
        return re.escape(part)
    pieces = [""]  # between the stars
    at = 0
    while at < len(part):
        if part[at] == "*":
            pieces.append("")
            at += 1
        else:
            piece, at = _one_character(part, at)
            pieces[-1] += piece
    first, *others = pieces
    if not others:
        return first
    last = others.pop()
    return first + "".join(f"(?>[^/]*?{piece})" for piece in others if piece) + f"[^/]*{last}"


def _one_character(part: str, at: int) -> tuple[str, int]:
    """Return what matches the one character that a pattern asks for at this place, and the place after it."""
    if part[at] == "?":
        return "[^/]", at + 1
    if part[at] == "[":
        bracket = _BRACKET.match(part, at)
        if bracket is None:
            raise ValueError("a bracket without its end")
        return f"(?!/)[{'^' if bracket[1] else ''}{_bracket_inside(bracket[2])}]", bracket.end()
    if part[at] == "\\" and at + 1 == len(part):
        raise ValueError("a backslash with nothing after it")
    at += part[at] == "\\"
    return re.escape(part[at]), at + 1


def _bracket_inside(inside: str) -> str:
    return "".join(_bracket_item(*found.groups()) for found in _BRACKET_ITEM.finditer(inside))


def _bracket_item(name: str | None, low: str | None, high: str | None) -> str:
    if name:
        return _CLASSES[name]
    ends = [end[-1] for end in (low, high) if end]  # the last character: a backslash may come before it
    if sorted(ends) != ends:
        raise ValueError("a range that ends before it begins")
    return "-".join(map(re.escape, ends))


class Rules:
    """What one folder's ignore files say of what lies below it."""

    def __init__(self, patterns: Sequence[Pattern], *, cut: int = 0, prefix: str = "") -> None:
        """Take patterns; their folder is `cut` characters below the walk's root, or above it by `prefix`."""
        self._cut = cut
        self._prefix = prefix
        self._patterns = tuple(reversed(patterns))  # the last one that speaks of a path decides
        lasts = {pattern.last for pattern in patterns if pattern.last.strip("*")}
        self._literals = frozenset(last for last in lasts if not _WILD.search(last))
        self._suffixes = tuple(last[1:] for last in lasts if last[0] == "*" and not _WILD.search(last[1:]))
        self._prefixes = tuple(last[:-1] for last in lasts if last[-1] == "*" and not _WILD.search(last[:-1]))
        known = {*self._literals, *("*" + s for s in self._suffixes), *(p + "*" for p in self._prefixes)}
        self._names = _any_of(_part_regex(last) for last in lasts - known)
        starry = [pattern for pattern in patterns if not pattern.last.strip("*")]
        self._paths = _any_of(".+" if pattern.by_name else pattern.regex for pattern in starry)

    def verdict(self, name: str, path: str, is_folder: bool) -> bool | None:
        """Return whether a path is ignored (True), taken back (False) or not spoken of (None).

        `path` is from the walk's root, `name` its last part.
        """
        if (
            name in self._literals
            or name.endswith(self._suffixes)
            or name.startswith(self._prefixes)
            or (self._names is not None and self._names.fullmatch(name))
            or (self._paths is not None and self._paths.fullmatch(self._prefix + path[self._cut :]))
        ):
            return self._decide(name, self._prefix + path[self._cut :], is_folder)
        return None

    def verdict_above(self, path: str, is_folder: bool) -> bool | None:
        """Return the verdict on a path, or that on the nearest folder above it that has one."""
        while path:
            above, _, name = path.rpartition("/")
            spoken = self.verdict(name, path, is_folder)
            if spoken is not None:
                return spoken
            path, is_folder = above, True
        return None

    def _decide(self, name: str, path: str, is_folder: bool) -> bool | None:
        for pattern in self._patterns:
            if pattern.speaks_of(name, path, is_folder):
                return pattern.ignores
        return None


def _any_of(expressions: Iterable[str]) -> re.Pattern[str] | None:
    joined = "|".join(f"(?:{expression})" for expression in expressions)
    return re.compile(joined) if joined else None


def parse_all(lines: Iterable[str]) -> list[Pattern]:
    """Return the lines that say something."""
    return [pattern for line in lines if (pattern := parse(line)) is not None]


class FolderRules(NamedTuple):
    """The rules of one folder, and what its .kbignore asks for although it would be left out."""

    ignored: Rules
    wanted: Rules | None


def rules_in(folder: str, names: Collection[str], *, cut: int = 0, prefix: str = "") -> FolderRules | None:
    """Return the rules that a folder's ignore files set, if any; `names` is what is in the folder."""
    found = {name: parse_all(_lines(folder, name)) for name in IGNORE_FILES if name in names}
    if ".git" in names:
        found = {"exclude": parse_all(_lines(folder, ".git/info/exclude")), **found}
    patterns = [pattern for group in found.values() for pattern in group]
    if not patterns:
        return None
    # `!*` takes back everything that this file ignores, and names nothing that nobody ever wants.
    taken_back = [p for p in found.get(".kbignore", ()) if not p.ignores and p.last.strip("*")]
    asked = [pattern._replace(ignores=True) for pattern in taken_back]
    wanted = Rules(asked, cut=cut, prefix=prefix) if asked else None
    return FolderRules(Rules(patterns, cut=cut, prefix=prefix), wanted)


def rules_above(root: str) -> tuple[FolderRules, ...]:
    """Return the rules of the git repository that a folder lies in, nearest first.

    None of them, if they ignore the folder itself: who names it wants it.
    """
    found: list[FolderRules] = []
    folder, prefix = root, ""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above, name = os.path.split(folder)
        if above == folder:
            return ()  # no repository
        folder, prefix = above, f"{name}/{prefix}"
        names = (*IGNORE_FILES, ".git")
        if own := rules_in(folder, names):
            if own.ignored.verdict_above(prefix[:-1], is_folder=True):
                return ()
            found.append(rules_in(folder, names, prefix=prefix) or own)
    return tuple(found)


def _lines(folder: str, name: str) -> Sequence[str]:
    """Return the lines of an ignore file; none, if it is not a regular file that can be read."""
    try:
        with open(os.path.join(folder, name), "rb", opener=open_regular) as file:
            data = file.read(MAX_IGNORE_BYTES)
    except OSError:
        return ()
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")
