"""The connection to Qdrant, made when it is first needed, and the collections that vectors are kept in.

http://host:6333          a server; a path after the port is the prefix of a proxy
https://host:6333         the same, encrypted
qdrant-local:/folder      the client's own engine, without a server: for trying it out, one process at a time
qdrant-local::memory:     the same, forgotten when it is closed

Stores and organisations share collections. The one that the settings name belongs to the dimension that comes
first; vectors of another dimension go to one with the dimension after its name.
"""

from __future__ import annotations

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
COSINE = "Cosine"  # the only distance whose scores are what every store returns
_CONNECTIONS = 16  # kept open for the next call: more than a server's searches at once on one machine
_NOT_FOUND = 404
_SHOWN = 200  # characters of what the server said: enough for its sentence, not for a page of a proxy
_SENT_AGAIN = "nothing is embedded anew for that"


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
        """Lend the client for the block; whatever the server answers but what it should is BackendDown."""
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
            place = self._target.removeprefix(LOCAL)
            given: dict[str, Any] = {"path": place, "force_disable_check_same_thread": True}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it recommends a server above 20,000 points, as our manual
                return QdrantClient(place) if place == ":memory:" else QdrantClient(**given)
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
        said = bytes(getattr(fault, "content", b"")).decode("utf-8", "replace")[:_SHOWN]
        if status == _NOT_FOUND and said.startswith("{"):  # in Qdrant's own words
            lost = f"Qdrant at {self.url} has not got the collection any more: {{migrate}} sends it again"
            return BackendDown(Hint(Action.MIGRATE, lost), hint=_SENT_AGAIN)
        source = getattr(fault, "source", fault)
        if status is not None:
            complaint = f"answers with {status}: {said}"
        else:
            complaint = f"cannot be used: {str(source)[:_SHOWN] or type(source).__name__}"
        return BackendDown(
            f"Qdrant at {self.url} {complaint}",
            hint="check that it runs, vectors.url and vectors.api_key; words are searched meanwhile",
        )


class Collections:
    """The collections that vectors of a store are in, one for each dimension."""

    def __init__(self, connection: Connection, options: Mapping[str, Any]) -> None:
        self._connection = connection
        self._options = options
        self.base: str = options["vectors.collection"]
        self._names: dict[int, str] = {}  # dimension → the collection that was found for it
        self._made = set[int]()  # dimensions whose collections are known to have their indexes

    @contextmanager
    def asking(self, dimension: int) -> Iterator[tuple[QdrantClient, str]]:
        """Lend the client for the block, and the name of the collection for vectors of a dimension."""
        if not self.has(dimension):
            wanted = f"vectors of {dimension} dimensions, compared by {COSINE}"
            none = f"no collection {self.base} at {self._connection.url} is for {wanted}"
            raise BackendDown(
                Hint(Action.MIGRATE, f"{none}: {{migrate}} sends them again"),
                hint=_SENT_AGAIN,
            )
        try:
            with self._connection.client() as client:
                yield client, self._names.get(dimension, self.base)  # another thread may have taken it out
        except BackendDown:  # the collection may have been dropped: it is looked for anew the next time
            self._names.pop(dimension, None)
            raise

    def has(self, dimension: int) -> bool:
        """Whether there is a collection for vectors of a dimension, as far as this process knows, or asks.

        The configured name belongs to the first dimension that comes.
        """
        if dimension not in self._names:
            with self._connection.client() as client:
                for name in (f"{self.base}_{dimension}", self.base):
                    if _shape(client, name) == (dimension, COSINE):
                        self._names[dimension] = name
        return dimension in self._names

    def ensure(self, dimension: int) -> None:
        """Make the collection for a dimension, with its indexes, unless this process has done so."""
        if dimension not in self._made:
            self.make(dimension)

    def make(self, dimension: int) -> bool:
        """Make the collection for a dimension and the indexes that it lacks; return whether it is new."""
        self._names.pop(dimension, None)
        is_new = not self.has(dimension)
        from concord.store.qdrant.points import INDEXES  # it is known by now that the package is there

        with self._connection.client() as client:
            if is_new:
                self._create(client, dimension)
            if not self._connection.is_local:  # local mode has none, and warns
                name = self._names[dimension]
                for field in INDEXES.keys() - client.get_collection(name).payload_schema.keys():
                    client.create_payload_index(name, field, INDEXES[field], wait=True)
        self._made.add(dimension)
        return is_new

    def _create(self, client: QdrantClient, dimension: int) -> None:
        from qdrant_client import models

        name = f"{self.base}_{dimension}" if client.collection_exists(self.base) else self.base
        client.create_collection(  # which is refused where one of another size or distance has the name
            name,
            models.VectorParams(size=dimension, distance=models.Distance.COSINE),
            shard_number=self._options["vectors.shards"] or None,
            replication_factor=self._options["vectors.replicas"] or None,
        )
        self._names[dimension] = name


def without_secrets(url: str) -> str:
    """Return a URL as it may be shown: without a password in it."""
    if url.startswith(LOCAL):
        return url
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadValue(f"{url.rpartition('@')[2]!r} names no Qdrant server", hint="write http://host:6333")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def _shape(client: QdrantClient, name: str) -> tuple[int, str] | None:
    """Return the size and distance of a collection; None if it is not there, or not one of ours."""
    if not client.collection_exists(name):
        return None
    vectors = client.get_collection(name).config.params.vectors
    size, distance = getattr(vectors, "size", None), getattr(vectors, "distance", None)
    return (size, distance.value) if size and distance else None
