"""What a request asks for: arguments out of its path, query and body; and their description, OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from concord import __version__
from concord.core.arguments import Arguments
from concord.core.errors import BadValue, shown
from concord.mcp.arguments import checked, input_schema
from concord.web.answers import MAX_WAIT_S, ROWS, Row
from concord.web.guard import API, Refused
from concord.web.words import WORDS

A = TypeVar("A", bound=Arguments)
Schema = dict[str, Any]

BODIES = ("POST", "PUT", "PATCH")
_IN_PATH = re.compile(r"\{(\w+)(?::path)?\}")


async def arguments_of(request: Request, kind: type[A], names: Sequence[str], also: Sequence[str] = ()) -> A:
    """Return a request's arguments; of a query they are texts, of a body JSON. `also` are for others to read.

    Raises:
        BadValue: some are unknown, missing or do not fit.
        Refused: the body is no JSON.
    """
    has_body = request.method in BODIES
    query = {name: request.query_params.getlist(name) for name in request.query_params if name not in also}
    if has_body and query:
        raise BadValue(f"there is no argument {shown(next(iter(query)))} of the query", hint="send a body")
    lists = {field.name for field in msgspec.structs.fields(kind) if field.default == ()}
    plain = {name: values if name in lists else values[-1] for name, values in query.items()}
    given = {**(await _body(request) if has_body else plain), **request.path_params}
    return checked("this request", kind, [*request.path_params, *names], given, strict=has_body)


async def _body(request: Request) -> dict[str, Any]:
    text = await request.body()
    if not text:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refused(415, "BadValue", "the body is not JSON", "send it as Content-Type: application/json")
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as fault:
        raise BadValue(f"the body is no JSON object: {fault}", hint="send an object") from fault


@cache
def description() -> Schema:
    """Return the description of every request."""
    paths: dict[str, Schema] = {}
    for row in ROWS:
        path = API + _IN_PATH.sub(r"{\1}", row.path)
        paths.setdefault(path, {})[row.method.lower()] = _operation(row)
    error = {"type": "string", "description": "The class of the fault."}
    hint = {"type": ["string", "null"], "description": "What to do about it."}
    properties = {"error": error, "message": {"type": "string"}, "hint": hint}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Concord", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Error": {"type": "object", "properties": properties, "required": list(properties)}},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(row: Row) -> Schema:
    in_path, has_body = _IN_PATH.findall(row.path), row.method in BODIES
    parameters = _parameters(row, in_path, "path")
    if not has_body:
        parameters += _parameters(row, row.names, "query")
    if row.can_wait:
        seconds = {"type": "number", "minimum": 0, "maximum": MAX_WAIT_S}
        told = "Wait so many seconds for the job to end."
        parameters.append({"name": "wait", "in": "query", "description": told, "schema": seconds})
    operation: Schema = {
        "operationId": f"{row.method.lower()}{re.sub(r'[^a-z]+', '_', row.path.replace(':path', ''))}",
        "summary": row.summary,
        "parameters": parameters,
        "responses": _responses(row),
    }
    if has_body:
        schema = input_schema(row.arguments, row.names, WORDS, with_null=True)
        content = {"application/json": {"schema": schema}}
        operation["requestBody"] = {"required": "required" in schema, "content": content}
    return operation


def _parameters(row: Row, names: Sequence[str], place: str) -> list[Schema]:
    schema = input_schema(row.arguments, names, WORDS)
    found = []
    for name, part in schema["properties"].items():
        is_required = place == "path" or name in schema.get("required", ())
        told = part.pop("description", "")
        part.pop("default", None)
        found.append(
            {"name": name, "in": place, "required": is_required, "description": told, "schema": part}
        )
    return found


def _responses(row: Row) -> Schema:
    anything = {"schema": {"type": "object"}} if row.returns == "application/json" else {}
    answers: Schema = {row.status: {"description": "Done.", "content": {row.returns: anything}}}
    if row.can_wait:
        answers["202"] = {"description": "The job goes on.", "content": {"application/json": anything}}
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {**answers, "default": {"description": "It cannot be done.", "content": error}}
