"""The API described for programs: OpenAPI 3.1, made from the operations' arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import fields

from concord import __version__
from concord.core.errors import Action, Hint
from concord.web.asked import BODIES, MAX_WAIT_S
from concord.web.guard import API
from concord.web.table import ROWS, Row
from concord.web.words import in_words

Schema = dict[str, Any]

_PATH = re.compile(r"\{(\w+)(?::path)?\}")
_REF = "#/components/schemas/{name}"
ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "The class of the fault."},
        "message": {"type": "string"},
        "hint": {"type": ["string", "null"], "description": "What to do about it."},
    },
    "required": ["error", "message", "hint"],
}
WAIT: Schema = {
    "name": "wait",
    "in": "query",
    "description": "Wait so many seconds for the job to end.",
    "schema": {"type": "number", "minimum": 0, "maximum": MAX_WAIT_S},
}


@cache
def description() -> Schema:
    """Return the description of every request."""
    kinds = list({row.arguments: None for row in ROWS})
    _, parts = msgspec.json.schema_components(kinds, ref_template=_REF)
    paths: dict[str, Schema] = {}
    for row in ROWS:
        place = paths.setdefault(API + _PATH.sub(r"{\1}", row.path), {})
        place[row.method.lower()] = _operation(row, parts)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Concord", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**{name: _worded(part) for name, part in parts.items()}, "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(row: Row, parts: Schema) -> Schema:
    known, has_body = _worded(parts[row.arguments.__name__]), row.method in BODIES
    required = {field.name for field in fields(row.arguments) if field.required}
    in_path = _PATH.findall(row.path)
    parameters = [_parameter(name, known, "path", is_required=True) for name in in_path]
    if not has_body:
        parameters += [_parameter(n, known, "query", is_required=n in required) for n in row.names]
    operation: Schema = {
        "operationId": f"{row.method.lower()}{re.sub(r'[^a-z]+', '_', row.path.replace(':path', ''))}",
        "summary": row.summary,
        "parameters": parameters + [WAIT] * row.can_wait,
        "responses": dict(_responses(row)),
    }
    if has_body:
        schema = {
            "type": "object",
            "properties": {name: known["properties"][name] for name in row.names},
            "required": [name for name in row.names if name in required],
            "additionalProperties": False,
        }
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": bool(schema["required"]), "content": content}
    return operation


def _parameter(name: str, known: Schema, place: str, *, is_required: bool) -> Schema:
    """Return a parameter, which is left out where it would be null."""
    schema = dict(known["properties"][name])
    told = schema.pop("description", "")
    schema.pop("default", None)
    if "anyOf" in schema:
        options = [option for option in schema.pop("anyOf") if option != {"type": "null"}]
        schema |= options[0] if len(options) == 1 else {"anyOf": options}
    if "enum" in schema:
        schema["enum"] = [value for value in schema["enum"] if value is not None]
    return {"name": name, "in": place, "required": is_required, "description": told, "schema": schema}


def _responses(row: Row) -> Iterator[tuple[str, Schema]]:
    done = "201" if (row.method, row.path) == ("POST", "/notes") else "200"
    yield done, _response("Done.", {"type": "object"} if "json" in row.returns else {}, row.returns)
    if row.can_wait:
        yield "202", _response("The job goes on.", {"type": "object"})
    yield "default", _response("It cannot be done.", {"$ref": _REF.format(name="Error")})


def _response(told: str, schema: Schema, kind: str = "application/json") -> Schema:
    return {"description": told, "content": {kind: {"schema": schema} if schema else {}}}


def _worded(node: Any) -> Any:
    """Return a schema whose descriptions name requests."""
    if isinstance(node, dict):
        return {
            key: in_words(Hint(Action.SEARCH, value))
            if key == "description" and isinstance(value, str)
            else _worded(value)
            for key, value in node.items()
        }
    return [_worded(item) for item in node] if isinstance(node, list) else node
