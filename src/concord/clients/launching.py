"""How does a client start our server, with which settings, and does it? What is secret is not written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from concord.clients.entries import CLIENTS, Client, Entry, Launch, Scope, config_path, entry_in
from concord.core.errors import KBError
from concord.core.settings import SETTINGS
from concord.core.values import without_org, without_password

STORE, ROOTS = "KB_STORE_URL", "KB_MCP_ROOTS"
PATHS = ("KB_HOME", "KB_SERVE_TOKENS")
MODEL = "KB_EMBED_MODEL"  # a folder, or a name
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


def launch(
    flags: Mapping[str, str | None],
    scope: Scope,
    roots: Sequence[str],
    environment: Mapping[str, str],
    allowed: str,
) -> tuple[Launch, list[str]]:
    """Return how to start the server with the settings that hold now, and which secrets are left out of it.

    A file that others may get names neither this machine's paths nor its variables. `allowed` are the folders
    that may be indexed now: `roots` are added to them, because the variable takes their place.
    """
    command, args = _program(shared=scope == "project")
    env, left_out = {}, []
    for flag, value in flags.items():
        args += [flag, without_password(value, "")] if value else []
        left_out += [f"the password in {flag}"] if value and without_password(value, "") != value else []
    secrets = {setting.environment_name: setting.is_secret for setting in SETTINGS} | {"KB_HOME": False}
    for name in sorted(secrets.keys() & environment.keys()) if scope == "user" else ():
        value = without_password(environment[name], "")
        has_password = value != environment[name]
        if secrets[name] or (has_password and name != STORE):
            left_out += [name] if environment[name] else []
            continue
        env[name] = _from_anywhere(name, value)
        left_out += [f"the password in {name}"] if has_password else []
    if roots:
        now = [] if scope == "project" else allowed.split(os.pathsep)
        env[ROOTS] = _from_anywhere(ROOTS, os.pathsep.join([*now, *roots]))
    return Launch(command, (*args, "mcp"), env), left_out


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
    return str(Path(os.path.expanduser(path)).absolute())


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


class Sight(NamedTuple):
    """Whether a client's file leads to a server of ours."""

    client: str
    path: str
    state: str  # answers, fails or absent
    reason: str | None


def looked_at(names: Sequence[str], project: Path, environment: Mapping[str, str]) -> Iterator[Sight]:
    """Start or ask what each client's files name; without our entry in any, tell of the user's file."""
    for client in (CLIENTS[name] for name in names):
        user = config_path(client, "user", project, environment)
        paths = [user, *([project / client.project_file] if client.project_file else [])]
        seen = [sight for path in paths if (sight := _sight(client, path, environment))]
        yield from seen or [Sight(client.name, str(user), "absent", None)]


def _sight(client: Client, path: Path, environment: Mapping[str, str]) -> Sight | None:
    try:
        entry = entry_in(client, path)
        if entry is None:
            return None
        reason = _started(entry, environment) if "command" in entry else _asked(entry, client)
    except KBError as fault:
        reason = fault.message
    return Sight(client.name, str(path), "fails" if reason else "answers", reason)


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
        answer: Any = json.loads(done.stdout.partition(b"\n")[0])
        return None if answer["result"]["serverInfo"] else "it does not say what it is"
    except (OSError, subprocess.TimeoutExpired) as fault:
        return f"it does not start: {fault}"
    except (ValueError, LookupError, TypeError):
        return done.stderr.decode("utf-8", "replace").strip() or "it does not answer"


def _asked(entry: Entry, client: Client) -> str | None:
    """Ask a server at an address whether it is well; return why not."""
    url = str(entry.get(client.url_key or "", ""))
    try:
        with urlopen(f"{url.removesuffix('/mcp')}/health", timeout=STARTING_S) as answer:
            return None if json.load(answer)["status"] == "ok" else "it is not well"
    except (URLError, ValueError, LookupError, OSError) as fault:
        return f"{url} does not answer: {fault}"
