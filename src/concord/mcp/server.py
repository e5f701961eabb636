"""The MCP server: tools and resources over the knowledge base, with limits, progress and readable errors.

It answers `initialize` before it has opened anything; the model is loaded in the background as soon as a
client has said hello. A document is a resource: `kb://documents/` and a citation.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

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
    Resource,
    TextContent,
)
from pydantic import PrivateAttr

from concord import __version__
from concord.core.errors import BadValue, KBError, NotFound
from concord.core.overriding import override
from concord.mcp.arguments import checked, input_schema
from concord.mcp.jobs import Step
from concord.mcp.packing import Reply
from concord.mcp.server_state import ServerState
from concord.mcp.table import INSTRUCTIONS, OTHER_S, TOOLS, Row
from concord.mcp.tools import DOCUMENTS, cited_by, cursor_after, name_before
from concord.mcp.words import WORDS, in_words, refused, unexpected
from concord.text.clean import encodable
from concord.text.visible import one_line
from concord.types import DocumentType

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase

ORG = "concord.org"  # where the HTTP face leaves a token's organisation in the request's scope
HELLO = "initialize"  # must be answered before anything is loaded
UNCHANGING = CacheHint(ttl_ms=3_600_000, scope="public")  # as long as a server of one version runs
TEMPLATE = DOCUMENTS + "{+citation}"
PAGE = 200  # documents in one page of the resources
MAX_BYTES = 1_000_000  # of one reading: no client wants more at once, and kb_get reads in pages
# What has become Markdown when it was read.
MARKDOWN = frozenset[DocumentType](("markdown", "html", "office", "mail", "notebook", "note"))


def build(state: ServerState, rows: Sequence[Row] = TOOLS) -> KnowledgeServer:
    """Return the server that has this state, and closes it when it ends."""
    # Warnings go to stderr, one plain line each; the SDK would otherwise draw boxes there.
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    return KnowledgeServer(state, rows)


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
            TEMPLATE,
            name="document",
            title="An indexed document",
            description="A document by its path, or a passage of it by its citation.",
            mime_type="text/plain",
        )(_by_citation)

    @override
    async def _handle_list_resources(
        self, ctx: ServerRequestContext[None], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        kb = self.state.base_of(org_of(ctx))
        cursor = params.cursor if params else None
        try:
            return await self.state.in_thread(lambda: _listed(kb, cursor), OTHER_S)
        except KBError as fault:
            raise MCPError(code=INVALID_PARAMS, message=_sentence(fault)) from fault

    @override
    async def read_resource(
        self, uri: Any, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        kb = self.state.base_of(org_of(context.request_context) if context else None)
        try:
            text, mime_type = await self.state.in_thread(lambda: _read(kb, str(uri)), OTHER_S)
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
            self.state.bases.warm_in_background(self.state.name_of(org_of(ctx)))
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
        parameters = input_schema(row.operation.arguments, row.names, WORDS)
        for name, value in row.defaults.items():
            parameters["properties"][name]["default"] = value
        tool = cls(
            fn=_by_citation,  # `run` does it all
            name=row.name,
            title=row.title,
            description=row.description,
            parameters=parameters,
            fn_metadata=FuncMetadata(arg_model=ArgModelBase, output_schema=row.returns),
            is_async=True,
            context_kwarg=None,
            annotations=row.annotations,
        )
        tool._row, tool._state = row, state
        return tool

    @override
    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> CallToolResult:
        started, org = time.perf_counter(), self._state.name_of(org_of(context.request_context))
        try:
            reply = await self._reply(arguments, self._state.bases.of(org), context)
        except KBError as fault:
            return refused(fault)
        except MCPError:
            raise
        except Exception as fault:  # the outermost line: nothing beyond it could tell the model
            return unexpected(self.name, fault)
        finally:
            self._state.latencies.add(org, self.name, (time.perf_counter() - started) * 1000)
        content: list[Any] = [TextContent(type="text", text=reply.text)]
        return CallToolResult(content=content, structured_content=reply.structured)

    async def _reply(self, given: dict[str, Any], kb: KnowledgeBase, context: Context[Any, Any]) -> Reply:
        state, row = self._state, self._row
        given = {**row.defaults, **{name: value for name, value in given.items() if value is not None}}
        asked = checked(row.name, row.operation.arguments, row.names, given)
        if row.quick is not None:
            quick = row.quick
            return await state.in_thread(lambda: quick(state, kb, asked), row.limit_s)
        assert row.long is not None
        long = row.long
        job = state.jobs.start_or_join(await state.in_thread(lambda: long(state, kb, asked), row.limit_s))

        async def report(number: int, step: Step) -> None:
            await context.report_progress(number, None, str(step))

        ended = await state.jobs.wait(job, row.limit_s, report)
        return row.done(job.outcome()) if ended else row.running(job)


def org_of(ctx: ServerRequestContext[Any, Any]) -> str | None:
    """Return the organisation that a request's token stands for; None where there are no tokens."""
    scope = getattr(ctx.request, "scope", None) or {}
    org: str | None = scope.get(ORG)
    return org


def _by_citation(citation: str) -> str:
    """Stand in for the function that the SDK wants of tools and templates: we answer ourselves."""
    return citation


def _sentence(fault: KBError) -> str:
    message, hint = in_words(fault.message), in_words(fault.hint)
    return one_line(f"{message} ({hint})" if hint else message)


def _listed(kb: KnowledgeBase, cursor: str | None) -> ListResourcesResult:
    """Return a page of the documents, in order of path."""
    after = name_before(cursor)
    found = list(islice((document for document in kb.documents() if document.path > after), PAGE + 1))
    resources = [
        Resource(
            uri=DOCUMENTS + quote(document.path.encode("utf-8", "replace"), safe="/:"),
            name=encodable(document.path),
            title=encodable(document.title),
            mime_type=_mime_type(document.type),
            size=document.size or None,
        )
        for document in found[:PAGE]
    ]
    more = cursor_after(found[PAGE - 1].path) if len(found) > PAGE else None
    return ListResourcesResult(resources=resources, next_cursor=more)


def _read(kb: KnowledgeBase, uri: str) -> tuple[str, str]:
    if not uri.startswith(DOCUMENTS):
        raise NotFound(f"there is no resource {uri!r}", hint=f"documents are {TEMPLATE}")
    page = kb.page(cited_by(uri), max_bytes=MAX_BYTES)
    document = page.slice.document
    if page.next_cursor is not None:
        raise BadValue(f"{document.path} is too long to be read at once", hint="kb_get reads it in pages")
    return page.slice.text, _mime_type(document.type)


def _mime_type(kind: DocumentType) -> str:
    return "text/markdown" if kind in MARKDOWN else "text/plain"
