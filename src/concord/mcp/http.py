"""MCP over streamable HTTP at /mcp: who may come in, and how much of the machine one caller can take.

On a loopback address anybody on this machine may ask, unless there are tokens. Any other address needs them.
Host and Origin are checked on every request, so that no web page can reach a server on its reader's machine.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping, Sequence

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from concord.core.errors import BadValue, Unavailable
from concord.mcp.server import ORG, KnowledgeServer
from concord.mcp.start import Grant, grant_for

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HEADERS_S = 10.0  # how long a caller may take to send the head of a request
BODY_S = 30.0  # how long for the body
IDLE_S = 600.0  # a session that nobody uses for so long is forgotten
MAX_SESSIONS = 1_000
SHUTDOWN_S = 3  # how long open streams may take to finish when the server ends


class HttpLimits(Struct, frozen=True):
    """How much of the machine callers may take."""

    max_bytes: int  # in one request
    max_connections: int  # open at once


def application(
    server: KnowledgeServer, grants: tuple[Grant, ...], hosts: Sequence[str], limits: HttpLimits
) -> ASGIApp:
    """Return the server as a guarded web application."""
    security = transport_security(hosts)
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=limits.max_bytes,
        session_idle_timeout=IDLE_S,
        max_sessions=MAX_SESSIONS,
    )
    return Guard(inner, grants, TransportSecurityMiddleware(security))


def web_server(app: ASGIApp, limits: HttpLimits) -> uvicorn.Server:
    """Return a server whose `run(sockets=[…])` serves until the process is told to end."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        limit_concurrency=limits.max_connections,
        timeout_graceful_shutdown=SHUTDOWN_S,
        log_config=None,
        access_log=False,
        server_header=False,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """Open the socket to serve on.

    Raises:
        BadValue: there is no such address here.
        Unavailable: it is taken.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(address[0]), int(address[1])), family=family)
    except (socket.gaierror, OverflowError) as fault:
        raise BadValue(
            f"cannot listen on {host}:{port}: {fault}", hint="see serve.host and serve.port"
        ) from fault
    except OSError as fault:
        raise Unavailable(
            f"cannot listen on {host}:{port}: {fault.strerror or fault}",
            hint="another program may use the port: set serve.port, or 0 for any that is free",
        ) from fault


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def require_tokens(host: str, grants: tuple[Grant, ...]) -> None:
    """Refuse to serve others without tokens.

    Raises:
        BadValue: there are none, and the address is not a loopback one.
    """
    if not grants and not is_loopback(host):
        raise BadValue(
            f"serving on {host} needs a token: others can reach it",
            hint="`kb serve --new-token ORG` makes one, or serve on 127.0.0.1",
        )


def transport_security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Return which Host and Origin headers are taken: loopback names and those given, at any port."""
    names = [*LOOPBACK, *hosts]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
        allowed_origins=[
            f"{scheme}://{form}"
            for name in names
            for form in (name, f"{name}:*")
            for scheme in ("http", "https")
        ],
    )


class Guard:
    """Lets a request in only with a good Host, Origin and token, and ties it to the token's organisation."""

    def __init__(
        self, app: ASGIApp, grants: tuple[Grant, ...], security: TransportSecurityMiddleware
    ) -> None:
        self._app = app
        self._grants = grants
        self._security = security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        refusal = await self._security.validate_request(request)
        grant = grant_for(request.headers.get("authorization"), self._grants)
        if refusal is None and self._grants and grant is None:
            refusal = _unauthorized()
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if grant is not None:
            scope[ORG] = grant.org
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=grant.name, scopes=[]))
        try:
            await self._app(scope, within(receive, BODY_S), send)
        except TooSlow:
            await _too_slow()(scope, receive, send)
        except HungUp:  # nobody is left to answer, and nothing is wrong here
            return


class TooSlow(Exception):
    """The body of a request took too long to arrive. Nothing has been answered by then."""


class HungUp(Exception):
    """The caller went away before all of its request had arrived."""


def within(receive: Receive, seconds: float) -> Receive:
    """Return a `receive` that raises TooSlow or HungUp when the body does not arrive in time, or at all."""
    ends = asyncio.get_running_loop().time() + seconds
    complete = False

    async def receive_in_time() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(ends):
                message = await receive()
        except TimeoutError:
            raise TooSlow from None
        if message["type"] == "http.disconnect":
            raise HungUp
        complete = not message.get("more_body", False)
        return message

    return receive_in_time


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, which would otherwise wait for the head of a request for ever."""

    _hang_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Go on waiting while there is only a part of one."""
        super().data_received(data)
        if self._is_busy():
            self._stop_waiting()
        elif self._hang_up is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_head(self) -> None:
        self._hang_up = self.loop.call_later(HEADERS_S, self._close_unless_busy)

    def _stop_waiting(self) -> None:
        if self._hang_up is not None:
            self._hang_up.cancel()
            self._hang_up = None

    def _close_unless_busy(self) -> None:
        self._hang_up = None
        if not self._is_busy():
            self.transport.close()


def _unauthorized() -> JSONResponse:
    hint = "send the header Authorization: Bearer TOKEN"
    return _error(401, "Unauthorized", "a token is needed", hint, {"WWW-Authenticate": "Bearer"})


def _too_slow() -> JSONResponse:
    told = f"the request took more than {BODY_S:g} seconds to arrive"
    return _error(408, "DeadlinePassed", told, "send it again", {"Connection": "close"})


def _error(status: int, kind: str, message: str, hint: str, headers: Mapping[str, str]) -> JSONResponse:
    return JSONResponse({"error": {"type": kind, "message": message, "hint": hint}}, status, headers)
