"""Does a client see our server? What its file names is started, or asked, as the client would do it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from concord.clients.entries import CLIENTS, Client, Entry, config_path, entry_in
from concord.core.errors import KBError

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


class Sight(NamedTuple):
    """Whether a client's file leads to a server of ours."""

    client: str
    path: str
    state: str  # answers, fails or absent
    reason: str | None


def looked_at(names: tuple[str, ...], project: Path, environment: Mapping[str, str]) -> Iterator[Sight]:
    """Yield what each client's files lead to; without our entry in any, the user's."""
    for client in (CLIENTS[name] for name in names):
        user = config_path(client, "user", project, environment)
        paths = [user, *([project / client.project_file] if client.project_file else [])]
        seen = [sight for path in paths if (sight := _sight(client, path, environment))]
        yield from seen or [Sight(client.name, str(user), "absent", None)]


def _sight(client: Client, path: Path, environment: Mapping[str, str]) -> Sight | None:
    try:
        entry = entry_in(client, path)
    except KBError as fault:
        return Sight(client.name, str(path), "fails", fault.message)
    if entry is None:
        return None
    reason = _asked(entry, client) if "command" not in entry else _started(entry, environment)
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
