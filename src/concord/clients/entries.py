"""AI clients and where they keep their list of MCP servers: one row a client, one function that writes.

A configuration file belongs to its owner: only our entry changes, a copy of the old file is kept beside it,
and the new one takes its place in one step. JSON with comments is not rewritten, because they would be lost:
its owner is told what to paste.
"""

from __future__ import annotations

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
    """What was done to a file."""

    path: Path
    state: str  # unchanged, created or changed
    backup: Path | None


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
    found = _section(_parsed(_read(path), client, path, "check the file"), client, path).get(ENTRY)
    return found if isinstance(found, dict) else None


def write(client: Client, path: Path, entry: Entry | None) -> Change:
    """Write our entry into a client's file, or take it out; a file that is as it should be is not touched."""
    by_hand = _to_paste(client, entry) if entry else f"take {ENTRY!r} out by hand"
    before = _read(path)
    document = _parsed(before, client, path, by_hand)
    section = _section(document, client, path)
    if section.get(ENTRY) == entry:
        return Change(path, "unchanged", None)
    section.pop(ENTRY, None)
    section |= {ENTRY: entry} if entry else {}
    document[client.section] = section
    if not section:
        del document[client.section]
    after = _written_like(before, document, client)
    if client.toml and not _is_ours_alone(before, after, client, entry):
        raise BadValue(f"cannot change {path} without what stands beside {ENTRY!r}", hint=by_hand)
    backup = _back_up(path) if path.exists() else None
    path.resolve().parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, after.encode(), mode=0o600)
    return Change(path, "changed" if backup else "created", backup)


def _to_paste(client: Client, entry: Entry) -> str:
    if not client.toml:
        text = json.dumps(entry, ensure_ascii=False)
        return f"paste into {client.section!r}: {json.dumps(ENTRY)}: {text}"
    import tomlkit

    table = tomlkit.inline_table()
    table.update(entry)
    return f"paste into {client.section!r}: {ENTRY} = {table.as_string()}"


def _is_ours_alone(before: str, after: str, client: Client, entry: Entry | None) -> bool:
    """Whether only our entry changed: tomlkit moves what follows dotted names, comments go with tables."""
    old, new = tomllib.loads(before), tomllib.loads(after)
    _, ours = (values.get(client.section, {}).pop(ENTRY, None) for values in (old, new))
    rest = [{name: value for name, value in values.items() if value != {}} for values in (old, new)]
    lines = [{line.strip() for line in text.splitlines()} for text in (before, after)]
    has_all_comments = not any(line.startswith("#") for line in lines[0] - lines[1])
    return ours == entry and rest[0] == rest[1] and has_all_comments


def _parsed(text: str, client: Client, path: Path, hint: str) -> Any:
    """Return what a file holds, to be changed and written again; of TOML with its comments."""
    try:
        if client.toml:
            import tomlkit  # late: only one client needs it

            return tomlkit.parse(text)
        document = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as fault:
        told = "" if client.toml else "it has comments, or is not JSON: "
        raise BadValue(f"cannot read {path}: {told}{fault}", hint=hint) from fault
    if not isinstance(document, dict):
        raise BadValue(f"cannot read {path}: it does not hold a JSON object", hint=hint)
    return document


def _section(document: Any, client: Client, path: Path) -> Any:
    section = document.get(client.section, {})
    if not isinstance(section, Mapping):
        raise BadValue(f"cannot read {path}: {client.section!r} holds no servers", hint="check the file")
    return section


def _written_like(text: str, document: Any, client: Client) -> str:
    """Return a file's new text, of JSON with the indentation and the line ends of the old one."""
    if client.toml:
        import tomlkit

        return tomlkit.dumps(document)
    indented = re.search(r"\n([ \t]+)\S", text)
    written = json.dumps(document, indent=indented[1] if indented else 2, ensure_ascii=False) + "\n"
    return written.replace("\n", "\r\n") if "\r\n" in text else written


def _read(path: Path) -> str:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # line ends as they are
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="check the file") from fault


def _back_up(path: Path) -> Path:
    """Copy a file beside itself; of two copies in a second the first is kept."""
    backup = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.bak")
    if not backup.exists():
        shutil.copy(path, backup)
    return backup
