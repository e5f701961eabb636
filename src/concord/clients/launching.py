"""How a client is to start our server: the program, and the settings that hold now and are no secret."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from concord.clients.entries import Launch, Scope
from concord.core.values import without_org, without_password

STORE, ROOTS = "KB_STORE_URL", "KB_MCP_ROOTS"
PATHS = ("KB_HOME", "KB_SERVE_TOKENS")
MODELS = ("KB_EMBED_MODEL", "KB_RERANK_MODEL")  # a folder, or a name


class Secrets(Struct, frozen=True):
    """What is set and must not be written.

    An entry's variables take the place of those that its client has. So a URL without its password is of use
    there only if the password can come from elsewhere, as PostgreSQL's can.
    """

    variables: list[str]  # not in the entry at all
    passwords: list[str]  # of the store, whose URL is in the entry without it


def launch(
    flags: Mapping[str, str | None],
    scope: Scope,
    roots: tuple[str, ...],
    carried: Mapping[str, str],
    allowed: str,
) -> Launch:
    """Return how to start the server with the settings that hold now, as far as they are no secret.

    A file that others may get names neither this machine's paths nor its variables. `allowed` are the folders
    that may be indexed now: `roots` are added to them, because the variable takes their place.
    """
    command, args = _program(shared=scope == "project")
    for flag, value in flags.items():
        args += [flag, without_password(value, "")] if value else []
    env = {
        name: _from_anywhere(name, without_password(value, ""))
        for name, value in _open_settings(carried).items()
        if name == STORE or without_password(value, "") == value
    }
    if roots:
        now = [] if scope == "project" else allowed.split(os.pathsep)
        env[ROOTS] = _from_anywhere(ROOTS, os.pathsep.join([*now, *roots]))
    return Launch(command, (*args, "mcp"), env)


def _from_anywhere(name: str, value: str) -> str:
    """Return a variable's value that means the same in whichever folder the server is started."""
    if name == ROOTS:
        parts = (part for part in value.split(os.pathsep) if part.strip())
        return os.pathsep.join(dict.fromkeys(map(_absolute_root, parts)))
    is_path = name in PATHS or (name in MODELS and _is_model(value))
    return _absolute(value) if value and is_path else value


def _is_model(value: str) -> bool:
    """Whether a model is given as a folder; a folder may have the name of a model that is none of its own."""
    return os.path.isfile(os.path.join(os.path.expanduser(value), "tokenizer.json"))


def _absolute(path: str) -> str:
    return str(Path(os.path.expanduser(path)).absolute())


def _absolute_root(entry: str) -> str:
    org, path = without_org(entry)
    return f"{org}={_absolute(path)}" if org else _absolute(path)


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
    import json
    from importlib.metadata import distribution

    told = json.loads(distribution("concord-kb").read_text("direct_url.json") or "{}")
    if vcs := told.get("vcs_info"):
        return f"{vcs['vcs']}+{told['url']}@{vcs['commit_id']}"
    return str(told.get("url", "concord-kb"))


def _open_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that set us up and may be seen; a URL among them may still hold a password."""
    from concord.core.settings import SETTINGS

    names = ["KB_HOME", *(setting.environment_name for setting in SETTINGS if not setting.is_secret)]
    return {name: environment[name] for name in sorted(names) if name in environment}


def secrets(flags: Mapping[str, str | None], environment: Mapping[str, str]) -> Secrets:
    """Name what is set and is in no entry."""
    from concord.core.settings import SETTINGS

    hidden = [setting.environment_name for setting in SETTINGS if setting.is_secret]
    given = {**_open_settings(environment), "--store": flags.get("--store") or ""}
    telling = [name for name, value in given.items() if without_password(value, "") != value]
    stores = [name for name in telling if name in (STORE, "--store")]
    return Secrets(
        [name for name in (*hidden, *telling) if environment.get(name) and name not in stores],
        [f"the password in {name}" for name in stores],
    )
