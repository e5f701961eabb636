"""`kb mcp`, `serve`, `ui`, `engine` and `install`: how programs reach a knowledge base."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from concord.cli import output
from concord.cli.command import NOTHING_FOUND, Flags, command, group, refuse

if TYPE_CHECKING:
    from concord.clients.entries import Change, Client, Scope

_port = click.IntRange(0, 65535)


@command("mcp", "kb mcp", "kb --org team mcp")
def mcp(flags: Flags) -> None:
    """Speak MCP over stdin and stdout, for the AI client that starts it.

    `kb install` tells a client how. stdout carries the protocol alone, which is JSON with or without --json.
    """
    from concord.engine import relay

    settings = flags.settings
    if output.is_terminal(sys.stdin):
        output.talk("waiting for an MCP client on stdin; `kb install CLIENT` makes one start this by itself")
    if not relay.run(settings):
        from concord.mcp import stdio

        stdio.over_stdio(settings, Path.cwd())


@command("serve", "kb serve", "kb serve --port 8421", "kb serve --new-token team")
@click.option(
    "--host", metavar="ADDRESS", help="The address to listen on; only a loopback one needs no token."
)
@click.option("--port", metavar="N", type=_port, help="The port to listen on; 0 is any free one.")
@click.option("--new-token", metavar="ORG", help="Make a token for an organisation, print it, serve nothing.")
def serve(flags: Flags, host: str | None, port: int | None, new_token: str | None) -> None:
    """Serve MCP over streamable HTTP at /mcp, a JSON API at /api/v1 and the page at /.

    Without tokens anybody on this machine may ask, and nobody else. With them, each request needs one, and it
    sees the knowledge base of the token's organisation alone. With --json, the address is printed as soon as
    it is served.
    """
    from concord.web import keys, server

    settings = flags.settings
    if new_token is not None:
        made = {"org": new_token, "token": keys.add_token(keys.token_file(settings), new_token)}
        flags.show(made, lambda made: output.emit(made["token"]))
        output.talk(f"stored in {keys.token_file(settings)}; a running server takes it after a restart")
        return

    def announce(address: str, needs_token: bool) -> None:
        flags.show({"url": address, "needs_token": needs_token}, lambda _: None)
        who = (
            "with tokens: each request needs one" if needs_token else "without tokens, for this machine alone"
        )
        output.talk(f"serving MCP at {address} {who}")

    port = settings["serve.port"] if port is None else port
    try:
        server.over_http(settings, host or settings["serve.host"], port, Path.cwd(), announce)
    except KeyboardInterrupt:  # how a server is ended at a terminal
        output.talk("stopped serving")


@command("ui", "kb ui", "kb ui --no-open")
@click.option("--port", metavar="N", type=_port, default=0, help="The port to listen on.")
@click.option("--no-open", is_flag=True, help="Print the address, which works once, and open nothing.")
def ui(flags: Flags, port: int, no_open: bool) -> None:
    """Open the page in the browser, from a server that is yours alone.

    Other users of this machine cannot ask that server: the address holds a code that works once, within two
    minutes.
    """
    from concord.web import server

    def show(url: str, file: Path) -> None:
        if flags.as_json:
            output.emit_json({"url": url})
        elif not no_open and server.in_browser(file):
            output.talk("the page is open in your browser")
        else:
            output.emit(url)
            output.talk("open this address in a browser: it works once, within two minutes")

    try:
        server.open_page(flags.settings, port, Path.cwd(), show)
    except KeyboardInterrupt:
        output.talk("stopped serving")


@group("engine", "kb engine status", "kb engine stop", "kb engine status --json")
def engine(flags: Flags) -> int:
    """Look at the process that works for all clients of these settings, or end it.

    `kb search` starts it after its answer, `kb mcp` at once, and it ends by itself when nobody has needed it
    for a while (engine.idle_s). With engine.start never there is none.
    """
    return _show_engine(flags, "status")


@engine.own("status", "kb engine status", "kb engine status --json")
def status(flags: Flags) -> int:
    """Tell whether an engine runs, for how many clients, and what it is doing.

    Exit status: 0 it runs, 1 it does not.
    """
    return _show_engine(flags, "status")


@engine.own("stop", "kb engine stop", "kb engine stop --json")
def stop(flags: Flags) -> int:
    """End the engine; clients that still need one start another.

    Exit status: 0 it ends, 1 there was none.
    """
    return _show_engine(flags, "stop")


def _show_engine(flags: Flags, service: str) -> int:
    from concord.engine.client import ask

    state = ask(flags.settings, service)
    if state is None and not flags.as_json:
        output.talk("no engine is running for these settings")
    else:
        flags.show(state or {"running": False}, lambda told: output.facts({**told, "pid": str(told["pid"])}))
        if state and service == "stop":
            output.talk("it ends now")
    return NOTHING_FOUND if state is None else 0


@command(
    "install",
    "kb install claude",
    "kb install vscode --scope project --root ~/work",
    "kb install --check",
)
@click.argument("client", metavar="[CLIENT]", required=False)
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    help="For all your work, or this folder.",
)
@click.option(
    "--root", "roots", metavar="PATH", multiple=True, help="A folder that agents may index; repeatable."
)
@click.option(
    "--url", metavar="URL", help="The address of a server (`kb serve`) to use, instead of one here."
)
@click.option("--token-variable", metavar="NAME", help="The variable that will hold that server's token.")
@click.option("--check", is_flag=True, help="Say whether each client, or CLIENT, sees a server that answers.")
@click.option("--uninstall", is_flag=True, help="Take our entry out again.")
def install(flags: Flags, client: str | None, check: bool, **given: Any) -> int:
    """Write an AI client's configuration, so that it starts `kb mcp`, or asks a server.

    CLIENT is claude, claude-desktop, cursor, vscode, gemini, windsurf, zed or codex. Other entries stay, the
    old file is kept beside the new one, and doing it twice changes nothing. JSON with comments is left alone:
    what to paste there is shown instead. Keys, passwords and tokens are not written.

    With --check, what the files name is started or asked. Exit status: 0 all answer, 1 some do not.
    """
    from concord.clients.entries import CLIENTS, find_client

    if check:
        return _check(flags, [find_client(client).name] if client else list(CLIENTS))
    if client is None:
        refuse("name a CLIENT, or give --check")
    if (given["url"] is None and given["token_variable"]) or (given["url"] is not None and given["roots"]):
        refuse("--token-variable goes with --url, and --root without it: the server has its own")
    _install(flags, find_client(client), **given)
    return 0


def _install(
    flags: Flags,
    client: Client,
    *,
    scope: Scope,
    roots: tuple[str, ...],
    url: str | None,
    token_variable: str | None,
    uninstall: bool,
) -> None:
    from concord.clients import entries, launching

    path = entries.config_path(client, scope, Path.cwd(), os.environ)
    entry: dict[str, Any] | None = None
    left_out: list[str] = []
    if url is not None:
        entry = entries.entry_at(client, url, token_variable)
    elif not uninstall:
        given = {"--store": flags.store, "--org": flags.org}
        allowed = flags.settings["mcp.roots"]
        if scope == "project" and roots and allowed:
            output.talk(
                f"a project's file may be shared, so the folders of mcp.roots are not written: {allowed};"
                " agents that use this entry may index what --root names instead"
            )
        entry, left_out = launching.entry_for(client, given, scope, roots, os.environ, allowed)
    change = entries.write(client, path, None if uninstall else entry)
    backup = str(change.backup) if change.backup else None
    wire = {"client": client.name, "path": str(path), "state": change.state, "backup": backup}
    flags.show({**wire, "left_out": left_out}, lambda _: _show_change(change, client))
    if left_out:
        hint = f"set it where {client.title} is started; a PostgreSQL password also goes into ~/.pgpass"
        output.talk(f"secret, so not written: {', '.join(left_out)}; {hint}")


def _show_change(change: Change, client: Client) -> None:
    if change.state == "unchanged":
        output.talk(f"{change.path} is already as it should be")
        return
    kept = f"; the old file is {change.backup}" if change.backup else ""
    output.talk(f"{change.state} {change.path}{kept}; restart {client.title} to make it take effect")


def _check(flags: Flags, names: list[str]) -> int:
    from concord.clients.launching import looked_at

    sights = list(looked_at(names, Path.cwd(), os.environ))
    heads = {"client": "client", "state": "server", "path": "file", "reason": "why"}
    flags.show({"clients": sights}, lambda _: output.listed(sights, heads, "no clients"))
    states = {sight["state"] for sight in sights}
    return 0 if "answers" in states and "fails" not in states else NOTHING_FOUND
