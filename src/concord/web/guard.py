"""Who may come in over HTTP, and how much of the machine one caller can take.

On a loopback address anybody on this machine may ask, unless there are tokens. Any other address needs them.
Host and Origin are checked on every request, so that no web page can reach a server on its reader's machine.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from msgspec import Struct
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from concord.mcp.server import ORG
from concord.text.json_safe import to_text
from concord.web.keys import Grant, Keys

API = "/api/v1"
MCP = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
BODY_S = 30.0  # how long a caller may take to send the body of a request
SAFE = ("GET", "HEAD", "OPTIONS")
PUBLIC = ("/", "/health", f"{API}/session")  # what tells nothing, or asks for a token itself
PAGE = "/page/"  # and the files of the page
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self';"
    " img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class HttpLimits(Struct, frozen=True):
    """How much of the machine callers may take."""

    max_bytes: int  # in one request
    max_connections: int  # open at once
    max_per_token: int = 50  # requests of one token that are answered at once


class Refused(Exception):
    """A request that gets no further, with the answer to it."""

    def __init__(
        self, status: int, kind: str, message: str, hint: str, headers: Mapping[str, str] = {}
    ) -> None:
        super().__init__(message)
        self.response = error_response(status, {"error": kind, "message": message, "hint": hint}, headers)


def error_response(status: int, fault: Mapping[str, str | None], headers: Mapping[str, str] = {}) -> Response:
    """Return the answer to what cannot be done: its class, what happened, and what to do about it."""
    return Response(to_text(fault), status, headers, "application/json")


def transport_security(hosts: Sequence[str], origins: Sequence[str]) -> TransportSecuritySettings:
    """Return which Host and Origin headers are taken: loopback names and those given, at any port."""
    forms = [form for name in (*LOOPBACK, *hosts) for form in (name, f"{name}:*")]
    own = [f"{scheme}://{form}" for scheme in ("http", "https") for form in forms]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=forms, allowed_origins=[*own, *origins]
    )


class Guard:
    """Lets a request in only with a good Host, Origin and token, and ties it to the token's organisation."""

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        security: TransportSecuritySettings,
        limits: HttpLimits,
        origins: Sequence[str],
    ) -> None:
        self._app = app
        self._keys = keys
        self._security = TransportSecurityMiddleware(security)
        self._limits = limits
        self._origins = origins  # of other pages that may ask
        self.in_flight: Counter[str] = Counter()  # requests that are being answered, by token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        send = _with_headers(send, is_page=scope["path"] == "/" or scope["path"].startswith(PAGE))
        try:
            grant = await self._admitted(request)
            name = grant.name if grant else ""
            with self._place(name):
                body = await _body(receive, self._limits.max_bytes)
                if body is None:  # the caller hung up: nobody is left to answer
                    return
                await self._app(scope, _again(body, receive), send)
        except Refused as refused:
            await refused.response(scope, receive, send)

    async def _admitted(self, request: Request) -> Grant | None:
        """Return whose token a request came with; None where none is needed."""
        if refusal := await self._security.validate_request(request):
            name = "Host" if refusal.status_code == 421 else "Origin"
            hint = "a server is reached by its own names alone: serve.hosts lists them"
            raise Refused(refusal.status_code, "Forbidden", f"this {name} is not one of the server's", hint)
        path = request.scope["path"]
        grant, is_by_cookie = self._keys.grant_of(request)
        if path.startswith("/api/") or is_by_cookie:
            self._check_origin(request, is_by_cookie)
        if grant is None and not self._keys.is_open and path not in PUBLIC and not path.startswith(PAGE):
            hint = "send the header Authorization: Bearer TOKEN"
            raise Refused(401, "Unauthorized", "a token is needed", hint, {"WWW-Authenticate": "Bearer"})
        if grant is not None:
            request.scope[ORG] = grant.org
        return grant

    def _check_origin(self, request: Request, is_by_cookie: bool) -> None:
        """Refuse what a page of another origin has sent, though it is one of this machine."""
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        if origin:
            is_own = origin.partition("://")[2] == request.headers["host"] or origin in self._origins
        else:
            is_own = site in ("same-origin", "none") or (site is None and not is_by_cookie)
        if not is_own and not (request.method in SAFE and site != "cross-site"):
            raise Refused(
                403, "Forbidden", "another web page sent this", "serve.origins names those that may"
            )

    @contextmanager
    def _place(self, name: str) -> Iterator[None]:
        """Take a place while a request is answered; requests without a token share all there are."""
        most = self._limits.max_per_token
        if name and self.in_flight[name] >= most:
            message = f"{most} requests of this token are being answered already"
            raise Refused(429, "TooManyRequests", message, "wait for one to end", {"Retry-After": "1"})
        self.in_flight[name] += 1
        try:
            yield
        finally:
            self.in_flight[name] -= 1


async def _body(receive: Receive, max_bytes: int) -> bytes | None:
    """Return the body of a request, all of it: so nothing behind has to know of slow or endless callers.

    It is None if the caller hung up before its end.
    """
    body, closing = bytearray(), {"Connection": "close"}
    try:
        async with asyncio.timeout(BODY_S):
            while (message := await receive())["type"] != "http.disconnect":
                body += message.get("body", b"")
                if len(body) > max_bytes:
                    told = f"the request is longer than {max_bytes:,} bytes"
                    raise Refused(413, "TooLarge", told, "see serve.max_bytes", closing)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as fault:
        told = f"the request took more than {BODY_S:g} seconds to arrive"
        raise Refused(408, "DeadlinePassed", told, "send it again", closing) from fault
    return None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read, and then what follows."""
    waiting = [body]

    async def receive_again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receive_again


def _with_headers(send: Send, *, is_page: bool) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update(HEADERS)
            headers.setdefault("Cache-Control", "no-cache" if is_page else "no-store")
        await send(message)

    return send_with_headers
