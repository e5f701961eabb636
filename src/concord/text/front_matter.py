"""What stands between --- and --- (YAML) or +++ and +++ (TOML) at the head of a Markdown file.

Front matter that does not parse is content, never an error. What it holds is made fit for JSON: dates become
ISO strings, keys become strings, and what grows out of proportion (a YAML alias bomb) is not read at all.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, time
from itertools import accumulate
from typing import Any, NamedTuple

from concord.types import Json

MAX_CHARACTERS = 16_384  # what is longer is a document that begins with a rule
_MAX_WEIGHT = 4 * MAX_CHARACTERS  # values and their characters, once every alias is written out
_MAX_DEPTH = 50
_DEEP_LIST = re.compile(r"(?:[-?][ \t]+){50}")

_YAML = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class FrontMatter(NamedTuple):
    """What the head of a file says of it, and the file without that head."""

    text: str  # as many lines as before: those of the front matter are empty now
    block: str = ""  # the lines that are empty now
    title: str | None = None
    tags: tuple[str, ...] = ()
    details: Mapping[str, Json] = {}


def split_front_matter(text: str) -> FrontMatter:
    """Take the front matter, if there is any, from a text whose lines end in a plain newline."""
    block = (_YAML.match(text, 0, MAX_CHARACTERS) or _TOML.match(text, 0, MAX_CHARACTERS)) if text else None
    values = _read(block) if block else None
    if block is None or values is None:
        return FrontMatter(text)
    rest = "\n" * block[0].count("\n") + text[block.end() :]
    title = values.pop("title", None)
    tags = [tag for key in ("tags", "tag", "keywords") for tag in _tags(values.pop(key, None))]
    return FrontMatter(rest, block[0], _line(title) or None, tuple(dict.fromkeys(tags)), values)


def _read(block: re.Match[str]) -> dict[str, Json] | None:
    """Return what a block says, or None when it says nothing that can be understood."""
    try:
        values = tomllib.loads(block[1]) if block.re is _TOML else _load_yaml(block[1])
        plain = _Plain().value(values)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None  # all that PyYAML's constructors are known to raise on values that only look like theirs
    return plain if isinstance(plain, dict) else None


def _load_yaml(text: str) -> Any:
    import yaml  # 15 ms, and many trees have no front matter

    # libyaml recurses in C, where too deep is a crash, and its time grows with the square.
    if _nests_deeply(text):
        raise ValueError("nested more deeply than front matter is")
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as fault:
        raise ValueError from fault


def _nests_deeply(text: str) -> bool:
    depths = accumulate(1 if bracket in "[{" else -1 for bracket in re.findall(r"[\[\]{}]", text))
    return max(depths, default=0) > _MAX_DEPTH or _DEEP_LIST.search(text) is not None


class _Plain:
    """Turns parsed values into what JSON can say, and stops when there are too many of them."""

    def __init__(self) -> None:
        self.weight = 0

    def value(self, value: Any, depth: int = 0) -> Json:
        self.weight += 1 + (len(value) if isinstance(value, str) else 0)
        if self.weight > _MAX_WEIGHT or depth > _MAX_DEPTH:
            raise ValueError("more values than front matter has")
        if isinstance(value, Mapping):
            return {str(key): self.value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value(item, depth + 1) for item in value]
        return _scalar(value)


def _scalar(value: Any) -> Json:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    raise ValueError(f"{type(value).__name__} has no place in front matter")


def _line(value: Json) -> str:
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _tags(value: Json) -> list[str]:
    """Return tags given as a list or as one line: commas part them, else spaces."""
    if isinstance(value, str):
        value = value.split("," if "," in value else None)
    items = value if isinstance(value, list) else [value]
    return [tag for item in items if (tag := _line(item).lstrip("#"))]
