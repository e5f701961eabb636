"""MCP over stdin and stdout, for the client that starts us. stdout carries the protocol and nothing else.

A line that is no JSON-RPC is answered as the protocol has it, and the connection lives on. When the client
goes away, so do we, quietly. The SDK's own way of reading drops what it cannot read without a word.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from concord.core.config import Settings
from concord.core.leaving import leave
from concord.mcp.server import KnowledgeServer, build
from concord.mcp.server_state import Bases, ServerState, allowed_roots
from concord.parts import check_places
from concord.text.clean import encodable

Messages: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
Answers: TypeAlias = MemoryObjectSendStream[SessionMessage]

MOST_NESTED = 200  # as deep as what is behind us reads
# Strings, in which brackets are only characters, and brackets; a string that is not closed goes to the end.
_PARTS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
NOTIFICATIONS = "notifications/"  # how their methods begin
NO_MESSAGE = "the line is JSON but not a JSON-RPC 2.0 request, notification or response"


class Refused(Exception):
    """A line that is answered with an error, here."""

    def __init__(self, code: int, message: str, number: str | int | None = None) -> None:
        super().__init__(message)
        self.answer = JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))


def over_stdio(settings: Settings, started_in: Path) -> None:
    """Serve the client that started us, until stdin ends, nobody reads stdout, or we are interrupted.

    Raises:
        BadValue, UnknownName, MissingExtra: with such settings no store could ever be opened.
        NotFound: a folder of `mcp.roots` does not exist.
    """
    check_places(settings)
    roots = allowed_roots(settings["mcp.roots"], started_in, settings["org"])
    server = build(ServerState(Bases(settings), roots))
    lines, out = _claimed(0, "r"), _claimed(1, "w")

    async def session() -> None:
        await serve(server, anyio.wrap_file(lines), anyio.wrap_file(out), leave)

    try:
        anyio.run(session)
    except* BrokenPipeError:  # the client did not wait for its last answers
        pass
    leave()


def _claimed(number: int, mode: str) -> Any:
    """Return a standard stream for ourselves: whatever we load or start has nothing in its place."""
    wire, nowhere = os.dup(number), os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, number)
    os.close(nowhere)
    # Never closed: at the end a thread may still wait for a line there.
    return open(wire, mode, encoding="utf-8", errors="replace", closefd=False)


async def serve(
    server: KnowledgeServer,
    lines: AsyncIterable[str],
    out: anyio.AsyncFile[str],
    give_up: Callable[[], object],
) -> None:
    """Serve whoever sends lines.

    When a write fails, or somebody presses Control-C, `give_up` ends the waiting for a next line: a thread
    does that, and would keep us alive for it.
    """
    lowlevel = server._lowlevel_server
    messages, inbox = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, outbox = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, lines, messages, answers.clone())
        tasks.start_soon(_answer, outbox, out)
        try:
            async with inbox, answers:
                await lowlevel.run(inbox, answers, lowlevel.create_initialization_options())
        except anyio.get_cancelled_exc_class():
            give_up()
            raise


async def _receive(lines: AsyncIterable[str], messages: Messages, answers: Answers) -> None:
    async with messages, answers:
        async for line in lines:
            try:
                await messages.send(SessionMessage(message_of(line)))
            except Refused as refused:
                await answers.send(SessionMessage(refused.answer))


async def _answer(outbox: MemoryObjectReceiveStream[SessionMessage], out: anyio.AsyncFile[str]) -> None:
    async for answer in outbox:
        await out.write(answer.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
        await out.flush()


def message_of(line: str) -> JSONRPCMessage:
    """Return the message of a line, with lone surrogates replaced.

    Raises:
        Refused: it is none, or one that cannot be carried out.
    """
    shallow = _without_inner_parts(line)
    try:
        said = json.loads(shallow or line)
    except ValueError as fault:
        raise Refused(PARSE_ERROR, "the line is not JSON; send one JSON-RPC message on each line") from fault
    if isinstance(said, dict) and ("method" in said or not said.keys() & {"result", "error"}):
        _check_request(said)
        if shallow and "id" in said:
            message = f"the request is nested too deeply: at most {MOST_NESTED} levels"
            raise Refused(INVALID_REQUEST, message, _id(said))
    if "\\u" in line:  # lone surrogates come from programs that cut a text by its length
        said = json.loads(encodable(json.dumps(said, ensure_ascii=False)))
    try:
        return jsonrpc_message_adapter.validate_python(said, by_name=False)
    except ValidationError as fault:
        raise Refused(INVALID_REQUEST, NO_MESSAGE) from fault


def _without_inner_parts(line: str) -> str | None:
    """Return a line without its inner parts if it is nested too deep to be read; else None."""
    if line.count("[") + line.count("{") <= MOST_NESTED:
        return None
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


def _check_request(said: dict[str, Any]) -> None:
    """Refuse a message that has an id and cannot be carried out, under that id."""
    method, number = said.get("method"), _id(said)
    # Some programs write null for the id that a notification has not.
    if "id" not in said or (said["id"] is None and str(method).startswith(NOTIFICATIONS)):
        return
    if number is None:
        raise Refused(INVALID_REQUEST, "the id of a request must be a string or an integer")
    if said.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise Refused(INVALID_REQUEST, NO_MESSAGE, number)
    if not isinstance(said.get("params"), dict | None):
        raise Refused(INVALID_PARAMS, "params must be an object", number)


def _id(said: dict[str, Any]) -> str | int | None:
    """Return the id of a request, if it is one that an answer can carry."""
    given = said.get("id")
    if isinstance(given, str):
        return given if given == encodable(given) else None
    return given if isinstance(given, int) and not isinstance(given, bool) else None
