"""The MCP server: tools and resources over the knowledge base, with limits, progress and readable errors.

It answers `initialize` before it has opened anything; the model is loaded in the background as soon as a
client has said hello.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    ListResourcesResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import PrivateAttr

from concord import __version__
from concord.core.arguments import Arguments
from concord.core.errors import KBError, NotFound, Unavailable
from concord.mcp import resources
from concord.mcp.arguments import checked, input_schema
from concord.mcp.jobs import Cancelled, Job
from concord.mcp.packing import Reply
from concord.mcp.server_state import ServerState
from concord.mcp.table import INSTRUCTIONS, OTHER_S, TOOLS, Row
from concord.mcp.words import in_words, refused, unexpected
from concord.text.visible import one_line

ORG = "concord.org"  # where the HTTP face leaves a token's organisation in the request's scope
HELLO = "initialize"  # must be answered before anything is loaded
UNCHANGING = CacheHint(ttl_ms=3_600_000, scope="public")  # as long as a server of one version runs


def build(state: ServerState, rows: Sequence[Row] = TOOLS) -> KnowledgeServer:
    """Return the server that has this state, and closes it when it ends."""
    quiet_logging()
    return KnowledgeServer(state, rows)


def quiet_logging() -> None:
    """Send warnings to stderr, one plain line each; the SDK would otherwise draw boxes there."""
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")


class KnowledgeServer(MCPServer[None]):
    """The SDK's server with our tools, and documents for resources."""

    def __init__(self, state: ServerState, rows: Sequence[Row]) -> None:
        self.state = state
        self._names = [row.name for row in rows]
        super().__init__(
            "concord",
            title="Concord knowledge base",
            instructions=INSTRUCTIONS,
            version=__version__,
            tools=[KnowledgeTool.bound(row, state) for row in rows],
            lifespan=self._closing,
            middleware=[self._after_hello, self._known_names],
            subscriptions=False,  # one channel for all organisations would tell each when another writes
            cache_hints={"tools/list": UNCHANGING, "resources/templates/list": UNCHANGING},
            log_level="WARNING",
        )
        self.resource(
            resources.TEMPLATE,
            name="document",
            title="An indexed document",
            description="A document by its path, or a passage of it by its citation.",
            mime_type="text/plain",
        )(_by_citation)

    async def _handle_list_resources(
        self, ctx: ServerRequestContext[None], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        kb = self.state.bases.of(org_of(ctx))
        cursor = params.cursor if params else None
        try:
            return await self.state.in_thread(lambda: resources.listing(kb, cursor), OTHER_S)
        except KBError as fault:
            raise MCPError(code=INVALID_PARAMS, message=_sentence(fault)) from fault

    async def read_resource(
        self, uri: Any, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        """Return the text of a document or passage."""
        kb = self.state.bases.of(org_of(context.request_context) if context else None)
        try:
            text, mime_type = await self.state.in_thread(lambda: resources.read(kb, str(uri)), OTHER_S)
        except NotFound as fault:
            raise ResourceNotFoundError(_sentence(fault)) from fault
        except KBError as fault:
            raise ResourceError(_sentence(fault)) from fault
        return [ReadResourceContents(content=text, mime_type=mime_type)]

    @asynccontextmanager
    async def _closing(self, _: MCPServer[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.state.close()

    async def _after_hello(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Warm the model once somebody has been greeted."""
        if ctx.method != HELLO:
            self.state.bases.warm_in_background(org_of(ctx))
        return await call_next(ctx)

    async def _known_names(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a call of an unknown tool with the names of the known ones; there are no prompts."""
        name = (ctx.params or {}).get("name")
        if isinstance(name, str) and ctx.method == "tools/call" and name not in self._names:
            message = f"there is no tool {name[:80]!r}; the tools are: {', '.join(self._names)}"
            raise MCPError(code=INVALID_PARAMS, message=message)
        if isinstance(name, str) and ctx.method == "prompts/get":
            raise MCPError(code=INVALID_PARAMS, message=f"there is no prompt {name[:80]!r}; there are none")
        return await call_next(ctx)


class KnowledgeTool(Tool):
    """A tool whose every failure is a result that a model can act on."""

    _row: Row = PrivateAttr()
    _state: ServerState = PrivateAttr()

    @classmethod
    def bound(cls, row: Row, state: ServerState) -> KnowledgeTool:
        """Return a row of the table as a tool that works with the server's state."""
        tool = cls(
            fn=row.quick or row.long or _by_citation,
            name=row.name,
            title=row.title,
            description=row.description,
            parameters=input_schema(row.operation.arguments, row.names, row.defaults),
            fn_metadata=FuncMetadata(arg_model=ArgModelBase, output_schema=row.returns),
            is_async=True,
            context_kwarg=None,
            annotations=row.annotations,
        )
        tool._row, tool._state = row, state
        return tool

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> CallToolResult:
        """Carry out a call."""
        started = time.perf_counter()
        try:
            reply = await self._reply(self._validated(arguments), context)
        except KBError as fault:
            return refused(fault)
        except MCPError:
            raise
        except Exception as fault:  # the outermost line: nothing beyond it could tell the model
            return unexpected(self.name, fault)
        finally:
            org = self._state.bases.name_of(org_of(context.request_context))
            self._state.latencies.add(org, self.name, (time.perf_counter() - started) * 1000)
        return CallToolResult(
            content=[TextContent(type="text", text=reply.text)], structured_content=reply.structured
        )

    def _validated(self, arguments: dict[str, Any]) -> Arguments:
        row = self._row
        given = {name: value for name, value in arguments.items() if value is not None}
        return checked(row.name, row.operation.arguments, row.names, {**row.defaults, **given})

    async def _reply(self, asked: Arguments, context: Context[Any, Any]) -> Reply:
        state, row = self._state, self._row
        kb = state.bases.of(org_of(context.request_context))
        if row.quick is not None:
            quick = row.quick
            return await state.in_thread(lambda: quick(state, kb, asked), row.limit_s, row.late)
        assert row.long is not None
        long = row.long
        job = state.jobs.start_or_join(await state.in_thread(lambda: long(state, kb, asked), row.limit_s))
        ended = await state.jobs.wait(job, row.limit_s, partial(_report, context))
        try:
            return row.done(job.result.result(0)) if ended else row.running(job, state.jobs.moving(job))
        except Cancelled as fault:
            raise Unavailable(
                f"{job.plan.doing} {job.plan.label} was stopped: {job.why_stopped}",
                hint=job.plan.if_stopped,
            ) from fault


def org_of(ctx: ServerRequestContext[Any, Any]) -> str | None:
    """Return the organisation that a request's token stands for; None where there are no tokens."""
    scope = getattr(ctx.request, "scope", None) or {}
    org: str | None = scope.get(ORG)
    return org


async def _report(context: Context[Any, Any], number: int, moving: Job) -> None:
    await context.report_progress(number, None, str(moving.step))


def _by_citation(citation: str) -> str:
    """Stand in for the template's function: `read_resource` reads all resources itself."""
    return citation


def _sentence(fault: KBError) -> str:
    message, hint = in_words(fault.message), in_words(fault.hint)
    return one_line(f"{message} ({hint})" if hint else message)
