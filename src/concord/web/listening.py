"""The socket and the server behind it: what a caller may take of the machine before a request is there."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from concord.core.errors import BadValue, Unavailable
from concord.web.guard import HttpLimits, error_response
from concord.web.tokens import Grant

HEADERS_S = 10.0  # how long a caller may take to send the head of a request
MAX_HEAD = 64_000  # bytes of the head of a request: a query may be long
SHUTDOWN_S = 3  # how long open streams may take to finish when the server ends


def web_server(app: ASGIApp, limits: HttpLimits) -> uvicorn.Server:
    """Return a server whose `run(sockets=[…])` serves until the process is told to end."""
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        h11_max_incomplete_event_size=MAX_HEAD,
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


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, which would otherwise wait for the head of a request for ever."""

    _hang_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; whoever is one too many is told so, and others are not kept out."""
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None  # uvicorn's own answer gives no hint
        if most is not None and len(self.connections) > most:
            self.app = _told_to_come_back
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


async def _told_to_come_back(scope: Scope, receive: Receive, send: Send) -> None:
    said = "the server has as many connections as serve.max_connections allows"
    fault = {"error": "Unavailable", "message": said, "hint": "ask again in a second"}
    await error_response(503, fault, {"Retry-After": "1", "Connection": "close"})(scope, receive, send)
