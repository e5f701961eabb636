"""Lines of JSON-RPC as a client wrote them: faults that we can mend or answer before the SDK reads them.

The SDK takes a request with an odd id for a notification, which gets no answer, and its error for a line that
it cannot read has no id. Either way the client would wait for its answer in vain. MCP wants an id to be a
string or an integer and never null; an error for a request without such an id has the id null.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from mcp_types import INVALID_PARAMS, INVALID_REQUEST

from concord.text.clean import encodable

# The method of a notification that replaces a refused line; `stdio` answers it. No client can guess its name.
REFUSED = f"concord/refused/{os.urandom(8).hex()}"
MOST_NESTED = 200  # as deep as the SDK reads
# Strings, in which brackets are only characters, and brackets; a string that is not closed goes to the end.
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
NOTIFICATIONS = "notifications/"  # how their methods begin


class Lines:
    """The lines of a client, mended so that the SDK can read them, or answered here."""

    def __init__(self, lines: AsyncIterable[str]) -> None:
        self._lines = lines

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            yield vetted(line)


def vetted(line: str) -> str:
    """Return a line for the SDK: as it is, with lone surrogates replaced, or replaced by an error."""
    if line.count("[") + line.count("{") > MOST_NESTED and (shallow := _too_deep(line)) is not None:
        line, is_deep = shallow, True
    else:
        is_deep = False
    try:
        said = json.loads(line)
    except ValueError:
        return line  # the SDK says so, too
    if not isinstance(said, dict) or ("method" not in said and said.keys() & {"result", "error"}):
        return line  # no request, or an answer to one of ours: its id is none of the client's
    refusal = _refusal(said)
    if refusal is None and is_deep and "id" in said:
        refusal = INVALID_REQUEST, f"the request is nested too deeply: at most {MOST_NESTED} levels"
    if refusal is not None:
        code, message = refusal
        params = {"id": _id(said), "code": code, "message": message}
        return json.dumps({"jsonrpc": "2.0", "method": REFUSED, "params": params})
    return _mended(line, said)


def _too_deep(line: str) -> str | None:
    """Return a line without its inner parts if it is nested too deep to be read; else None."""
    depth, deepest, kept, after = 0, 0, [], 0
    for part in _PARTS.finditer(line):
        if part[0] in "[{":
            depth += 1
            if depth == 2:
                kept.append(line[after : part.end()])
        elif part[0] in "]}":
            after = part.start() if depth == 2 else after
            depth -= 1
        deepest = max(depth, deepest)
    return "".join([*kept, line[after:]]) if deepest > MOST_NESTED else None


def _refusal(said: dict[str, Any]) -> tuple[int, str] | None:
    """Return the error for a message that has an id and cannot be carried out."""
    method = said.get("method")
    if "id" not in said or _is_notification(said):
        return None
    if _id(said) is None:
        return INVALID_REQUEST, "the id of a request must be a string or an integer"
    if said.get("jsonrpc") != "2.0" or not isinstance(method, str):
        return INVALID_REQUEST, "the line is JSON but not a JSON-RPC 2.0 request, notification or response"
    if not isinstance(said.get("params"), dict | None):
        return INVALID_PARAMS, "params must be an object"
    return None


def _is_notification(said: dict[str, Any]) -> bool:
    """Whether a message wants no answer, though it has an id: some programs write null for none."""
    return said["id"] is None and str(said.get("method")).startswith(NOTIFICATIONS)


def _id(said: dict[str, Any]) -> str | int | None:
    """Return the id of a request, if it is one that an answer can carry."""
    given = said.get("id")
    if isinstance(given, str):
        return given if given == encodable(given) else None
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _mended(line: str, said: dict[str, Any]) -> str:
    """Return a line without lone surrogates, which come from programs that cut a text by its length."""
    if "\\u" not in line:
        return line
    text = json.dumps(said, ensure_ascii=False)
    mended = encodable(text)
    return line if mended == text else mended
