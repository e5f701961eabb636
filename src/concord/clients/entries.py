"""AI clients and where they keep their list of MCP servers: one row a client, one function that writes.

A configuration file belongs to its owner: only our entry changes, a copy of the old file is kept beside it,
and the new one takes its place in one step. JSON with comments is not rewritten, because they would be lost:
its owner is given what to paste.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

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
    user_file: str  # below the user's own folder, that of configurations, or that of programs with windows
    project_file: str | None = None  # relative to the project; None where the client has no such file
    typed: bool = False  # whether an entry says "type": "stdio"
    toml: bool = False
    moved_by: str = ""  # the variable that names another folder for the user's file
    url_key: str | None = "url"  # where an entry says the address of a server; None where none can
    token: str = ""  # how a header names a variable; empty where it cannot


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


# Locations and keys as each client documents them, looked up in November 2026.
# fmt: off
CLIENTS: Mapping[str, Client] = {client.name: client for client in (
    Client("claude", "Claude Code", "mcpServers", "HOME/.claude.json", ".mcp.json",
           typed=True, moved_by="CLAUDE_CONFIG_DIR", token="${%s}"),
    Client("claude-desktop", "Claude Desktop", "mcpServers", "APPS/Claude/claude_desktop_config.json",
           url_key=None),
    Client("cursor", "Cursor", "mcpServers", "HOME/.cursor/mcp.json", ".cursor/mcp.json",
           typed=True, token="${env:%s}"),
    Client("vscode", "Visual Studio Code", "servers", "APPS/Code/User/mcp.json", ".vscode/mcp.json",
           typed=True, token="${env:%s}"),
    Client("gemini", "Gemini CLI", "mcpServers", "HOME/.gemini/settings.json", ".gemini/settings.json",
           url_key="httpUrl", token="$%s"),
    Client("windsurf", "Windsurf", "mcpServers", "HOME/.codeium/windsurf/mcp_config.json",
           url_key="serverUrl", token="${env:%s}"),
    Client("zed", "Zed", "context_servers", "CONFIG/zed/settings.json", ".zed/settings.json"),
    Client("codex", "Codex CLI", "mcp_servers", "HOME/.codex/config.toml", ".codex/config.toml",
           toml=True, moved_by="CODEX_HOME"),
)}
# fmt: on


def find_client(name: str) -> Client:
    """Return a client by name."""
    if name not in CLIENTS:
        hint = did_you_mean(name, CLIENTS, f"known: {', '.join(CLIENTS)}")
        raise UnknownName(f"no client is called {name!r}", hint=hint)
    return CLIENTS[name]


def config_path(client: Client, scope: Scope, project: Path, environment: Environment) -> Path:
    """Return the file that a client reads in a scope: in a project, or whatever the project."""
    if scope == "project":
        if client.project_file is None:
            raise BadValue(f"{client.title} has no configuration for a project", hint="use --scope user")
        return project / client.project_file
    home = Path(environment.get("HOME") or os.path.expanduser("~"))
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    apps = home / "Library/Application Support" if sys.platform == "darwin" else config
    folder, _, file = client.user_file.partition("/")
    path = {"HOME": home, "CONFIG": config, "APPS": apps}[folder] / file
    moved = environment.get(client.moved_by) if client.moved_by else None
    return Path(moved) / path.name if moved else path


def entry_for(client: Client, launch: Launch) -> Entry:
    """Return our entry, as the client wants it."""
    entry: Entry = {"type": "stdio"} if client.typed else {}
    entry |= {"command": launch.command, "args": list(launch.args)}
    return {**entry, "env": dict(launch.env)} if launch.env else entry


def entry_at(client: Client, url: str, token_variable: str | None = None) -> Entry:
    """Return our entry for a server at an address; its token stays in a variable.

    Raises:
        BadValue: it is no address, or the client takes none, or no variable for its token.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.password:
        raise BadValue(f"{url!r} is no address of a server", hint="such as http://127.0.0.1:8420/mcp")
    if client.url_key is None:
        raise BadValue(f"{client.title}'s file names no servers by address", hint="add it in its settings")
    entry: Entry = {"type": "http"} if client.typed else {}
    entry[client.url_key] = url if parts.path.strip("/") else f"{url.rstrip('/')}/mcp"
    if not token_variable:
        return entry
    if client.toml:
        return {**entry, "bearer_token_env_var": token_variable}
    if not client.token:
        raise BadValue(f"{client.title}'s file names no variables", hint="add the header in its settings")
    return {**entry, "headers": {"Authorization": f"Bearer {client.token % token_variable}"}}


def entry_in(client: Client, path: Path) -> Entry | None:
    """Return our entry in a client's file, if it has one.

    Raises:
        BadValue: it cannot be read.
    """
    try:
        section = _loads(_read(path), client).get(client.section, {})
    except (ValueError, RecursionError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="check the file") from fault
    found = section.get(ENTRY) if isinstance(section, dict) else None
    return found if isinstance(found, dict) else None


def snippet(client: Client, entry: Entry) -> str:
    """Return what to paste into an empty file."""
    return _edited("", client, entry)


def install(client: Client, path: Path, entry: Entry) -> Change:
    """Write our entry into a client's file; a file that has it already is not touched."""
    pasted = f"{json.dumps(ENTRY)}: {json.dumps(entry, ensure_ascii=False)}"
    hint = "add what --print shows by hand" if client.toml else f"paste into {client.section!r}: {pasted}"
    return _replace(path, client, entry, hint)


def uninstall(client: Client, path: Path) -> Change:
    """Take our entry out of a client's file."""
    return _replace(path, client, None, f"take {ENTRY!r} out by hand")


def _replace(path: Path, client: Client, entry: Entry | None, hint: str) -> Change:
    before, backup = _read(path), None
    try:
        after = _edited(before, client, entry)
    except (ValueError, RecursionError) as fault:
        raise BadValue(f"cannot change {path}: {fault}", hint=hint) from fault
    if before != after:
        backup = _back_up(path) if path.exists() else None
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, after.encode(), mode=0o600)
    return Change(path, before, after, backup)


def _edited(text: str, client: Client, entry: Entry | None) -> str:
    """Return a file's text with our entry, or without it; the same text if that is as it should be."""
    values = _loads(text, client)
    section = values.get(client.section, {})
    if not isinstance(section, dict):
        raise ValueError(f"{client.section!r} is not {'a table' if client.toml else 'an object'}")
    if section.get(ENTRY) == entry:
        return text
    entries = {name: given for name, given in {**section, ENTRY: entry}.items() if given is not None}
    wanted = {**values, client.section: entries}
    if not entries:
        del wanted[client.section]
    return _edited_toml(text, client, entry, wanted) if client.toml else _written_like(text, wanted)


def _loads(text: str, client: Client) -> dict[str, Any]:
    if client.toml:
        return tomllib.loads(text)
    try:
        values = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as fault:
        raise ValueError(f"it has comments, or is not JSON ({fault})") from fault
    if not isinstance(values, dict):
        raise ValueError("it does not hold a JSON object")
    return values


def _written_like(text: str, values: dict[str, Any]) -> str:
    """Return JSON with the indentation and the line ends of a text."""
    indented = re.search(r"\n([ \t]+)\S", text)
    written = json.dumps(values, indent=indented[1] if indented else 2, ensure_ascii=False) + "\n"
    return written.replace("\n", "\r\n") if "\r\n" in text else written


def _edited_toml(text: str, client: Client, entry: Entry | None, wanted: dict[str, Any]) -> str:
    import tomlkit  # late: only one client needs it

    document = tomlkit.parse(text)
    if client.section not in document:
        document[client.section] = tomlkit.table(is_super_table=True)
    section: Any = document[client.section]
    section.pop(ENTRY, None)
    if entry:
        section[ENTRY] = entry
    if not section:
        del document[client.section]
    after = tomlkit.dumps(document)
    if tomllib.loads(after) != wanted or _comments(text) - _comments(after):
        raise ValueError(f"{client.section}.{ENTRY} cannot be changed without what stands beside it")
    return after


def _comments(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.lstrip().startswith("#")}


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # line ends as they are
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
    shutil.copy(path, backup)
    return backup
