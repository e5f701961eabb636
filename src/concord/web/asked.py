"""What a request asks for: an operation's arguments, out of its path, its query and its body."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from concord.core.arguments import Arguments
from concord.core.errors import BadValue, did_you_mean, shown
from concord.web.guard import Refused

A = TypeVar("A", bound=Arguments)

BODIES = ("POST", "PUT", "PATCH")
MAX_WAIT_S = 600.0
_PLACE = re.compile(r"(?P<what>.+?)(?: - at `\$\.?(?P<at>.*)`)?")


async def arguments_of(request: Request, kind: type[A], names: Sequence[str], also: Sequence[str] = ()) -> A:
    """Return a request's arguments; of a query they are texts, of a body JSON. `also` are for others to read.

    Raises:
        BadValue: some are unknown, missing or do not fit.
        Refused: the body is no JSON.
    """
    has_body = request.method in BODIES
    query = {name: request.query_params.getlist(name) for name in request.query_params}
    known = [*request.path_params, *also, *(() if has_body else names)]
    _check_names(query, known)
    given = {name: value for name, value in query.items() if name not in also}
    plain: dict[str, Any] = {n: v if _is_list(kind, n) else v[-1] for n, v in given.items()}
    if not has_body:
        return _converted({**plain, **request.path_params}, kind, strict=False)
    body = await _body(request)
    _check_names(body, names)
    return _converted({**body, **request.path_params}, kind, strict=True)


def wait_of(request: Request, default: float) -> float:
    """Return how long a request waits for a job.

    Raises:
        BadValue: it is no number of seconds, or too many.
    """
    try:
        wait = float(request.query_params.get("wait", default))
    except ValueError:
        wait = -1.0
    if not 0 <= wait <= MAX_WAIT_S:
        raise BadValue("wait should be a number of seconds", hint=f"0 to {MAX_WAIT_S:g}")
    return wait


async def _body(request: Request) -> Mapping[str, Any]:
    text = await request.body()
    if not text:
        return {}
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refused(415, "BadValue", "the body is not JSON", "send it as Content-Type: application/json")
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as fault:
        raise BadValue(f"the body is no JSON: {fault}", hint="send an object") from fault
    if not isinstance(body, dict):
        raise BadValue("the body is no object", hint="send an object")
    return body


def _check_names(given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            takes = f"this request takes: {', '.join(known) or 'nothing'}"
            raise BadValue(f"there is no argument {shown(name)}", hint=did_you_mean(name, known, takes))


def _converted(given: Mapping[str, Any], kind: type[A], *, strict: bool) -> A:
    try:
        return msgspec.convert(given, kind, strict=strict)
    except msgspec.ValidationError as fault:
        said = _PLACE.fullmatch(str(fault))
        what, at = (said["what"], said["at"]) if said else (str(fault), "")
        raise BadValue(f"{at}: {what}" if at else what, hint="openapi.json lists what it takes") from fault


def _is_list(kind: type[Arguments], name: str) -> bool:
    return any(field.name == name and field.default == () for field in msgspec.structs.fields(kind))
