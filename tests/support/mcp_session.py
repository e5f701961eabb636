"""How the MCP tests start servers and talk to them: in this process, over stdio, over HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import CallToolResult, ReadResourceResult, TextResourceContents

import concord
from concord.core.config import load_settings
from concord.mcp.server import KnowledgeServer
from concord.mcp.server_state import Bases, Root, ServerState
from concord.mcp.table import TOOLS, Row
from support.engines import plain_environment

SOURCE = str(Path(concord.__file__).parent.parent)
KB = (sys.executable, "-c", "import sys; from concord.cli.main import main; sys.exit(main())")
ERAS = ("legacy", "2026-07-28")  # the initialize handshake, and a request at a time
BOUND_S = 60  # no test waits longer than this for anything


def run(scene: Callable[[], Awaitable[None]]) -> None:
    """Play a scene, and fail when it takes too long."""

    async def bounded() -> None:
        with anyio.fail_after(BOUND_S):
            await scene()

    anyio.run(bounded)


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the variables of a server that sees nothing of this machine's own knowledge base."""
    return {
        **plain_environment(),
        "PYTHONPATH": SOURCE,
        "KB_HOME": str(home),
        "KB_EMBED_PROVIDER": "hashing",
        **more,
    }


@asynccontextmanager
async def in_process(
    home: Path,
    era: str = "legacy",
    limits_s: Mapping[str, float] = {},
    tools: Sequence[Row] = TOOLS,
    **settings: Any,
) -> AsyncIterator[Client]:
    """Connect to a server in this process; `limits_s` are how long calls of some of its tools may take."""
    rows = [row._replace(limit_s=limits_s.get(row.name, row.limit_s)) for row in tools]
    async with Client(KnowledgeServer(server_state_at(home, **settings), rows), mode=era) as client:
        yield client


def server_state_at(home: Path, **settings: Any) -> ServerState:
    """Return what a server works with; it may index whatever lies beside its own home."""
    given = {"embed.provider": "hashing", **{key.replace("__", "."): v for key, v in settings.items()}}
    return ServerState(Bases(load_settings(given, {"KB_HOME": str(home)})), (Root(home.parent.resolve()),))


def over_stdio(home: Path, cwd: Path, era: str = "legacy", **more: str) -> Client:
    """Return the client of a server that it starts as a process of its own."""
    parameters = StdioServerParameters(
        command=KB[0], args=[*KB[1:], "mcp"], env=environment(home, **more), cwd=cwd
    )
    return Client(parameters, mode=era)


@contextmanager
def serving(home: Path, cwd: Path, *args: str, says: str = "", **more: str) -> Iterator[str]:
    """Start `kb serve` on a free port and give its address; it is ended afterwards.

    `says` is what it must say when it starts.
    """
    process = subprocess.Popen(
        [*KB, "serve", "--port", "0", *args],
        env=environment(home, **more),
        cwd=cwd,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + process.stderr.read()
        assert says in line
        yield found[0].replace("0.0.0.0", "127.0.0.1")
    finally:
        process.terminate()
        process.wait(BOUND_S)
        process.stderr.close()


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must succeed, and return its structured content."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, said(result)
    content: dict[str, Any] | None = result.structured_content
    assert content is not None
    return content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool that must refuse, and return what it says; that is text alone."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return said(result)


def said(result: CallToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(getattr(block, "text", "") for block in result.content)


def text_of(read: ReadResourceResult) -> str:
    """Return the text of a resource."""
    (content,) = read.contents
    assert isinstance(content, TextResourceContents)
    return content.text


def write_docs(folder: Path, count: int = 3) -> Path:
    """Write a small folder of Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "auth.md").write_text(
        "# Authentication\n\n## Login\n\nThe login checks the session token on every request.\n\n"
        "## Logout\n\nLogging out revokes the refresh token.\n",
        encoding="utf-8",
    )
    for number in range(1, count):
        (folder / f"page{number}.md").write_text(
            f"# Page {number}\n\nDeployment step {number} restarts worker number {number}.\n",
            encoding="utf-8",
        )
    return folder
