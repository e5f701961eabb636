"""MCP over stdin and stdout, for the client that starts us. stdout carries the protocol and nothing else.

A line that is no JSON-RPC is answered as the protocol has it, and the connection lives on. When the client
goes away, so do we, quietly.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
)
from pydantic import ValidationError

from concord.core.leaving import leave
from concord.mcp.server import KnowledgeServer
from concord.text.clean import encodable

Received: TypeAlias = ReadStream[SessionMessage | Exception]
Sender: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]

# The method of a notification that replaces a refused line; `stdio` answers it. No client can guess its name.
REFUSED = f"concord/refused/{os.urandom(8).hex()}"
MOST_NESTED = 200  # as deep as the SDK reads
# Strings, in which brackets are only characters, and brackets; a string that is not closed goes to the end.
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
NOTIFICATIONS = "notifications/"  # how their methods begin
STDIN = 0


def run(server: KnowledgeServer) -> None:
    """Serve until stdin ends, nobody reads stdout any more, or the process is interrupted."""
    try:
        anyio.run(_serve, server)
    except* BrokenPipeError:  # the client did not wait for its last answers
        pass


async def _serve(server: KnowledgeServer) -> None:
    with _claimed_stdin() as lines:
        await serve(server, lines, None, leave)


async def serve(
    server: KnowledgeServer,
    lines: AsyncIterable[str],
    out: anyio.AsyncFile[str] | None,
    give_up: Callable[[], object],
) -> None:
    """Serve whoever sends lines; without `out`, answers go to stdout.

    When a write fails, or somebody presses Control-C, `give_up` ends the waiting for a next line: a thread of
    the SDK does that, and would keep us alive for it.
    """
    # The SDK's own run_stdio_async drops what it cannot read without a word, and offers no place to answer.
    lowlevel, vetted_lines = server._lowlevel_server, cast("anyio.AsyncFile[str]", _vetted(lines))
    passed, inbox = anyio.create_memory_object_stream[SessionMessage | Exception]()
    async with (
        stdio_server(stdin=vetted_lines, stdout=out) as (read, write),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_pass_on, read, write, passed)
        try:
            await lowlevel.run(inbox, write, lowlevel.create_initialization_options())
        except anyio.get_cancelled_exc_class():
            give_up()
            raise


@contextmanager
def _claimed_stdin() -> Iterator[Any]:
    """Give the client's lines; whatever we start finds nothing on its stdin."""
    wire = os.dup(STDIN)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, STDIN)
    os.close(nowhere)
    try:
        # Never closed: at the end a thread may still wait for a line there.
        stream = open(wire, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        yield anyio.wrap_file(stream)
    finally:
        os.dup2(wire, STDIN)


async def _pass_on(read: Received, write: WriteStream[SessionMessage], to: Sender) -> None:
    """Pass on the messages of a client; a line that is no message is answered here."""
    async with to:
        async for item in read:
            complaint = _complaint(item) if isinstance(item, Exception) else _reply_to_refused(item)
            if complaint is None:
                await to.send(item)
            else:
                await write.send(SessionMessage(complaint))


def _reply_to_refused(item: SessionMessage) -> JSONRPCError | None:
    """Return what to answer a line with that was refused before the SDK saw it; None for all others."""
    message = item.message
    if not isinstance(message, JSONRPCNotification) or message.method != REFUSED:
        return None
    assert message.params is not None
    told = ErrorData(code=message.params["code"], message=message.params["message"])
    return JSONRPCError(jsonrpc="2.0", id=message.params["id"], error=told)


def _complaint(fault: Exception) -> JSONRPCError:
    """Return the protocol's error for a line that could not be read."""
    unreadable = not isinstance(fault, ValidationError) or fault.errors()[0]["type"] == "json_invalid"
    if unreadable:
        error = ErrorData(
            code=PARSE_ERROR, message="the line is not JSON; send one JSON-RPC message on each line"
        )
    else:
        error = ErrorData(
            code=INVALID_REQUEST,
            message="the line is JSON but not a JSON-RPC 2.0 request, notification or response",
        )
    return JSONRPCError(jsonrpc="2.0", id=None, error=error)


async def _vetted(lines: AsyncIterable[str]) -> AsyncIterator[str]:
    """Yield the lines of a client, mended so that the SDK can read them, or answered here."""
    async for line in lines:
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
