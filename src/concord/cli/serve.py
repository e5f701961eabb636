"""`kb mcp` and `kb serve`: the knowledge base for AI tools, over stdin and stdout or over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from concord.cli import output
from concord.cli.command import Flags, command, settings_of

if TYPE_CHECKING:
    from concord.config import Settings


@command("mcp", "kb mcp", "kb --org team mcp")
def mcp(flags: Flags, as_json: bool) -> None:
    """Speak MCP over stdin and stdout, for the AI client that starts it.

    `kb install` tells a client how. stdout carries the protocol alone, which is JSON with or without --json.
    """
    from concord.mcp.bases import Bases
    from concord.mcp.desk import Desk
    from concord.mcp.roots import allowed_roots
    from concord.mcp.server import build
    from concord.mcp.stdio import run

    settings = settings_of(flags)
    roots = allowed_roots(settings["mcp.roots"], Path.cwd())
    run(build(Desk(Bases(settings), roots)))


@command("serve", "kb serve", "kb serve --port 8421", "kb serve --new-token team")
@click.option(
    "--host", metavar="ADDRESS", help="The address to listen on; any but a loopback one needs a token."
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), help="The port to listen on; 0 is any free one."
)
@click.option(
    "--new-token", metavar="ORG", help="Make a token for an organisation, print it, and serve nothing."
)
def serve(flags: Flags, host: str | None, port: int | None, new_token: str | None, as_json: bool) -> None:
    """Serve MCP over streamable HTTP at /mcp.

    Without tokens anybody on this machine may ask, and nobody else. With them, each request needs one, and it
    sees the knowledge base of the token's organisation alone.
    """
    from concord.mcp.tokens import add_token

    settings = settings_of(flags)
    tokens = _token_file(settings)
    if new_token is not None:
        token = add_token(tokens, new_token)
        output.emit_json({"org": new_token, "token": token}) if as_json else output.emit(token)
        output.talk(f"stored in {tokens}; a running server takes it after a restart")
        return
    _serve(settings, tokens, host or settings["serve.host"], settings["serve.port"] if port is None else port)


def _serve(settings: Settings, tokens: Path, host: str, port: int) -> None:
    from concord.mcp import http
    from concord.mcp.bases import Bases
    from concord.mcp.desk import Desk
    from concord.mcp.roots import allowed_roots
    from concord.mcp.server import build
    from concord.mcp.tokens import read_grants

    grants = read_grants(tokens)
    http.require_tokens(host, grants)
    local = http.is_loopback(host)
    roots = allowed_roots(settings["mcp.roots"], Path.cwd() if local else None)
    limits = http.Limits(settings["serve.max_bytes"], settings["serve.max_connections"])
    names = [name.strip() for name in settings["serve.hosts"].split(",") if name.strip()]
    listener = http.listen(host, port)
    with listener:
        app = http.application(build(Desk(Bases(settings), roots)), grants, [host, *names], limits)
        output.talk(f"serving MCP at http://{host}:{listener.getsockname()[1]}{http.PATH}")
        http.web_server(app, limits).run(sockets=[listener])


def _token_file(settings: Settings) -> Path:
    named: str = settings["serve.tokens"]
    return Path(named).expanduser() if named else settings.paths.config / "tokens"
