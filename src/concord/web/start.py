"""Starting the HTTP server: settings in, a running server out. What the command line calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from concord.core.config import Settings
from concord.core.leaving import leave_if_busy
from concord.mcp.server import build
from concord.mcp.server_state import Bases, Root, ServerState, allowed_roots
from concord.parts import check_places
from concord.web import app, listening
from concord.web.guard import MCP, HttpLimits
from concord.web.sessions import Keys
from concord.web.tokens import grants_of


def over_http(
    settings: Settings, host: str, port: int, started_in: Path, announce: Callable[[str, bool], None]
) -> None:
    """Serve over HTTP until the process is told to end.

    `announce` is told the address of MCP, and whether requests need a token.

    Raises:
        BadValue: other machines could reach it and there is no token; a file of tokens was named that is
            empty or missing; or the address is wrong.
        BadValue, UnknownName, MissingExtra: with such settings no store could ever be opened.
        Unavailable: the address is taken.
    """
    check_places(settings)
    grants = grants_of(settings)
    listening.require_tokens(host, grants)
    near = started_in if listening.is_loopback(host) else None
    roots = allowed_roots(settings["mcp.roots"], near, settings["org"])
    serve(settings, (host, port), roots, Keys(grants), lambda url: announce(f"{url}{MCP}", bool(grants)))


def serve(
    settings: Settings,
    address: tuple[str, int],
    roots: tuple[Root, ...],
    keys: Keys,
    announce: Callable[[str], None],
) -> None:
    """Serve at an address until the process is told to end; `announce` is told the URL."""
    host, port = address
    names = ("serve.max_bytes", "serve.max_connections", "serve.max_per_token")
    limits = HttpLimits(*(settings[name] for name in names))
    server = build(ServerState(Bases(settings), roots))
    hosts = [host, *_listed(settings["serve.hosts"])]
    with listening.listen(host, port) as listener:
        served = app.application(server, keys, hosts, limits, _listed(settings["serve.origins"]))
        announce(f"http://{_written(host)}:{listener.getsockname()[1]}")
        listening.web_server(served, limits).run(sockets=[listener])
    leave_if_busy()


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host
