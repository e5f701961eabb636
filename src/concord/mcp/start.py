"""Starting the server: settings in, a running server out. What the command line calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from concord.core.config import Settings
from concord.core.errors import BadValue
from concord.leaving import leave_if_busy
from concord.mcp.bases import Bases
from concord.mcp.roots import Root, allowed_roots
from concord.mcp.server import build
from concord.mcp.server_state import ServerState
from concord.parts import check_places

if TYPE_CHECKING:
    from concord.mcp.access_tokens import Grant


def over_stdio(settings: Settings, started_in: Path) -> None:
    """Serve the client that started us, until it goes.

    Raises:
        BadValue, UnknownName, MissingExtra: with such settings no store could ever be opened.
        NotFound: a folder of `mcp.roots` does not exist.
    """
    from concord.mcp import stdio

    check_places(settings)
    stdio.run(build(ServerState(Bases(settings), _roots(settings, started_in))))
    leave_if_busy()


def over_http(
    settings: Settings, host: str, port: int, started_in: Path, announce: Callable[[str, bool], None]
) -> None:
    """Serve over HTTP until the process is told to end.

    `announce` is told the address, and whether requests need a token.

    Raises:
        BadValue: other machines could reach it and there is no token; a file of tokens was named that is
            empty or missing; or the address is wrong.
        BadValue, UnknownName, MissingExtra: with such settings no store could ever be opened.
        Unavailable: the address is taken.
    """
    from concord.mcp import http

    check_places(settings)
    grants = grants_of(settings)
    http.require_tokens(host, grants)
    roots = _roots(settings, started_in if http.is_loopback(host) else None)
    limits = http.HttpLimits(settings["serve.max_bytes"], settings["serve.max_connections"])
    names = [name.strip() for name in settings["serve.hosts"].split(",") if name.strip()]
    with http.listen(host, port) as listener:
        app = http.application(build(ServerState(Bases(settings), roots)), grants, [host, *names], limits)
        announce(f"http://{_written(host)}:{listener.getsockname()[1]}{http.PATH}", bool(grants))
        http.web_server(app, limits).run(sockets=[listener])
    leave_if_busy()


def new_token(settings: Settings, org: str) -> str:
    """Make a token for an organisation and return it.

    Raises:
        BadValue: the name cannot name an organisation, or the file of tokens is not as it must be.
    """
    from concord.mcp.access_tokens import add_token

    return add_token(token_file(settings), org)


def grants_of(settings: Settings) -> tuple[Grant, ...]:
    """Return the tokens to serve with; none only where nobody asked for any.

    Raises:
        BadValue: the file that was named is not there, or a file has no token. To serve without tokens then
            would open to everybody what was meant for a few.
    """
    from concord.mcp.access_tokens import read_grants

    path = token_file(settings)
    if grants := read_grants(path):
        return grants
    if os.path.lexists(path):  # also a link that leads nowhere: what it led to may not be mounted
        raise BadValue(
            f"there is no token in {path}",
            hint="`kb serve --new-token ORG` adds one; to serve this machine without tokens, remove the file",
        )
    if settings["serve.tokens"]:
        raise BadValue(
            f"there is no file of tokens at {path}, which serve.tokens names",
            hint="correct serve.tokens (KB_SERVE_TOKENS), or make the file: `kb serve --new-token ORG`",
        )
    return ()


def token_file(settings: Settings) -> Path:
    """Return where the tokens are."""
    named: str = settings["serve.tokens"]
    return Path(named).expanduser() if named else Path(settings.paths.config, "tokens")


def _roots(settings: Settings, started_in: Path | None) -> tuple[Root, ...]:
    return allowed_roots(settings["mcp.roots"], started_in, settings["org"])


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host
