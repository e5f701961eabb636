"""Changing one member of a JSON file that people write: comments, order and layout of all else stay.

Comments (`//`, `/* */`) and commas before a closing bracket are allowed, as editors take them in settings.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_BLANK = "\ufeff \t\r\n"
_SPACE = re.compile(f"[{_BLANK}]*")
# A string, or a comment: whichever begins first hides the other.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_DANGLING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=[ \t\r\n]*[}\]])', re.DOTALL)
_DECODER = json.JSONDecoder()


class Member(NamedTuple):
    """A key and its value, and where they are: the value ends where `end` says, the key begins at `start`."""

    key: str
    value: Any
    start: int
    value_start: int
    end: int


class _Object(NamedTuple):
    """An object's members, between its braces."""

    open: int
    close: int
    members: list[Member]

    def get(self, key: str) -> Member | None:
        """Return the member of a key: the last, as parsers have it."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def loads(text: str) -> Any:
    """Return the value of a text; nothing but comments is an empty object.

    Raises:
        ValueError: it is not JSON, even with comments.
    """
    plain = _plain(text)
    return json.loads(plain.lstrip(_BLANK)) if plain.strip(_BLANK) else {}


def with_member(text: str, section: str, key: str, value: Any) -> str:
    """Return the text with `key` in the object `section` set to a value; all else is left as it is.

    Raises:
        ValueError: it is not JSON, or there is no room for an object of that name.
    """
    if not loads(text) and not _plain(text).strip(_BLANK):
        return text + json.dumps({section: {key: value}}, indent=2, ensure_ascii=False) + "\n"
    root = _root(text)
    holder = root.get(section)
    if holder is None:
        return _inserted(text, root, section, {key: value})
    inner = _object(text, holder)
    old = inner.get(key)
    if old is None:
        return _inserted(text, inner, key, value)
    if old.value == value:
        return text
    written = _written(value, _indent_at(text, old.start), _unit(text), _newline(text))
    return text[: old.value_start] + written + text[old.end :]


def without_member(text: str, section: str, key: str) -> str:
    """Return the text without `key` in the object `section`, however often; the same text when there is none.

    Raises:
        ValueError: it is not JSON.
    """
    if not loads(text):
        return text
    holder = _root(text).get(section)
    if holder is None or not isinstance(holder.value, dict) or key not in holder.value:
        return text
    inner = _object(text, holder)
    index = max(i for i, member in enumerate(inner.members) if member.key == key)
    return without_member(_removed(text, inner, index), section, key)


def _root(text: str) -> _Object:
    start = _SPACE.match(_plain(text)).end()  # type: ignore[union-attr]  # an empty match is a match
    return _members(text, start)


def _object(text: str, holder: Member) -> _Object:
    if not isinstance(holder.value, dict):
        raise ValueError(f"{holder.key!r} is not an object")
    return _members(text, holder.value_start)


def _members(text: str, start: int) -> _Object:
    plain = _plain(text)
    if plain[start : start + 1] != "{":
        raise ValueError("it does not hold a JSON object")
    members, at = [], _skip(plain, start + 1)
    while plain[at] != "}":
        key, after_key = _DECODER.raw_decode(plain, at)
        value_start = _skip(plain, _skip(plain, after_key) + 1)
        value, end = _DECODER.raw_decode(plain, value_start)
        members.append(Member(key, value, at, value_start, end))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return _Object(start, at, members)


def _inserted(text: str, into: _Object, key: str, value: Any) -> str:
    """Put a new member last, after whatever comments follow the one that was last so far."""
    newline, unit = _newline(text), _unit(text)
    outer = _indent_at(text, into.open)
    indent = _indent_at(text, into.members[-1].start) if into.members else outer + unit
    if into.members and newline not in text[into.open : into.close]:
        indent = outer + unit
    member = f"{json.dumps(key, ensure_ascii=False)}: {_written(value, indent, unit, newline)}"
    end = into.members[-1].end if into.members else into.open + 1
    comma = "," if into.members and "," not in _without_comments(text[end : into.close]) else ""
    between = text[end : into.close].rstrip()
    return f"{text[:end]}{comma}{between}{newline}{indent}{member}{newline}{outer}{text[into.close :]}"


def _removed(text: str, inner: _Object, index: int) -> str:
    """Remove a member, with a comma beside it and the line that would be left empty."""
    member, last = inner.members[index], index == len(inner.members) - 1
    bare = _without_comments(text)
    start, end = member.start, member.end
    after = _skip(bare, end)
    if bare[after] == ",":
        end = after + 1
    elif last and index:
        comma = bare.rindex(",", inner.open, start)
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    line_start = text.rfind("\n", 0, start) + 1
    if not text[line_start:start].strip():
        rest = re.match(r"[ \t]*\r?\n", text[end:])
        start, end = (line_start, end + rest.end()) if rest else (start, end)
    return text[:start] + text[end:]


def _written(value: Any, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return (newline + indent).join(lines)


def _plain(text: str) -> str:
    """Return strict JSON of the same length: comments and dangling commas are blanks."""
    return _DANGLING_COMMA.sub(lambda m: m[0] if m[0][0] == '"' else " ", _without_comments(text))


def _without_comments(text: str) -> str:
    return _STRING_OR_COMMENT.sub(lambda m: m[0] if m[0][0] == '"' else re.sub(r"[^\n]", " ", m[0]), text)


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    end = found.end() if found else at
    if end >= len(plain):
        raise ValueError("it ends too soon")
    return end


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    """Return one step of the file's own indentation."""
    found = re.search(r"\n([ \t]+)\S", _without_comments(text))
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
