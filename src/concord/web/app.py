"""The application: MCP, the API, the page and what a monitor asks, behind one guard."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from concord import __version__
from concord.core.arguments import Arguments
from concord.mcp.server import ORG, KnowledgeServer
from concord.mcp.server_state import ServerState, roots_of
from concord.web.answers import ROWS, Call, Row, as_json
from concord.web.asked import arguments_of, description
from concord.web.guard import API, MCP, Guard, HttpLimits, Refused, error_response, transport_security
from concord.web.keys import SESSION_S, Keys, cookie_name
from concord.web.words import refused

PAGE = Path(__file__).parent.parent / "data" / "page"
CORS_HEADERS = ("Authorization", "Content-Type", "Mcp-Session-Id", "Mcp-Protocol-Version")

Endpoint = Callable[[Request], Awaitable[Response]]


def application(
    server: KnowledgeServer,
    keys: Keys,
    hosts: Sequence[str],
    limits: HttpLimits,
    origins: Sequence[str] = (),
) -> ASGIApp:
    """Return everything that is served, guarded."""
    security = transport_security(hosts, origins)
    app = server.streamable_http_app(
        streamable_http_path=MCP,
        transport_security=security,
        max_request_body_size=limits.max_bytes,
        stateless_http=True,  # no caller can fill the memory with sessions, or take over another's
    )
    guard = Guard(app, keys, security, limits, origins)
    paths: defaultdict[str, dict[str, Endpoint]] = defaultdict(dict)
    for row in ROWS:
        paths[API + row.path][row.method] = _endpoint(server.state, row)
    paths[f"{API}/session"] = Sessions(server.state, keys).endpoints
    paths[f"{API}/openapi.json"]["GET"] = _openapi
    paths["/health"]["GET"] = _health
    paths["/metrics"]["GET"] = _metrics(server.state, guard)
    paths["/"]["GET"] = _page
    app.router.routes += [_route(path, endpoints) for path, endpoints in paths.items()]
    app.router.routes.append(Mount("/page", StaticFiles(directory=PAGE)))
    app.add_exception_handler(HTTPException, _no_such)
    if not origins:
        return guard
    return CORSMiddleware(guard, allow_origins=origins, allow_methods=["*"], allow_headers=CORS_HEADERS)


def _route(path: str, endpoints: dict[str, Endpoint]) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            return await endpoints["GET" if request.method == "HEAD" else request.method](request)
        except Refused as refusal:
            return refusal.response
        except Exception as fault:  # the outermost line: nothing beyond it could tell the caller
            return refused(f"{request.method} {path}", fault)

    return Route(path, endpoint, methods=list(endpoints))


def _endpoint(state: ServerState, row: Row) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        kb, started = state.base_of(request.scope.get(ORG)), time.perf_counter()
        args = await arguments_of(request, row.arguments, row.names, ("wait",) if row.can_wait else ())
        answer = None
        try:
            answer = await row.answer(Call(state, kb, request, args))
            return answer
        finally:
            if not isinstance(answer, StreamingResponse):  # which has only begun
                state.latencies.add(kb.org, row.name, (time.perf_counter() - started) * 1000)

    return endpoint


class SessionArguments(Arguments, frozen=True):
    """What a browser shows to begin a session."""

    code: str = ""
    token: str = ""


class Sessions:
    """How the page learns who is asking, and how a browser becomes somebody."""

    def __init__(self, state: ServerState, keys: Keys) -> None:
        self._state = state
        self._keys = keys
        self.endpoints: dict[str, Endpoint] = {"GET": self._present, "POST": self._begin, "DELETE": self._end}

    async def _present(self, request: Request) -> Response:
        if not (self._keys.is_open or ORG in request.scope):
            raise Refused(401, "Unauthorized", "a token is needed", "POST it, or open the page with a code")
        return self._told(request.scope.get(ORG))

    def _told(self, org: str | None) -> Response:
        """Return what the page has to know before it asks anything."""
        state = self._state
        name = state.name_of(org)
        state.bases.warm_in_background(name)  # whoever opens the page is about to search
        return as_json({
            "org": name,
            "needs_token": not self._keys.is_open,
            "roots": [str(root) for root in roots_of(name, state.roots)],
            "editor": state.bases.settings["serve.editor"],
            "version": __version__,
        })  # fmt: skip

    async def _begin(self, request: Request) -> Response:
        args = await arguments_of(request, SessionArguments, ("code", "token"))
        if self._keys.is_open:
            return self._told(None)
        grant = self._keys.grant_for(args.code, args.token)
        if grant is None:
            raise Refused(401, "Unauthorized", "this opens nothing", "a code works once, and for two minutes")
        answer = self._told(grant.org)
        answer.set_cookie(
            cookie_name(request),
            self._keys.begin(grant),
            max_age=int(SESSION_S),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def _end(self, request: Request) -> Response:
        self._keys.end(request)
        answer = Response(status_code=204)
        answer.delete_cookie(cookie_name(request), httponly=True, samesite="strict")
        return answer


async def _openapi(request: Request) -> Response:
    return as_json(description())


async def _health(request: Request) -> Response:
    return as_json({"status": "ok", "version": __version__})


async def _page(request: Request) -> Response:
    return FileResponse(PAGE / "index.html")


async def _no_such(request: Request, fault: Exception) -> Response:
    """Answer what the router refuses: there is no such path, or no such method."""
    assert isinstance(fault, HTTPException)
    kind, message = {
        404: ("NotFound", "there is nothing at this path"),
        405: ("MethodNotAllowed", "this path has no such method"),
    }.get(fault.status_code, ("UsageError", fault.detail))
    wire = {"error": kind, "message": message, "hint": f"see {API}/openapi.json"}
    return error_response(fault.status_code, wire, fault.headers or {})


def _metrics(state: ServerState, guard: Guard) -> Endpoint:
    """Return what answers a monitor, in the text format of Prometheus, for the organisation that asks."""

    async def measured(request: Request) -> Response:
        org = state.name_of(request.scope.get(ORG))
        lines = [*_calls(state, org), *_gauges(state, org, guard.in_flight.total())]
        return PlainTextResponse("\n".join([*lines, ""]), media_type="text/plain; version=0.0.4")

    return measured


def _calls(state: ServerState, org: str) -> Iterator[str]:
    name = "concord_call_duration_seconds"
    yield f"# HELP {name} How long calls took; quantiles of the last 200."
    yield f"# TYPE {name} summary"
    for call, took in sorted(state.latencies.summary(org).items()):
        calls, total_ms = state.latencies.total(org, call)
        yield f'{name}{{call="{call}",quantile="0.5"}} {took["p50"] / 1000:.6f}'
        yield f'{name}{{call="{call}",quantile="0.95"}} {took["p95"] / 1000:.6f}'
        yield f'{name}_sum{{call="{call}"}} {total_ms / 1000:.6f}'
        yield f'{name}_count{{call="{call}"}} {calls}'


def _gauges(state: ServerState, org: str, in_flight: int) -> Iterator[str]:
    jobs = state.jobs.running(org)
    waiting = sum(job.is_yet_to_begin for job in jobs)
    rows = [
        ("concord_jobs_running", "Jobs that are worked on.", len(jobs) - waiting),
        ("concord_jobs_waiting", "Jobs that wait for their turn.", waiting),
        ("concord_requests_in_flight", "Requests that are being answered.", in_flight),
    ]
    with suppress(OSError):  # only Linux tells
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        rows.append(("process_resident_memory_bytes", "Memory of the server process.", memory))
    for name, told, value in rows:
        yield from (f"# HELP {name} {told}", f"# TYPE {name} gauge", f"{name} {value}")
