"""MCP over stdin and stdout, for the client that starts us. stdout carries the protocol and nothing else.

A line that is no JSON-RPC is answered as the protocol has it, and the connection lives on. When the client
goes away, so do we, quietly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification
from pydantic import ValidationError

from concord.leaving import leave
from concord.mcp.lines import REFUSED, Lines
from concord.mcp.server import KnowledgeServer

STDIN = 0


def run(server: KnowledgeServer) -> None:
    """Serve until stdin ends, nobody reads stdout any more, or the process is interrupted."""
    try:
        anyio.run(_serve, server)
    except* BrokenPipeError:  # the client did not wait for its last answers
        pass


async def _serve(server: KnowledgeServer) -> None:
    # The SDK's own run_stdio_async drops what it cannot read without a word, and offers no place to answer.
    lowlevel = server._lowlevel_server
    with _claimed_stdin() as lines:
        async with stdio_server(stdin=lines) as (read, write):
            try:
                await lowlevel.run(Answering(read, write), write, lowlevel.create_initialization_options())
            except anyio.get_cancelled_exc_class():  # a write failed, or somebody pressed Control-C
                leave()  # a thread of the SDK is still waiting for a line, and would keep us alive for it


@contextmanager
def _claimed_stdin() -> Iterator[Any]:
    """Give the client's lines, each looked at first; whatever we start finds nothing on its stdin."""
    wire = os.dup(STDIN)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, STDIN)
    os.close(nowhere)
    try:
        # Never closed: at the end a thread may still wait for a line there.
        stream = open(wire, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        yield Lines(anyio.wrap_file(stream))
    finally:
        os.dup2(wire, STDIN)


class Answering:
    """The messages of a client; a line that is no message is answered here and not passed on."""

    def __init__(
        self, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]
    ) -> None:
        self._read = read
        self._write = write

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        while True:
            item = await self._read.receive()
            complaint = _complaint(item) if isinstance(item, Exception) else _refusal(item)
            if complaint is None:
                return item
            await self._write.send(SessionMessage(complaint))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        """Stop reading."""
        await self._read.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        await self.aclose()
        return None


def _refusal(item: SessionMessage) -> JSONRPCError | None:
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
