"""`kb mcp` and `kb serve`: the knowledge base for AI tools, over stdin and stdout or over HTTP."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from concord.cli import output
from concord.cli.command import Flags, command, settings_of


@command("mcp", "kb mcp", "kb --org team mcp")
def mcp(flags: Flags, as_json: bool) -> None:
    """Speak MCP over stdin and stdout, for the AI client that starts it.

    `kb install` tells a client how. stdout carries the protocol alone, which is JSON with or without --json.
    """
    from concord.mcp import start

    settings = settings_of(flags)
    if output.is_terminal(sys.stdin):
        output.talk("waiting for an MCP client on stdin; `kb install CLIENT` makes one start this by itself")
    start.over_stdio(settings, Path.cwd())


@command("serve", "kb serve", "kb serve --port 8421", "kb serve --new-token team")
@click.option(
    "--host", metavar="ADDRESS", help="The address to listen on; only a loopback one needs no token."
)
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), help="The port to listen on; 0 is any free one."
)
@click.option("--new-token", metavar="ORG", help="Make a token for an organisation, print it, serve nothing.")
def serve(flags: Flags, host: str | None, port: int | None, new_token: str | None, as_json: bool) -> None:
    """Serve MCP over streamable HTTP at /mcp.

    Without tokens anybody on this machine may ask, and nobody else. With them, each request needs one, and it
    sees the knowledge base of the token's organisation alone. With --json, the address is printed as soon as
    it is served.
    """
    from concord.mcp import start

    settings = settings_of(flags)
    if new_token is not None:
        token = start.new_token(settings, new_token)
        output.emit_json({"org": new_token, "token": token}) if as_json else output.emit(token)
        output.talk(f"stored in {start.token_file(settings)}; a running server takes it after a restart")
        return
    port = settings["serve.port"] if port is None else port
    try:
        start.over_http(
            settings, host or settings["serve.host"], port, Path.cwd(), partial(_announce, as_json)
        )
    except KeyboardInterrupt:  # how a server is ended at a terminal
        output.talk("stopped serving")


def _announce(as_json: bool, address: str, needs_token: bool) -> None:
    if as_json:
        output.emit_json({"url": address, "needs_token": needs_token})
    who = "with tokens: each request needs one" if needs_token else "without tokens, for this machine alone"
    output.talk(f"serving MCP at {address} {who}")
