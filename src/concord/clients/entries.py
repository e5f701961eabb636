"""AI clients and where they keep their list of MCP servers: one row a client, one function that writes.

A configuration file belongs to its owner: only our entry changes, the rest stays as it is to the last
comment, a copy of the old file is kept beside it, and the new one takes its place in one step.
"""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from concord.clients import jsonc, toml_table
from concord.core.errors import BadValue, UnknownName, did_you_mean
from concord.core.filesystem import replace_file

Scope = Literal["user", "project"]
Environment = Mapping[str, str]
ENTRY = "concord"  # what our entry is called

Entry = dict[str, Any]


class Launch(NamedTuple):
    """How a client is to start the server."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]


class Client(Struct, frozen=True):
    """A program that talks MCP, and how it wants to be told of a server."""

    name: str
    title: str
    section: str  # the key that holds the servers
    user_file: Callable[[Environment], Path]
    project_file: str | None = None  # relative to the project; None where the client has no such file
    typed: bool = False  # whether an entry says "type": "stdio"
    toml: bool = False


class Change(NamedTuple):
    """What was, or would be, done to a file."""

    path: Path
    before: str
    after: str
    backup: Path | None

    @property
    def state(self) -> str:
        """In one word: unchanged, created or changed."""
        return "unchanged" if self.before == self.after else "changed" if self.backup else "created"

    def diff(self) -> str:
        """Return what changed, as a unified diff."""
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), str(self.path), str(self.path), lineterm=""
        )
        return "\n".join(lines)


def home(environment: Environment) -> Path:
    """Return the user's own folder."""
    return Path(environment.get("HOME") or os.path.expanduser("~"))


def application_folder(environment: Environment, mac: str = "Library/Application Support") -> Path:
    """Return where programs with windows keep their settings on this platform."""
    if sys.platform == "darwin":
        return home(environment) / mac
    return Path(environment.get("XDG_CONFIG_HOME") or home(environment) / ".config")


def _under_home(path: str, variable: str = "", inside: str = "") -> Callable[[Environment], Path]:
    """Return the finder of a file in the home folder, or of `inside` in the folder that a variable names."""

    def find(environment: Environment) -> Path:
        moved = environment.get(variable) if variable else None
        return Path(moved) / inside if moved else home(environment) / path

    return find


# Locations and keys as each client documents them, looked up in November 2026.
CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude",
            "Claude Code",
            "mcpServers",
            _under_home(".claude.json", "CLAUDE_CONFIG_DIR", ".claude.json"),
            ".mcp.json",
            typed=True,
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "mcpServers",
            lambda environment: application_folder(environment) / "Claude/claude_desktop_config.json",
        ),
        Client(
            "cursor", "Cursor", "mcpServers", _under_home(".cursor/mcp.json"), ".cursor/mcp.json", typed=True
        ),
        Client(
            "vscode",
            "Visual Studio Code",
            "servers",
            lambda environment: application_folder(environment) / "Code/User/mcp.json",
            ".vscode/mcp.json",
            typed=True,
        ),
        Client(
            "gemini",
            "Gemini CLI",
            "mcpServers",
            _under_home(".gemini/settings.json"),
            ".gemini/settings.json",
        ),
        Client("windsurf", "Windsurf", "mcpServers", _under_home(".codeium/windsurf/mcp_config.json")),
        Client(
            "zed",
            "Zed",
            "context_servers",
            lambda environment: application_folder(environment, mac=".config") / "zed/settings.json",
            ".zed/settings.json",
        ),
        Client(
            "codex",
            "Codex CLI",
            "mcp_servers",
            _under_home(".codex/config.toml", "CODEX_HOME", "config.toml"),
            ".codex/config.toml",
            toml=True,
        ),
    )
}


def find_client(name: str) -> Client:
    """Return a client by name.

    Raises:
        UnknownName: there is no such row.
    """
    if name not in CLIENTS:
        hint = did_you_mean(name, CLIENTS, f"known: {', '.join(CLIENTS)}")
        raise UnknownName(f"no client is called {name!r}", hint=hint)
    return CLIENTS[name]


def config_path(client: Client, scope: Scope, project: Path, environment: Environment) -> Path:
    """Return the file that a client reads in a scope.

    Raises:
        BadValue: the client has no file for projects.
    """
    if scope == "user":
        return client.user_file(environment)
    if client.project_file is None:
        raise BadValue(f"{client.title} has no configuration for a project", hint="use --scope user")
    return project / client.project_file


def entry_for(client: Client, launch: Launch) -> Entry:
    """Return our entry, as the client wants it."""
    entry: Entry = {"type": "stdio"} if client.typed else {}
    entry |= {"command": launch.command, "args": list(launch.args)}
    return {**entry, "env": dict(launch.env)} if launch.env else entry


def snippet(client: Client, entry: Entry) -> str:
    """Return what to paste into an empty file."""
    return _changed("", client, entry)


def install(client: Client, path: Path, entry: Entry) -> Change:
    """Write our entry into a client's file; a file that has it already is not touched.

    Raises:
        BadValue: the file is not what the client would read, so it is left alone.
    """
    hint = "mend the file, or add what --print shows by hand"
    return _replace(path, client, lambda text: _changed(text, client, entry), hint)


def uninstall(client: Client, path: Path) -> Change:
    """Take our entry out of a client's file.

    Raises:
        BadValue: the file is not what the client would read, so it is left alone.
    """

    def without(text: str) -> str:
        if client.toml:
            return toml_table.without_table(text, client.section, ENTRY)
        return jsonc.without_member(text, client.section, ENTRY)

    return _replace(path, client, without, f"mend the file, or take {ENTRY!r} out by hand")


def _changed(text: str, client: Client, entry: Entry) -> str:
    if client.toml:
        return toml_table.with_table(text, client.section, ENTRY, entry)
    return jsonc.with_member(text, client.section, ENTRY, entry)


def _replace(path: Path, client: Client, edit: Callable[[str], str], hint: str) -> Change:
    before = _read(path)
    try:
        others = _others(before, client)
        after = edit(before)
        if others != _others(after, client):
            raise ValueError("its other entries would change")
    except (ValueError, TypeError, AttributeError, RecursionError) as fault:
        raise BadValue(f"cannot change {path}: {fault}", hint=hint) from fault
    if before == after:
        return Change(path, before, after, None)
    backup = _back_up(path) if path.exists() else None
    _write(path, after)
    return Change(path, before, after, backup)


def _others(text: str, client: Client) -> Any:
    """Return all that a file says, but for our entry.

    Raises:
        ValueError: it is not of the shape that the client would read.
    """
    said = toml_table.loads(text) if client.toml else jsonc.loads(text)
    if not isinstance(said, dict):
        raise ValueError("it does not hold a JSON object")
    section = said.get(client.section, {})
    if not isinstance(section, dict):
        raise ValueError(f"{client.section!r} is not {'a table' if client.toml else 'an object'}")
    return (
        {key: value for key, value in said.items() if key != client.section},
        {key: value for key, value in section.items() if key != ENTRY},
    )


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:  # line ends as they are
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="check the file") from fault


def _back_up(path: Path) -> Path:
    """Copy a file beside itself, under a name that no earlier copy has."""
    stem = f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}"
    names = (path.with_name(f"{stem}{suffix}.bak") for suffix in ("", *(f"-{n}" for n in range(2, 1000))))
    backup = next(name for name in names if not name.exists())
    backup.write_bytes(path.read_bytes())
    backup.chmod(path.stat().st_mode & 0o777)
    return backup


def _write(path: Path, text: str) -> None:
    """Put a file in its place in one step; where the name is a link, what it leads to is replaced."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, text.encode(), mode=0o600)
