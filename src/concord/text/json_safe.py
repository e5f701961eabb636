"""JSON that any parser takes and that nothing in it can steer a terminal with."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from concord.core.errors import Hint
from concord.text.clean import encodable
from concord.text.visible import HIDDEN

JsonObject = dict[str, Any]


def json_object(wire: Mapping[str, Any]) -> JsonObject:
    """Return an object whose values any JSON parser takes."""
    return {key: json_safe(value) for key, value in wire.items()}


def json_safe(value: Any) -> Any:
    """Return a value that any JSON parser takes: no lone surrogate, no NaN, other kinds of thing as text."""
    if isinstance(value, Hint):
        return Hint(
            value.action, encodable(value.text), **{key: encodable(arg) for key, arg in value.args.items()}
        )
    if isinstance(value, str):
        return encodable(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {json_safe(str(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_safe(item) for item in value]
    return json_safe(str(value))


def to_text(wire: Any, *, indent: int | None = None) -> str:
    """Return JSON text, compact unless indented, in which nothing can steer a terminal."""
    separators = (",", ":") if indent is None else None
    return json_text(json.dumps(wire, ensure_ascii=False, indent=indent, separators=separators))


def json_text(text: str) -> str:
    """Return the same JSON, with such characters as JSON's own escapes: no parser sees a difference."""
    if text.isascii() and "\x7f" not in text:  # whoever wrote the JSON has escaped the other controls
        return text
    return re.sub(f"[{HIDDEN}]", _json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
