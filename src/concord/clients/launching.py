"""How does a client start our server, with which settings, and does it? What is secret is not written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.request import urlopen

from concord.clients.entries import CLIENTS, Client, Entry, Scope, config_path, entry_in
from concord.core.errors import KBError
from concord.core.settings import SETTINGS
from concord.core.values import without_org, without_password
from concord.text.json_safe import JsonObject

HOME, ROOTS, MODEL = "KB_HOME", "KB_MCP_ROOTS", "KB_EMBED_MODEL"
PATHS = (HOME, "KB_SERVE_TOKENS")
STARTING_S = 30.0
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "kb", "version": "0"},
    },
}


def entry_for(
    client: Client,
    flags: Mapping[str, str | None],
    scope: Scope,
    roots: Sequence[str],
    environment: Mapping[str, str],
    allowed: str,
) -> tuple[Entry, list[str]]:
    """Return how to start the server with the settings that hold now, and which secrets are left out of it.

    A file that others may get names neither this machine's paths nor its variables. `allowed` are the folders
    that may be indexed now: `roots` are added to them, because the variable takes their place.
    """
    command, args = _program(shared=scope == "project")
    is_secret = {setting.environment_name: setting.is_secret for setting in SETTINGS} | {HOME: False}
    given = {flag: value for flag, value in flags.items() if value}
    if scope == "user":
        given |= {name: environment[name] for name in sorted(is_secret) if name in environment}
    public = {
        name: "" if is_secret.get(name) else without_password(value, "") for name, value in given.items()
    }
    left_out = [
        f"the password in {name}" if public[name] else name for name in given if public[name] != given[name]
    ]
    for flag in flags.keys() & public.keys():
        args += [flag, public[flag]]
    env = {name: public[name] for name in public if name not in flags and not is_secret[name]}
    if roots:
        now = allowed.split(os.pathsep) if scope == "user" else []
        env[ROOTS] = os.pathsep.join([*now, *roots])
    env = {name: _from_anywhere(name, value) for name, value in env.items()}
    entry: Entry = {"type": "stdio"} if client.typed else {}
    entry |= {"command": command, "args": [*args, "mcp"]}
    return {**entry, "env": env} if env else entry, left_out


def _from_anywhere(name: str, value: str) -> str:
    """Return a variable's value that means the same in whichever folder the server is started."""
    if name == ROOTS:
        entries = (without_org(part) for part in value.split(os.pathsep) if part.strip())
        named = (f"{org}={_absolute(path)}" if org else _absolute(path) for org, path in entries)
        return os.pathsep.join(dict.fromkeys(named))
    # A folder may have the name of a model that is none of its own.
    is_model = name == MODEL and os.path.isfile(os.path.join(os.path.expanduser(value), "tokenizer.json"))
    return _absolute(value) if value and (name in PATHS or is_model) else value


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _program(*, shared: bool) -> tuple[str, list[str]]:
    """Return the command that runs this very program, wherever the client starts it."""
    if "archive-v0" in Path(sys.prefix).parts:  # an environment of uvx, which may be gone tomorrow
        return shutil.which("uvx") or "uvx", ["--from", _origin(), "kb"]
    script = Path(sys.executable).parent / "kb"
    if script.exists() and not (shared and shutil.which("kb")):
        return str(script), []
    return "kb", []


def _origin() -> str:
    """Return what this program was installed from: a folder or URL (PEP 610), or its name in the registry."""
    from importlib.metadata import distribution

    told = json.loads(distribution("concord-kb").read_text("direct_url.json") or "{}")
    if vcs := told.get("vcs_info"):
        return f"{vcs['vcs']}+{told['url']}@{vcs['commit_id']}"
    return str(told.get("url", "concord-kb"))


def looked_at(names: Sequence[str], project: Path, environment: Mapping[str, str]) -> Iterator[JsonObject]:
    """Start or ask what each client's files name; without our entry in any, tell of the user's file."""
    for client in (CLIENTS[name] for name in names):
        user = config_path(client, "user", project, environment)
        paths = [user, *([project / client.project_file] if client.project_file else [])]
        seen = [sight for path in paths if (sight := _sight(client, path, environment))]
        yield from seen or [{"client": client.name, "path": str(user), "state": "absent", "reason": None}]


def _sight(client: Client, path: Path, environment: Mapping[str, str]) -> JsonObject | None:
    try:
        entry = entry_in(client, path)
        if entry is None:
            return None
        reason = _started(entry, environment) if "command" in entry else _asked(entry, client)
    except KBError as fault:
        reason = fault.message
    state = "fails" if reason else "answers"
    return {"client": client.name, "path": str(path), "state": state, "reason": reason}


def _started(entry: Entry, environment: Mapping[str, str]) -> str | None:
    """Start the server and greet it; return why that did not work. No engine is left running."""
    try:
        done = subprocess.run(
            [entry["command"], *entry.get("args", ())],
            input=json.dumps(GREETING).encode() + b"\n",
            capture_output=True,
            timeout=STARTING_S,
            env={**environment, **entry.get("env", {}), "KB_ENGINE_START": "never"},
            cwd=os.path.expanduser("~"),
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as fault:
        return f"it does not start: {fault}"
    if b'"serverInfo"' in done.stdout.partition(b"\n")[0]:
        return None
    return done.stderr.decode("utf-8", "replace").strip() or "it does not answer"


def _asked(entry: Entry, client: Client) -> str | None:
    """Ask a server at an address whether it is well; return why not."""
    url = str(entry.get(client.url_key or "", ""))
    try:
        with urlopen(f"{url.removesuffix('/mcp')}/health", timeout=STARTING_S) as answer:
            return None if json.load(answer)["status"] == "ok" else "it is not well"
    except (OSError, ValueError, LookupError) as fault:
        return f"{url} does not answer: {fault}"
