"""`kb install`: tell an AI client how to start our MCP server, or where it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from concord.cli import output
from concord.cli.command import NOTHING_FOUND, Flags, command, refuse, settings_of

if TYPE_CHECKING:
    from concord.clients.entries import Change, Client, Entry, Scope
    from concord.clients.launching import Secrets


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
@click.option("--print", "only_print", is_flag=True, help="Show what to write, and write nothing.")
@click.option("--uninstall", is_flag=True, help="Take our entry out again.")
def install(
    flags: Flags,
    client: str | None,
    scope: Scope,
    roots: tuple[str, ...],
    url: str | None,
    token_variable: str | None,
    check: bool,
    only_print: bool,
    uninstall: bool,
    as_json: bool,
) -> int:
    """Write an AI client's configuration, so that it starts `kb mcp`, or asks a server.

    CLIENT is claude, claude-desktop, cursor, vscode, gemini, windsurf, zed or codex. Other entries stay, the
    old file is kept beside the new one, and doing it twice changes nothing. JSON with comments is left alone:
    what to paste there is shown instead. Keys, passwords and tokens are not written.

    With --check, what the files name is started or asked. Exit status: 0 all answer, 1 some do not.
    """
    from concord.clients import entries

    if check:
        return _check((client,) if client else tuple(entries.CLIENTS), as_json=as_json)
    if client is None:
        refuse("name a CLIENT, or give --check")
    if (url is None and token_variable) or (url is not None and roots):
        refuse("--token-variable goes with --url, and --root without it: the server has its own")
    chosen = entries.find_client(client)
    path = entries.config_path(chosen, scope, Path.cwd(), os.environ)
    if url is not None:
        entry, secrets = entries.entry_at(chosen, url, token_variable), None
    else:
        entry, secrets = _started_here(flags, chosen, scope, roots, wanted=not uninstall)
    if only_print:
        output.talk(f"for {path}:")
        output.emit(entries.snippet(chosen, entry))
    else:
        change = entries.uninstall(chosen, path) if uninstall else entries.install(chosen, path, entry)
        left_out = [*secrets.variables, *secrets.passwords] if secrets else []
        _show(change, chosen, left_out, as_json=as_json)
    if secrets:
        _tell(secrets, chosen.title)
    return 0


def _started_here(
    flags: Flags, client: Client, scope: Scope, roots: tuple[str, ...], *, wanted: bool
) -> tuple[Entry, Secrets | None]:
    """Return the entry that starts a server here, and what was left out of it."""
    from concord.clients import entries, launching

    carried = {} if scope == "project" else os.environ
    given = {"--store": flags.store, "--org": flags.org}
    allowed = settings_of(flags)["mcp.roots"] if wanted else ""
    if scope == "project" and roots and allowed:
        output.talk(
            f"a project's file may be shared, so the folders of mcp.roots are not written: {allowed};"
            " agents that use this entry may index what --root names instead"
        )
    entry = entries.entry_for(client, launching.launch(given, scope, roots, carried, allowed))
    return entry, launching.secrets(given, carried) if wanted else None


def _check(names: tuple[str, ...], *, as_json: bool) -> int:
    from concord.clients.checking import looked_at
    from concord.clients.entries import find_client

    found = list(looked_at(tuple(find_client(name).name for name in names), Path.cwd(), os.environ))
    if as_json:
        output.emit_json({"clients": [sight._asdict() for sight in found]})
    else:
        rows = [(sight.client, sight.state, sight.path, sight.reason or "") for sight in found]
        output.emit(output.table(("client", "server", "file", ""), rows))
    is_well = any(sight.state == "answers" for sight in found) and all(s.state != "fails" for s in found)
    return 0 if is_well else NOTHING_FOUND


def _tell(secrets: Secrets, title: str) -> None:
    if secrets.variables:
        output.talk(
            f"secret, so not written: {', '.join(secrets.variables)}; set it where {title} is started"
        )
    if secrets.passwords:
        output.talk(
            f"secret, so not written: {', '.join(secrets.passwords)};"
            f" write it into ~/.pgpass, or set PGPASSWORD where {title} is started"
        )


def _show(change: Change, client: Client, secrets: list[str], *, as_json: bool) -> None:
    if as_json:
        backup = str(change.backup) if change.backup else None
        state = {"client": client.name, "path": str(change.path), "state": change.state, "backup": backup}
        output.emit_json({**state, "left_out": secrets})
        return
    if change.state == "unchanged":
        output.talk(f"{change.path} is already as it should be")
        return
    output.emit(change.diff())
    output.talk(
        f"{change.state} {change.path}" + (f"; the old file is {change.backup}" if change.backup else "")
    )
    output.talk(f"restart {client.title} to make it take effect")
