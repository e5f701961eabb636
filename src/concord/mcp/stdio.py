"""MCP over stdin and stdout, for the client that starts us. stdout carries the protocol and nothing else.

A line that is no JSON-RPC is answered as the protocol has it, and the connection lives on. When the client
goes away, so do we, quietly. The SDK's own way of reading drops what it cannot read without a word.
"""

from __future__ import annotations

import json
import os
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
from concord.mcp.server import KnowledgeServer
from concord.mcp.server_state import Bases, ServerState, allowed_roots
from concord.parts import check_places
from concord.text.clean import encodable

Messages: TypeAlias = MemoryObjectSendStream[SessionMessage | Exception]
Answers: TypeAlias = MemoryObjectSendStream[SessionMessage]

NOTIFICATIONS = "notifications/"  # how their methods begin
TOO_DEEP = "the request is nested too deeply"
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
    server = KnowledgeServer(ServerState(Bases(settings), roots))
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
    messages, inbox = anyio.create_memory_object_stream[SessionMessage | Exception]()
    answers, outbox = anyio.create_memory_object_stream[SessionMessage]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_receive, lines, messages, answers.clone())
        tasks.start_soon(_answer, outbox, out)
        try:
            async with inbox, answers:
                await server.run(inbox, answers, server.create_initialization_options())
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
    try:
        said = json.loads(line)
    except RecursionError as fault:
        raise Refused(INVALID_REQUEST, TOO_DEEP) from fault
    except ValueError as fault:
        raise Refused(PARSE_ERROR, "the line is not JSON; send one JSON-RPC message on each line") from fault
    number = _number_of(said) if isinstance(said, dict) else None
    if "\\u" in line:  # lone surrogates come from programs that cut a text by its length
        line = encodable(json.dumps(said, ensure_ascii=False))
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as fault:
        if "recursion limit" in str(fault):
            raise Refused(INVALID_REQUEST, TOO_DEEP, number) from fault
        if number is not None and isinstance(said.get("method"), str) and said.get("jsonrpc") == "2.0":
            raise Refused(INVALID_PARAMS, "params must be an object", number) from fault
        raise Refused(INVALID_REQUEST, NO_MESSAGE, number) from fault


def _number_of(said: dict[str, Any]) -> str | int | None:
    """Return the id of a request; None for what has none: a notification, or an answer.

    Raises:
        Refused: no answer can carry the id.
    """
    number, method = said.get("id"), said.get("method")
    is_answer = method is None and said.keys() & {"result", "error"}
    # Some programs write null for the id that a notification has not.
    if is_answer or "id" not in said or (number is None and str(method).startswith(NOTIFICATIONS)):
        return None
    is_text = isinstance(number, str) and number == encodable(number)
    if is_text or (isinstance(number, int) and not isinstance(number, bool)):
        return number
    raise Refused(INVALID_REQUEST, "the id of a request must be a string or an integer")
