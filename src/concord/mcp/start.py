"""Starting the server: settings in, a running server out. What the command line calls."""

from __future__ import annotations

from pathlib import Path

from concord.core.config import Settings
from concord.core.leaving import leave_if_busy
from concord.mcp.server import build
from concord.mcp.server_state import Bases, ServerState, allowed_roots
from concord.parts import check_places


def over_stdio(settings: Settings, started_in: Path) -> None:
    """Serve the client that started us, until it goes.

    Raises:
        BadValue, UnknownName, MissingExtra: with such settings no store could ever be opened.
        NotFound: a folder of `mcp.roots` does not exist.
    """
    from concord.mcp import stdio

    check_places(settings)
    stdio.run(
        build(ServerState(Bases(settings), allowed_roots(settings["mcp.roots"], started_in, settings["org"])))
    )
    leave_if_busy()
