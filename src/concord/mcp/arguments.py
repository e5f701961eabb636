"""What a tool takes: the schema of an operation's arguments, and a call's arguments checked by it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from concord.core.arguments import Arguments
from concord.core.errors import Action, BadValue, Hint, nearest, worded

A = TypeVar("A", bound=Arguments)

MOST_NAMED = 5  # arguments complained about at once
NULL = {"type": "null"}
_MISSING = re.compile(r"Object missing required field `([^`]+)")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]+)")
_EXPECTED = re.compile(r"Expected (.+?)(?:, got|$)")


def input_schema(
    arguments: type[Arguments], names: Sequence[str], words: Mapping[Action, str], *, with_null: bool = False
) -> dict[str, Any]:
    """Return the JSON schema of some of an operation's arguments, without what only costs a model tokens.

    "X or null" is X: an argument may be left out. A program that sends JSON may also send null.
    """
    _, parts = msgspec.json.schema_components([arguments])

    def lean(node: Any) -> Any:
        if isinstance(node, list):
            return [lean(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            part = parts[node["$ref"].rpartition("/")[2]]
            return lean({**part, **{key: value for key, value in node.items() if key != "$ref"}})
        if "anyOf" in node and not with_null:
            (only,) = (option for option in node["anyOf"] if option != NULL)
            return lean({**only, **{key: value for key, value in node.items() if key != "anyOf"}})
        kept = {key: lean(value) for key, value in node.items() if not _is_noise(key, value)}
        if isinstance(kept.get("description"), str):
            kept["description"] = worded(Hint(Action.SEARCH, kept["description"]), words)
        return kept

    whole = lean(parts[arguments.__name__])
    types = get_type_hints(arguments, include_extras=True)
    properties = {name: {**whole["properties"][name], **_choices(types[name], with_null)} for name in names}
    needed = [name for name in names if name in whole.get("required", ())]
    schema = {"additionalProperties": False, "properties": properties, "type": "object"}
    return {**schema, "required": needed} if needed else schema


def _choices(kind: Any, with_null: bool) -> dict[str, Any]:
    """Return the values that an argument may have, in the order in which they are documented."""
    values = get_args(_plain(kind)) if get_origin(_plain(kind)) is Literal else ()
    return {"enum": list(values), "type": "string"} if values and not with_null else {}


def _is_noise(key: str, value: Any) -> bool:
    is_title = key == "title" and isinstance(value, str)
    return is_title or (key, value) in (("default", None), ("required", []))


def checked(
    tool: str, arguments: type[A], names: Sequence[str], given: Mapping[str, Any], *, strict: bool = False
) -> A:
    """Return a call's arguments.

    Unless it is strict, they are read as kindly as can be: null is left out, one text is a list of one.

    Raises:
        BadValue: some do not fit; it says how to make them fit.
    """
    types = get_type_hints(arguments, include_extras=True)
    sent = {name: value for name, value in given.items() if strict or value is not None}
    hint = f"{tool} takes: {', '.join(names) or 'no arguments'}"
    if unknown := [_unknown(tool, name, names) for name in sent if name not in names]:
        raise BadValue("; ".join(unknown[:MOST_NAMED]), hint=hint)
    values = sent if strict else {name: _loosened(value, types[name]) for name, value in sent.items()}
    try:
        return msgspec.convert(values, arguments, strict=strict)
    except msgspec.ValidationError as fault:
        raise BadValue(_problem(tool, str(fault), types), hint=hint) from fault


def _loosened(value: Any, kind: Any) -> Any:
    """Return a value in the type that was likely meant: models write lists and objects as text, too."""
    kind = _plain(kind)
    is_struct = isinstance(kind, type) and issubclass(kind, Arguments)
    if isinstance(value, str) and (is_struct or get_origin(kind) in (tuple, dict)):
        try:
            read = json.loads(value)
        except ValueError:
            read = None
        if isinstance(read, (list, dict)):
            value = read
        elif get_origin(kind) is tuple:
            value = [value]
    if is_struct and isinstance(value, dict):
        types = get_type_hints(kind, include_extras=True)
        return {name: _loosened(item, types.get(name)) for name, item in value.items() if item is not None}
    return value


def _plain(kind: Any) -> Any:
    """Return a type without its limits, and without None."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    options = [option for option in get_args(kind) if option is not NoneType]
    return _plain(options[0]) if NoneType in get_args(kind) else kind


def _unknown(tool: str, name: str, names: Sequence[str]) -> str:
    meant = nearest(name, names)
    return f"{tool} has no argument {name!r}" + (f", did you mean {meant!r}?" if meant else "")


def _problem(tool: str, told: str, types: Mapping[str, Any]) -> str:
    """Return msgspec's complaint in words that begin with the argument."""
    told, _, at = told.rstrip("`").partition(" - at `$.")
    if missing := _MISSING.match(told):
        return f"{tool} needs {missing[1]!r}"
    if unknown := _UNKNOWN.match(told):
        return _unknown(tool, f"{at}.{unknown[1]}", ())
    expected = _EXPECTED.match(told)
    what = expected[1].replace("`", "") if expected else f"one of {', '.join(get_args(_plain(types[at])))}"
    return f"{at!r} should be {what.removesuffix(' | null')}"
