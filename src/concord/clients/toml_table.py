"""Changing one table of a TOML file that people write: everything outside the table stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

_HEADER = re.compile(r"^[ \t]*\[{1,2}[^\]\n]+\]{1,2}[ \t]*(?:#.*)?$", re.MULTILINE)


def loads(text: str) -> dict[str, Any]:
    """Return the value of a text.

    Raises:
        ValueError: it is not TOML.
    """
    return tomllib.loads(text)


def with_table(text: str, section: str, key: str, value: Mapping[str, Any]) -> str:
    """Return the text with the table `[section.key]` holding a value; all other tables stay.

    Raises:
        ValueError: it is not TOML, or the table is written in a way that cannot be changed like this.
    """
    if loads(text).get(section, {}).get(key) == value:
        return text
    written = _written(section, key, value)
    found = _spans(text, section, key)
    if found:
        rest = without_spans(text, found[1:])
        return rest[: found[0][0]] + written + rest[found[0][1] :]
    _check_gone(text, section, key)
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    after = text + gap + written
    try:
        loads(after)
    except ValueError as fault:  # its line is none of the user's file
        raise ValueError(f"no table can be added to {section} as it is written there") from fault
    return after


def without_table(text: str, section: str, key: str) -> str:
    """Return the text without the table `[section.key]` and what belongs to it.

    Raises:
        ValueError: it is not TOML, or the table is written in a way that cannot be changed like this.
    """
    loads(text)
    rest = without_spans(text, _spans(text, section, key))
    _check_gone(rest, section, key)
    return rest


def without_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a text without some parts of it."""
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text


def _check_gone(text: str, section: str, key: str) -> None:
    """Refuse a text that has the table in another form: in one line, by dotted keys, as a list of tables."""
    if key in loads(text).get(section, {}):
        raise ValueError(f"{section}.{key} is written there in another way than below [{section}.{key}]")


def _spans(text: str, section: str, key: str) -> list[tuple[int, int]]:
    """Return where the table and its sub-tables are: each from its header to the next."""
    names = rf"{_quotable(section)}[ \t]*\.[ \t]*{_quotable(key)}"
    ours = re.compile(rf"^[ \t]*\[[ \t]*{names}[ \t]*[\].]")
    headers = [*_HEADER.finditer(text)]
    ends = [header.start() for header in headers[1:]] + [len(text)]
    spans = [(h.start(), end) for h, end in zip(headers, ends, strict=False) if ours.match(h[0])]
    return [(start, start + _length(text[start:end])) for start, end in spans]


def _quotable(name: str) -> str:
    """Return the pattern of a name with or without quotation marks."""
    return rf'(?:{re.escape(name)}|"{re.escape(name)}"|\'{re.escape(name)}\')'


def _length(table: str) -> int:
    """Return how long a table is without the comments and blank lines that lead over to the next."""
    lines = table.splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return sum(map(len, lines))


def _written(section: str, key: str, value: Mapping[str, Any]) -> str:
    """Write a table of strings, lists of strings and tables of strings; a JSON string is a TOML string."""
    lines = [f"[{section}.{key}]"]
    for name, item in value.items():
        if isinstance(item, Mapping):
            pairs = ", ".join(
                f"{json.dumps(k)} = {json.dumps(v, ensure_ascii=False)}" for k, v in item.items()
            )
            lines.append(f"{name} = {{ {pairs} }}")
        else:
            lines.append(f"{name} = {json.dumps(item, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"
