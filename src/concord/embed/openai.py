"""Models behind any OpenAI-compatible `/v1/embeddings`: llama.cpp, vLLM, LM Studio, and hosted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from concord.embed.http import Refused, Server
from concord.embed.remote import Dialect, RemoteEmbedder
from concord.errors import BadValue, EmbedderDown

if TYPE_CHECKING:
    from concord.config import Paths

URL = "http://127.0.0.1:8080/v1"  # where llama.cpp's server is by default
_KEY_REFUSED = (401, 403)


def open_openai(options: Mapping[str, Any], paths: Paths) -> RemoteEmbedder:
    """Open a server; reads `embed.model`, `embed.url`, `embed.key` and `embed.timeout_s`."""
    model = str(options.get("embed.model") or "")
    if not model:
        raise BadValue("embed.model must name the server's model", hint="`GET /v1/models` lists them")
    server = Server(
        str(options.get("embed.url") or URL),
        name="the server",
        key=str(options.get("embed.key") or ""),
        timeout_s=float(options.get("embed.timeout_s") or 10),
        start="start it, or set embed.url to where it is",
    )
    return RemoteEmbedder(
        Dialect("openai", "/embeddings", _request, _embeddings, _absent), model, server, options
    )


def _request(model: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"model": model, "input": list(texts), "encoding_format": "float"}


def _embeddings(answer: Any) -> list[Any]:
    """Return the embeddings in the order of the texts, which the answer numbers."""
    rows = sorted(answer["data"], key=lambda row: int(row["index"]))
    return [row["embedding"] for row in rows]


def _absent(server: Server, model: str, fault: Refused) -> EmbedderDown:
    if fault.status in _KEY_REFUSED:
        return EmbedderDown(
            f"{server.name} refuses the key: {fault.reason}",
            hint="set embed.key, and embed.url to the address that it is for: it is sent nowhere else",
        )
    return EmbedderDown(
        f"{server.name} refuses: {fault.reason}", hint="check embed.url, which ends in /v1, and embed.model"
    )
