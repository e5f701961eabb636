"""The MCP server: tools and resources over the knowledge base, with limits, progress and readable errors.

It answers `initialize` before it has opened anything; the model is loaded in the background as soon as a
client has said hello. A document is a resource: `kb://documents/` and a citation.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
)

from concord import __version__
from concord.core.errors import BadValue, KBError, NotFound
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

Context: TypeAlias = ServerRequestContext[Any, Any]
Paging: TypeAlias = PaginatedRequestParams | None

ORG = "concord.org"  # where the HTTP face leaves a token's organisation in the request's scope
HELLO = "initialize"  # must be answered before anything is loaded
UNCHANGING = CacheHint(ttl_ms=3_600_000, scope="public")  # as long as a server of one version runs
TEMPLATE = DOCUMENTS + "{+citation}"
PAGE = 200  # documents in one page of the resources
MAX_BYTES = 1_000_000  # of one reading: no client wants more at once, and kb_get reads in pages
# What has become Markdown when it was read.
MARKDOWN = frozenset[DocumentType](("markdown", "html", "office", "mail", "notebook", "note"))


class KnowledgeServer(Server[None]):
    """The SDK's server with our tools, and documents for resources; it closes its state when it ends."""

    def __init__(self, state: ServerState, rows: Sequence[Row] = TOOLS) -> None:
        self.state = state
        self._rows = {row.name: row for row in rows}
        super().__init__(
            "concord",
            title="Concord knowledge base",
            instructions=INSTRUCTIONS,
            version=__version__,
            lifespan=self._closing,
            cache_hints={"tools/list": UNCHANGING, "resources/templates/list": UNCHANGING},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=_no_prompts,
        )
        self.middleware = [self._after_hello]

    @asynccontextmanager
    async def _closing(self, _: Server[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.state.close()

    async def _after_hello(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Warm the model once somebody has been greeted."""
        if ctx.method != HELLO:
            self.state.bases.warm_in_background(self.state.name_of(org_of(ctx)))
        return await call_next(ctx)

    async def _list_tools(self, ctx: Context, params: Paging) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(row) for row in self._rows.values()])

    async def _call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool; its every failure is a result that a model can act on."""
        row = self._rows.get(params.name)
        if row is None:
            message = f"there is no tool {params.name[:80]!r}; the tools are: {', '.join(self._rows)}"
            raise MCPError(code=INVALID_PARAMS, message=message)
        started, org = time.perf_counter(), self.state.name_of(org_of(ctx))
        try:
            reply = await self._reply(row, params.arguments or {}, self.state.bases.of(org), ctx)
        except KBError as fault:
            return refused(fault)
        except Exception as fault:  # the outermost line: nothing beyond it could tell the model
            return unexpected(row.name, fault)
        finally:
            self.state.latencies.add(org, row.name, (time.perf_counter() - started) * 1000)
        content: list[Any] = [TextContent(type="text", text=reply.text)]
        return CallToolResult(content=content, structured_content=reply.structured)

    async def _reply(self, row: Row, given: dict[str, Any], kb: KnowledgeBase, ctx: Context) -> Reply:
        state = self.state
        given = {**row.defaults, **{name: value for name, value in given.items() if value is not None}}
        asked = checked(row.name, row.operation.arguments, row.names, given)
        if (quick := row.quick) is not None:
            return await state.in_thread(lambda: quick(state, kb, asked), row.limit_s)
        assert (long := row.long) is not None
        job = state.jobs.start_or_join(await state.in_thread(lambda: long(state, kb, asked), row.limit_s))

        async def report(number: int, step: Step) -> None:
            await ctx.session.report_progress(number, None, str(step))

        ended = await state.jobs.wait(job, row.limit_s, report)
        return row.done(job.outcome()) if ended else row.running(job)

    async def _list_resources(self, ctx: Context, params: Paging) -> ListResourcesResult:
        kb, cursor = self.state.base_of(org_of(ctx)), params.cursor if params else None
        try:
            return await self.state.in_thread(lambda: _listed(kb, cursor), OTHER_S)
        except KBError as fault:
            raise MCPError(code=INVALID_PARAMS, message=_sentence(fault)) from fault

    async def _list_templates(self, ctx: Context, params: Paging) -> ListResourceTemplatesResult:
        document = ResourceTemplate(
            uri_template=TEMPLATE,
            name="document",
            title="An indexed document",
            description="A document by its path, or a passage of it by its citation.",
            mime_type="text/plain",
        )
        return ListResourceTemplatesResult(resource_templates=[document])

    async def _read_resource(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        kb, uri = self.state.base_of(org_of(ctx)), str(params.uri)
        try:
            text, mime_type = await self.state.in_thread(lambda: _read(kb, uri), OTHER_S)
        except KBError as fault:
            code = INVALID_PARAMS if isinstance(fault, NotFound) else INTERNAL_ERROR
            raise MCPError(code=code, message=_sentence(fault), data={"uri": uri}) from fault
        return ReadResourceResult(
            contents=[TextResourceContents(uri=params.uri, text=text, mime_type=mime_type)]
        )


async def _no_prompts(ctx: Context, params: Paging) -> ListPromptsResult:
    """Say that there are none, for clients that ask without having looked at what the server can do."""
    return ListPromptsResult(prompts=[])


def _tool(row: Row) -> Tool:
    """Return a row of the table as clients are told of it."""
    parameters = input_schema(row.operation.arguments, row.names, WORDS)
    for name, value in row.defaults.items():
        parameters["properties"][name]["default"] = value
    return Tool(
        name=row.name,
        title=row.title,
        description=row.description,
        input_schema=parameters,
        output_schema=row.returns,
        annotations=row.annotations,
    )


def org_of(ctx: Context) -> str | None:
    """Return the organisation that a request's token stands for; None where there are no tokens."""
    scope = getattr(ctx.request, "scope", None) or {}
    org: str | None = scope.get(ORG)
    return org


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
