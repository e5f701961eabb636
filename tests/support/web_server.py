"""How the tests of HTTP serve and ask: real sockets on loopback, a server in a thread of this process."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from concord.mcp.server import KnowledgeServer
from concord.web import server as web_side
from concord.web.app import application
from concord.web.guard import HttpLimits
from concord.web.keys import Keys, read_grants
from support.mcp_session import BOUND_S, server_state_at

PLENTY = HttpLimits(max_bytes=100_000, max_connections=50)


@contextmanager
def serving(
    home: Path,
    limits: HttpLimits = PLENTY,
    tokens: Path | None = None,
    keys: Keys | None = None,
    origins: tuple[str, ...] = (),
    **settings: Any,
) -> Iterator[str]:
    """Serve from a thread of this process, and give the address."""
    server = KnowledgeServer(server_state_at(home, **settings))
    keys = keys or Keys(read_grants(tokens) if tokens else ())
    web = web_side.web_server(application(server, keys, [], limits, origins), limits)
    with web_side.listen("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            web.should_exit = True
            thread.join(BOUND_S)
            assert not thread.is_alive()


class Answer(NamedTuple):
    """What a request was answered with."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def ask(url: str, request: str, body: Any = None, **headers: str) -> Answer:
    """Send one request, such as "GET /health", and return what comes back."""
    method, _, path = request.partition(" ")
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=BOUND_S)
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    text = body if isinstance(body, bytes) or body is None else json.dumps(body)
    if text is not None:
        given = {"Content-Type": "application/json", **given}
    try:
        connection.request(method, path, text, given)
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def hello(**more: Any) -> bytes:
    """Return the first message of an MCP client."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params, **more}).encode()
