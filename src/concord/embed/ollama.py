"""Models that Ollama runs: `/api/embed`, in batches, the model kept in memory between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concord.embed.http import Refused, Server
from concord.embed.remote import Dialect, RemoteEmbedder
from concord.errors import EmbedderDown

if TYPE_CHECKING:
    from concord.config import Paths

URL = "http://127.0.0.1:11434"
MODEL = "nomic-embed-text"
_LATEST = ":latest"  # the tag that a name without one means
_NOT_FOUND = 404


def open_ollama(options: Mapping[str, Any], paths: Paths) -> RemoteEmbedder:
    """Open Ollama; reads `embed.model`, `embed.url`, `embed.timeout_s` and `embed.keep_alive`."""
    model = str(options.get("embed.model") or MODEL).removesuffix(_LATEST)
    keep_alive = _keep_alive(options.get("embed.keep_alive"))

    def request(model: str, texts: Sequence[str]) -> dict[str, Any]:
        # Not truncated: a text that is too long is to be an error that we see, not half a text.
        return {"model": model, "input": list(texts), "truncate": False, "keep_alive": keep_alive}

    server = Server(
        str(options.get("embed.url") or URL),
        name="ollama",
        timeout_s=float(options.get("embed.timeout_s") or 10),
        start="start it: `ollama serve`, or set embed.url to where it is",
    )
    dialect = Dialect("ollama", "/api/embed", request, _embeddings, _absent)
    return RemoteEmbedder(dialect, model, server, options)


def _embeddings(answer: Any) -> list[Any]:
    return list(answer["embeddings"])


def _absent(server: Server, model: str, fault: Refused) -> EmbedderDown:
    """Tell a model that has not been pulled from every other fault."""
    if fault.status != _NOT_FOUND:
        return EmbedderDown(f"{server.name} refuses: {fault.reason}", hint="is embed.url that of Ollama?")
    try:
        pulled = [one["name"].removesuffix(_LATEST) for one in server.ask("/api/tags")["models"]]
    except (Refused, KeyError, TypeError, AttributeError):
        return EmbedderDown(f"{server.name} is no Ollama: it knows no /api/embed", hint="check embed.url")
    if model in pulled:
        return EmbedderDown(f"{server.name} cannot embed with {model}: {fault.reason}", hint="update Ollama")
    there = f"; it has {', '.join(pulled[:5])}" if pulled else ""
    return EmbedderDown(f"{server.name} has no model {model}{there}", hint=f"ollama pull {model}")


def _keep_alive(given: Any) -> str | int:
    """Return a duration as Ollama reads it: a bare number is seconds, and must be one in JSON too."""
    text = str(given or "30m")
    return int(text) if text.lstrip("-").isdecimal() else text
