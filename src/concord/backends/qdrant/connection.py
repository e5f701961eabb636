"""The connection to Qdrant: opened when it is first needed, kept alive, its faults told in our words.

http://host:6333          a server; a path after the port is the prefix of a proxy
https://host:6333         the same, encrypted
qdrant-local:/folder      the client's own engine, without a server: for trying it out, one process at a time
qdrant-local::memory:     the same, forgotten when it is closed
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from concord.core.errors import Action, BackendDown, BadValue, Hint, MissingExtra

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

LOCAL = "qdrant-local:"
_CONNECTIONS = 16  # kept open for the next call: more than a server's searches at once on one machine
_STRANGE = (404, 405, 501)  # of who does not know our paths; others may come from a proxy before Qdrant
_SHOWN = 200  # characters of what the server said: enough for its sentence, not for a page of a proxy


class Connection:
    """A client that is made at first use: importing it takes a second, and words need none of it."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self.url = without_secrets(url)
        self._target = url
        self._options = options
        self._lock = threading.Lock()
        self._client: QdrantClient | None = None
        self._is_closed = False

    @property
    def is_local(self) -> bool:
        """Whether the engine runs in this process."""
        return self._target.startswith(LOCAL)

    @contextmanager
    def client(self) -> Iterator[QdrantClient]:
        """Lend the client for the block.

        Raises:
            BackendDown: the server does not answer, refuses, or answers nonsense.
            MissingExtra: the client is not installed.
        """
        client = self.opened()
        from qdrant_client.http.exceptions import ApiException  # loaded with the client

        try:
            # One at a time for the local engine, which is not made for threads.
            with self._lock if self.is_local else nullcontext():
                yield client
        except (ApiException, OSError, ValueError, RuntimeError) as fault:
            raise self._down(fault) from fault

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            self._is_closed = True
            if self._client is not None:
                self._client.close()
                self._client = None

    def opened(self) -> QdrantClient:
        """Return the client, made now if need be; it has not met the server yet."""
        with self._lock:
            if self._is_closed:
                raise BackendDown(f"the connection to {self.url} was closed", hint="open the store again")
            if self._client is None:
                try:
                    self._client = self._connect()
                except (OSError, ValueError, RuntimeError) as fault:  # another process has the folder open
                    raise self._down(fault) from fault
            return self._client

    def _connect(self) -> QdrantClient:
        try:
            import httpx
            from qdrant_client import QdrantClient
        except ModuleNotFoundError as fault:
            raise MissingExtra(
                f"vectors in Qdrant need the package {fault.name!r}, which is not installed",
                hint="pip install 'concord-kb[qdrant]'",
            ) from fault
        if self.is_local:
            return _local(QdrantClient, self._target.removeprefix(LOCAL))
        key = self._options["vectors.api_key"]
        return QdrantClient(
            url=self._target,
            timeout=self._options["vectors.timeout_s"],
            headers={"api-key": key} if key else None,
            # It would ask the server for its version before the first call, and warn when it cannot.
            check_compatibility=False,
            # Without limits it opens a connection for every call to this machine.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=_CONNECTIONS),
        )

    def _down(self, fault: Exception) -> BackendDown:
        status = getattr(fault, "status_code", None)
        if status in (401, 403):
            return BackendDown(f"Qdrant at {self.url} refuses us ({status})", hint="check vectors.api_key")
        said = _said(fault)
        if said is None and status in _STRANGE:
            return BackendDown(
                f"something answers at {self.url}, but it is not Qdrant ({status})", hint="check vectors.url"
            )
        if status == 404 and said and "collection" in said.lower():
            return BackendDown(
                Hint(
                    Action.MIGRATE,
                    f"Qdrant at {self.url} has not got the collection any more: {{migrate}} sends it again",
                ),
                hint="nothing is embedded anew for that",
            )
        return BackendDown(
            f"Qdrant at {self.url} {_complaint(fault, status)}",
            hint="check that it runs and that vectors.url is right; words are searched meanwhile",
        )


def without_secrets(url: str) -> str:
    """Return a URL as it may be shown: without a password in it.

    Raises:
        BadValue: it is none that vectors can be kept at.
    """
    if url.startswith(LOCAL):
        return url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadValue(f"{url.rpartition('@')[2]!r} names no Qdrant server", hint="write http://host:6333")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def _local(client: type[QdrantClient], place: str) -> QdrantClient:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a server above 20,000 points; our manual says so too
        if place == ":memory:":
            return client(place)
        return client(path=place, force_disable_check_same_thread=True)


def _said(fault: Exception) -> str | None:
    """Return the error that Qdrant tells of; None where the answer is not in its form."""
    try:
        body = json.loads(getattr(fault, "content", b""))
    except ValueError:
        return None
    status = body.get("status") if isinstance(body, dict) else None
    return str(status.get("error", "")) if isinstance(status, dict) else None


def _complaint(fault: Exception, status: int | None) -> str:
    if status is not None:
        said = bytes(getattr(fault, "content", b"")).decode("utf-8", "replace")
        return f"answers with {status}: {said[:_SHOWN]}"
    source = getattr(fault, "source", fault)
    if "Timeout" in type(source).__name__:
        return "does not answer in time"
    if type(source).__name__ == "ValidationError":
        return "answers nonsense"
    return f"cannot be used: {str(source)[:_SHOWN] or type(source).__name__}"
