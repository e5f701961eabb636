"""Starting the server: settings in, a running server out. What the command line calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from concord.config import Settings
from concord.mcp.bases import Bases
from concord.mcp.desk import Desk
from concord.mcp.leaving import leave_if_busy
from concord.mcp.roots import allowed_roots
from concord.mcp.server import build


def over_stdio(settings: Settings, started_in: Path) -> None:
    """Serve the client that started us, until it goes.

    Raises:
        NotFound: a folder of `mcp.roots` does not exist.
    """
    from concord.mcp import stdio

    stdio.run(build(Desk(Bases(settings), allowed_roots(settings["mcp.roots"], started_in))))
    leave_if_busy()


def over_http(
    settings: Settings, host: str, port: int, started_in: Path, announce: Callable[[str], None]
) -> None:
    """Serve over HTTP until the process is told to end; `announce` is told the address.

    Raises:
        BadValue: others could reach it and there is no token, or the address is wrong.
        Unavailable: the address is taken.
    """
    from concord.mcp import http
    from concord.mcp.tokens import read_grants

    grants = read_grants(token_file(settings))
    http.require_tokens(host, grants)
    roots = allowed_roots(settings["mcp.roots"], started_in if http.is_loopback(host) else None)
    limits = http.Limits(settings["serve.max_bytes"], settings["serve.max_connections"])
    names = [name.strip() for name in settings["serve.hosts"].split(",") if name.strip()]
    with http.listen(host, port) as listener:
        app = http.application(build(Desk(Bases(settings), roots)), grants, [host, *names], limits)
        announce(f"http://{_written(host)}:{listener.getsockname()[1]}{http.PATH}")
        http.web_server(app, limits).run(sockets=[listener])
    leave_if_busy()


def new_token(settings: Settings, org: str) -> str:
    """Make a token for an organisation and return it.

    Raises:
        BadValue: the name cannot name an organisation, or the file of tokens is not as it must be.
    """
    from concord.mcp.tokens import add_token

    return add_token(token_file(settings), org)


def token_file(settings: Settings) -> Path:
    """Return where the tokens are."""
    named: str = settings["serve.tokens"]
    return Path(named).expanduser() if named else Path(settings.paths.config, "tokens")


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host
