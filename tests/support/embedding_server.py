"""A real HTTP server of embeddings on loopback, speaking as Ollama and as OpenAI do, that fails when told to.

It runs the bundled model or any other embedder.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from concord.core import plugins
from concord.core.config import Paths
from concord.core.protocols import Embedder
from concord.types import Vector
from support.folders import NOWHERE

WINDOW = 2000  # characters, so that a test can be too long for it without being long


def numbers(vector: Vector) -> tuple[float, ...]:
    """Return what a vector holds."""
    return struct.unpack(f"<{len(vector) // 4}f", vector)


@dataclass
class Behaviour:
    """What the server does to its callers, and what they have asked for."""

    models: set[str] = field(default_factory=lambda: {"nomic-embed-text", "granite"})
    key: str = ""  # that a caller must have
    poison: str = ""  # a text that holds it is refused
    poison_status: int = 400
    refuses: int = 0  # this many requests are answered with `status`
    status: int = 503
    drops: int = 0  # the connection of this many requests is closed without an answer
    breaks_off: int = 0  # this many answers end in the middle
    frozen: threading.Event | None = None  # requests wait for it
    freezes_above: int = 0  # texts in a request: only larger ones wait for it
    spoil: Callable[[list[list[Any]]], list[Any]] | None = None  # what becomes of the vectors
    garble: Callable[[bytes], bytes] | None = None  # what becomes of an answer on its way
    requests: list[dict[str, Any]] = field(default_factory=list)
    most_at_once: int = 0
    connections: int = 0
    at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def texts(self) -> list[list[str]]:
        """The texts of each request."""
        return [request["input"] for request in self.requests]


class EmbeddingServer(ThreadingHTTPServer):
    """One server; its behaviour can be changed while it runs."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, embedder: Embedder, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Talk)
        self.embedder = embedder
        self.behaviour = Behaviour()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def get_request(self) -> Any:
        self.behaviour.connections += 1
        return super().get_request()

    def vectors(self, texts: Sequence[str]) -> list[list[Any]]:
        made = [list(numbers(vector)) for vector in self.embedder.embed_documents(texts)]
        return self.behaviour.spoil(made) if self.behaviour.spoil else made


class _Talk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: EmbeddingServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if self.path == "/api/tags":
            self._answer(200, {"models": [{"name": f"{m}:latest"} for m in self.server.behaviour.models]})
        else:
            self._answer(404, {"error": "no such path"})

    def do_POST(self) -> None:
        told = self.server.behaviour
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with told.lock:
            told.requests.append(asked)
            told.at_once += 1
            told.most_at_once = max(told.most_at_once, told.at_once)
        try:
            self._respond(asked, told)
        finally:
            with told.lock:
                told.at_once -= 1

    def _respond(self, asked: dict[str, Any], told: Behaviour) -> None:
        if told.frozen and len(asked["input"]) > told.freezes_above:
            told.frozen.wait()
        if told.drops > 0:
            told.drops -= 1
            self.close_connection = True
            return
        status, body = self._reply(asked, told)
        if told.refuses > 0:
            told.refuses -= 1
            status, body = told.status, {"error": "not now"}
        self._answer(status, body)

    def _reply(self, asked: dict[str, Any], told: Behaviour) -> tuple[int, Any]:
        texts = asked["input"]
        if told.key and self.headers.get("Authorization") != f"Bearer {told.key}":
            return 401, {"error": {"message": "a valid key is needed"}}
        if asked["model"] not in told.models:
            return 404, {"error": f"model {asked['model']!r} not found, try pulling it first"}
        if told.poison and any(told.poison in text for text in texts):
            return told.poison_status, {"error": "I will not read that"}
        if any(len(text) > WINDOW for text in texts):
            return 400, {"error": "the input length exceeds the context length"}
        vectors = self.server.vectors(texts)
        if self.path == "/api/embed":
            assert asked["truncate"] is False
            return 200, {"model": asked["model"], "embeddings": vectors}
        assert self.path == "/v1/embeddings"
        rows = [{"object": "embedding", "index": at, "embedding": v} for at, v in enumerate(vectors)]
        return 200, {"object": "list", "data": rows[::-1], "model": asked["model"]}

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        if status == 200 and self.server.behaviour.garble:
            data = self.server.behaviour.garble(data)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if status == 200 and self.server.behaviour.breaks_off > 0:
            self.server.behaviour.breaks_off -= 1
            data = data[: len(data) // 2]
            self.close_connection = True
        self.wfile.write(data)


@contextmanager
def serving(provider: str = "hashing", paths: Paths = NOWHERE, port: int = 0) -> Iterator[EmbeddingServer]:
    """Serve an embedder's vectors for the block."""
    embedder: Embedder = plugins.load("embedders", provider)({}, paths)
    with EmbeddingServer(embedder, port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            if server.behaviour.frozen:
                server.behaviour.frozen.set()
            server.shutdown()
            thread.join()
