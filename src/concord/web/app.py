"""The application: MCP, the API, the page and what a monitor asks, behind one guard."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from concord import __version__
from concord.core.arguments import Arguments
from concord.mcp.server import ORG, KnowledgeServer
from concord.mcp.server_state import roots_of
from concord.web.answers import Call, as_json
from concord.web.asked import arguments_of
from concord.web.guard import API, IDLE_S, MCP, Guard, HttpLimits, Refused, error_response, transport_security
from concord.web.metrics import metrics
from concord.web.openapi import description
from concord.web.sessions import SESSION_S, Keys, cookie_name
from concord.web.table import ROWS, Row
from concord.web.words import refused

MAX_SESSIONS = 1_000
PAGE = Path(__file__).parent.parent / "data" / "page"

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
        session_idle_timeout=IDLE_S,
        max_sessions=MAX_SESSIONS,
    )
    guard = Guard(app, keys, security, limits, origins)
    app.router.routes += [*_api(server, keys), *_around(server, keys, guard)]
    app.add_exception_handler(HTTPException, _no_such)
    return _with_cors(guard, origins)


def _with_cors(guard: Guard, origins: Sequence[str]) -> ASGIApp:
    if not origins:
        return guard
    headers = ["Authorization", "Content-Type", "Mcp-Session-Id", "Mcp-Protocol-Version"]
    return CORSMiddleware(guard, allow_origins=origins, allow_methods=["*"], allow_headers=headers)


def _api(server: KnowledgeServer, keys: Keys) -> list[Route]:
    by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for row in ROWS:
        by_path[row.path][row.method] = _endpoint(server, row)
    by_path["/session"] = {
        "GET": lambda request: _session(server, keys, request),
        "POST": lambda request: _begin(server, keys, request),
        "DELETE": lambda request: _end(keys, request),
    }
    by_path["/openapi.json"] = {"GET": _openapi}
    return [_route(API + path, endpoints) for path, endpoints in by_path.items()]


def _around(server: KnowledgeServer, keys: Keys, guard: Guard) -> list[Route | Mount]:
    """Return what lies beside the API."""

    async def measured(request: Request) -> Response:
        org = request.scope.get(ORG)
        return PlainTextResponse(
            metrics(server.state, guard.places, org), media_type="text/plain; version=0.0.4"
        )

    return [
        _route("/health", {"GET": _health}),
        _route("/metrics", {"GET": measured}),
        _route("/", {"GET": _page}),
        Mount("/page", StaticFiles(directory=PAGE)),
    ]


def _route(path: str, endpoints: dict[str, Endpoint]) -> Route:
    """Return the route of a path whose methods do different things."""

    async def endpoint(request: Request) -> Response:
        chosen = endpoints["GET" if request.method == "HEAD" else request.method]
        try:
            return await chosen(request)
        except Refused as refusal:
            return refusal.response
        except Exception as fault:  # the outermost line: nothing beyond it could tell the caller
            return refused(f"{request.method} {path}", fault)

    return Route(path, endpoint, methods=list(endpoints))


def _endpoint(server: KnowledgeServer, row: Row) -> Endpoint:
    state = server.state

    async def endpoint(request: Request) -> Response:
        kb, started = state.bases.of(request.scope.get(ORG)), time.perf_counter()
        also = ("wait",) if row.can_wait else ()
        args = await arguments_of(request, row.arguments, row.names, also)
        try:
            return await row.answer(Call(state, kb, request, args))
        finally:
            state.latencies.add(kb.org, row.name, (time.perf_counter() - started) * 1000)

    return endpoint


class SessionArguments(Arguments, frozen=True):
    """What a browser shows to begin a session."""

    code: str = ""
    token: str = ""


async def _session(server: KnowledgeServer, keys: Keys, request: Request) -> Response:
    if not (keys.is_open or ORG in request.scope):
        raise Refused(401, "Unauthorized", "a token is needed", "POST it, or open the page with a code")
    return _told(server, keys, request.scope.get(ORG))


def _told(server: KnowledgeServer, keys: Keys, org: str | None) -> Response:
    """Return what the page has to know before it asks anything."""
    bases = server.state.bases
    name = bases.name_of(org)
    bases.warm_in_background(org)  # whoever opens the page is about to search
    return as_json({
        "org": name,
        "needs_token": not keys.is_open,
        "roots": [str(root) for root in roots_of(name, server.state.roots)],
        "editor": bases.settings["serve.editor"],
        "version": __version__,
    })  # fmt: skip


async def _begin(server: KnowledgeServer, keys: Keys, request: Request) -> Response:
    args = await arguments_of(request, SessionArguments, ("code", "token"))
    if keys.is_open:
        return _told(server, keys, None)
    grant = keys.grant_for_code(args.code) or keys.grant_for_token(f"Bearer {args.token}")
    if grant is None:
        raise Refused(401, "Unauthorized", "this opens nothing", "a code works once, and for two minutes")
    answer = _told(server, keys, grant.org)
    answer.set_cookie(
        cookie_name(request),
        keys.begin(grant),
        max_age=int(SESSION_S),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


async def _end(keys: Keys, request: Request) -> Response:
    keys.end(request)
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
    kind = {404: "NotFound", 405: "MethodNotAllowed"}.get(fault.status_code, "UsageError")
    said = {404: "there is nothing at this path", 405: "this path has no such method"}
    wire = {
        "error": kind,
        "message": said.get(fault.status_code, fault.detail),
        "hint": f"see {API}/openapi.json",
    }
    return error_response(fault.status_code, wire, fault.headers or {})
