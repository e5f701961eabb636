"""Starting the HTTP server: settings in, a running server out, for `kb serve` and for `kb ui`.

A browser is started with the name of a file that leads to the page, and that only its user can read: others
see command lines.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from concord.core.config import Settings
from concord.core.errors import BadValue, Unavailable
from concord.core.leaving import leave_if_busy
from concord.core.memory import share_between_threads
from concord.core.overriding import override
from concord.mcp.server import KnowledgeServer
from concord.mcp.server_state import Bases, Root, ServerState, allowed_roots
from concord.parts import check_places
from concord.web.app import application
from concord.web.guard import MCP, HttpLimits, error_response
from concord.web.keys import Grant, Keys, digest_of, grants_of

HEADERS_S = 10.0  # how long a caller may take to send the head of a request
MAX_HEAD = 64_000  # bytes of the head of a request: a query may be long
SHUTDOWN_S = 3  # how long open streams may take to finish when the server ends
HOST = "127.0.0.1"  # of the page
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}">\n'

Show = Callable[[str, Path], None]  # takes the page's address, and a file that leads there


def over_http(
    settings: Settings, host: str, port: int, started_in: Path, announce: Callable[[str, bool], None]
) -> None:
    """Serve over HTTP until the process is told to end.

    `announce` is told the address of MCP, and whether requests need a token.
    """
    check_places(settings)
    grants = grants_of(settings)
    require_tokens(host, grants)
    near = started_in if is_loopback(host) else None
    roots = allowed_roots(settings["mcp.roots"], near, settings["org"])
    _serve(settings, (host, port), roots, Keys(grants), lambda url: announce(f"{url}{MCP}", bool(grants)))


def require_tokens(host: str, grants: tuple[Grant, ...]) -> None:
    """Refuse to serve others without tokens."""
    if not grants and not is_loopback(host):
        hint = "`kb serve --new-token ORG` makes one, or serve on 127.0.0.1"
        raise BadValue(f"serving on {host} needs a token: others can reach it", hint=hint)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def open_page(settings: Settings, port: int, started_in: Path, show: Show) -> None:
    """Serve the page to its user alone until told to end; `show` is told when it can be opened."""
    check_places(settings)
    folder = Path(settings.paths.cache, "ui")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = Keys((Grant(settings["org"], digest_of(secrets.token_urlsafe(32))),))
    with NamedTemporaryFile("w", dir=folder, suffix=".html", encoding="utf-8") as leading:

        def announce(url: str) -> None:
            address = f"{url}/#code={keys.new_code()}"
            leading.write(_REDIRECT.format(address))
            leading.flush()
            show(address, Path(leading.name))

        _serve(settings, (HOST, port), _own_roots(settings, started_in), keys, announce)


def _own_roots(settings: Settings, started_in: Path) -> tuple[Root, ...]:
    """Return what the user may add from the page: where they are and all that is theirs, and what is set."""
    roots, home = allowed_roots(settings["mcp.roots"], started_in, settings["org"]), Path.home().resolve()
    return roots if home == Path(home.anchor) else (*roots, Root(home, settings["org"]))


def in_browser(file: Path) -> bool:
    """Start the user's browser; return whether there is one that leaves the terminal alone."""
    with suppress(webbrowser.Error, OSError):
        browser = webbrowser.get()
        is_background = isinstance(browser, webbrowser.BackgroundBrowser)  # which may have ended by now
        if is_background or not isinstance(browser, webbrowser.GenericBrowser):
            return browser.open(file.as_uri()) or is_background
    return False


def _serve(
    settings: Settings,
    address: tuple[str, int],
    roots: tuple[Root, ...],
    keys: Keys,
    announce: Callable[[str], None],
) -> None:
    """Serve at an address until the process is told to end; `announce` is told the URL."""
    share_between_threads()
    host, port = address
    names = ("serve.max_bytes", "serve.max_connections", "serve.max_per_token")
    limits = HttpLimits(*(settings[name] for name in names))
    server = KnowledgeServer(ServerState(Bases(settings), roots))
    with listen(host, port) as listener:
        hosts, origins = [host, *_listed(settings["serve.hosts"])], _listed(settings["serve.origins"])
        web = web_server(application(server, keys, hosts, limits, origins), limits)

        is_interrupted = threading.Event()

        def interrupt(*_: object) -> None:
            is_interrupted.set()  # Python loses a KeyboardInterrupt that is raised in a finalizer
            web.should_exit = True

        signal.signal(signal.SIGINT, interrupt)
        announce(f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}")
        web.run(sockets=[listener])
    if is_interrupted.is_set():
        raise KeyboardInterrupt
    leave_if_busy()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def listen(host: str, port: int) -> socket.socket:
    """Open the socket to serve on."""
    message = f"cannot listen on {host}:{port}"
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(address[0]), int(address[1])), family=family)
    except (socket.gaierror, OverflowError) as fault:
        raise BadValue(f"{message}: {fault}", hint="see serve.host and serve.port") from fault
    except OSError as fault:
        hint = "another program may use the port: set serve.port, or 0 for any that is free"
        raise Unavailable(f"{message}: {fault.strerror or fault}", hint=hint) from fault


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


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, which would otherwise wait for the head of a request for ever."""

    _hang_up: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None  # uvicorn's own answer gives no hint
        if most is not None and len(self.connections) > most:
            self.app = _told_to_come_back  # and those before are not kept out
        self._wait_for_head()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        """Begin to wait for a head, or go on while there is only a part of one."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._hang_up is None:
            self._hang_up = self.loop.call_later(HEADERS_S, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._hang_up is not None:
            self._hang_up.cancel()
            self._hang_up = None


async def _told_to_come_back(scope: Scope, receive: Receive, send: Send) -> None:
    message = "the server has as many connections as serve.max_connections allows"
    fault = {"error": "Unavailable", "message": message, "hint": "ask again in a second"}
    await error_response(503, fault, {"Retry-After": "1", "Connection": "close"})(scope, receive, send)
