"""Which collection of Qdrant holds vectors of a dimension? It is found, made, indexed, or refused.

Stores and organisations share collections. The one that the settings name belongs to the dimension that comes
first; vectors of another dimension go to one with the dimension after its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from concord.backends.qdrant.connection import Connection
from concord.core.errors import Action, BackendDown, Hint

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_REFUSALS = (400, 404)  # the collection is not there, or has vectors of another size
COSINE = "Cosine"  # the one distance whose scores are what every store returns


class Collections:
    """The collections that vectors of a store are in, one for each dimension."""

    def __init__(self, connection: Connection, options: Mapping[str, Any]) -> None:
        self._connection = connection
        self._options = options
        self.base: str = options["vectors.collection"]
        self._names: dict[int, str] = {}  # dimension → the collection that was found for it
        self._indexed: set[str] = set()  # collections that are known to have their indexes

    @contextmanager
    def asking(self, dimension: int) -> Iterator[tuple[QdrantClient, str]]:
        """Lend the client for the block, and the name of the collection for vectors of a dimension.

        Where Qdrant refuses what is asked of it, another collection may have that name by now, and ours
        another: it is looked for anew the next time.

        Raises:
            BackendDown: Qdrant does not answer, or has no such collection.
        """
        name = self._name(dimension)
        try:
            with self._connection.client() as client:
                yield client, name
        except BackendDown as fault:
            if getattr(fault.__cause__, "status_code", None) in _REFUSALS:
                self._names.pop(dimension, None)
            raise

    def has(self, dimension: int) -> bool:
        """Whether there is a collection for vectors of a dimension, as far as this process knows, or asks.

        Raises:
            BackendDown: Qdrant does not answer.
        """
        return dimension in self._names or self._find(dimension)

    def _name(self, dimension: int) -> str:
        if not self.has(dimension):
            self._refuse_others(dimension)
            return self.base  # Qdrant will say that it is not there
        return self._names[dimension]

    def ensure(self, dimension: int) -> None:
        """Make the collection for a dimension, with its indexes, unless this process has done so."""
        if self._names.get(dimension) not in self._indexed:
            self.make(dimension)

    def make(self, dimension: int) -> bool:
        """Make the collection for a dimension, unless it is there; say whether."""
        from qdrant_client import models

        is_new = not self._find(dimension)
        if is_new:
            with self._connection.client() as client:
                name = f"{self.base}_{dimension}" if client.collection_exists(self.base) else self.base
                if client.collection_exists(name):
                    raise _taken(name, self._connection.url)
                client.create_collection(
                    name,
                    models.VectorParams(size=dimension, distance=models.Distance.COSINE),
                    shard_number=self._options["vectors.shards"] or None,
                    replication_factor=self._options["vectors.replicas"] or None,
                )
            self._names[dimension] = name
            self._indexed.discard(name)
        self._index(self._names[dimension])
        return is_new

    def _index(self, name: str) -> None:
        """Make the indexes that a collection lacks: somebody else made it, or was killed halfway."""
        from concord.backends.qdrant.points import INDEXES

        if name in self._indexed:
            return
        if not self._connection.is_local:  # local mode has no indexes, and warns about them
            with self._connection.client() as client:
                known = client.get_collection(name).payload_schema
                for field in INDEXES.keys() - known.keys():
                    client.create_payload_index(name, field, INDEXES[field], wait=True)
        self._indexed.add(name)

    def _find(self, dimension: int) -> bool:
        """Ask for the collection of a dimension: the configured one belongs to the first that comes."""
        self._names.pop(dimension, None)
        with self._connection.client() as client:
            for name in (self.base, f"{self.base}_{dimension}"):
                if client.collection_exists(name) and _shape(client, name) == (dimension, COSINE):
                    self._names[dimension] = name
        return dimension in self._names

    def _refuse_others(self, dimension: int) -> None:
        """Refuse a collection of another size, or of another distance: what it calls near may be far."""
        with self._connection.client() as client:
            shape = _shape(client, self.base) if client.collection_exists(self.base) else None
        if shape and shape[0] != dimension:
            raise BackendDown(
                Hint(
                    Action.MIGRATE,
                    f"the collection {self.base} at {self._connection.url} is of {shape[0]} dimensions, and"
                    f" none is there for the {dimension} of these vectors: {{migrate}} sends them again",
                ),
                hint="nothing is embedded anew for that",
            )
        if shape:
            raise BackendDown(
                f"the collection {self.base} at {self._connection.url} compares by {shape[1]},"
                f" not by {COSINE}",
                hint=Hint(Action.MIGRATE, "{migrate} sends the vectors to one that is made for them"),
            )

    def there(self, dimensions: Collection[int]) -> list[str]:
        """Return which collections there are that vectors of these dimensions may be in."""
        names = (self.base, *(f"{self.base}_{dimension}" for dimension in sorted(dimensions)))
        with self._connection.client() as client:
            return [name for name in names if client.collection_exists(name)]


def _shape(client: QdrantClient, name: str) -> tuple[int, str] | None:
    """Return the size and distance of a collection's one vector; None when it is not one of ours."""
    vectors = client.get_collection(name).config.params.vectors
    size, distance = getattr(vectors, "size", None), getattr(vectors, "distance", None)
    return (size, distance.value) if size and distance else None


def _taken(name: str, url: str) -> BackendDown:
    return BackendDown(
        f"the collection {name} at {url} is not made for these vectors: another size, or not {COSINE}",
        hint="choose another name with vectors.collection",
    )
