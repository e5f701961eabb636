"""A store whose vectors are kept in Qdrant: whose points they are, and how Qdrant learns of changes.

The store's catalog stays the truth. Chunks that it dropped, and documents whose fields changed, wait in the
store's outbox until Qdrant knows of them: they are sent when a sync ends, and before a search whose filter
they could matter to.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from concord.core.errors import Action, BackendDown, Hint, MissingExtra, StoreBusy
from concord.core.reports import Finding
from concord.store.models import kept_elsewhere
from concord.store.qdrant.client import Collections, Connection, without_secrets
from concord.store.qdrant.vectors import EVERYTHING, QdrantVectors, chunk_of
from concord.types import Home, Identity, Json

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.store.contract import Models, Place, Store
    from concord.store.qdrant.points import Owner

SENT_AT_ONCE = 256  # changes in a request
PAGE = 10_000  # ids in an answer: 400 kB
WRITE_WAIT_S = 60.0  # for another process that writes: a batch takes it milliseconds


class QdrantModels:
    """The models of a store: the store knows them, their points lie in Qdrant."""

    def __init__(self, outside: QdrantStore, known: Models) -> None:
        self._outside = outside
        self._known = known
        self.activate = known.activate

    def index(self, identity: Identity) -> QdrantVectors:
        """Return the index of one model, whether or not it has been added yet."""
        return QdrantVectors(self._outside, identity)

    def add(self, identity: Identity, recipe: Mapping[str, Json]) -> None:
        """Add a model, or replace the recipe of one, and make its collection."""
        home = self._outside.claim()
        self._known.add(identity, recipe)
        if self._outside.collections.make(identity.dimension) and not self._outside.outbox.is_empty():
            self._outside.outbox.move(home.url)  # somebody dropped the collection: all are sent again

    def drop(self, identity: Identity) -> int:
        """Take a model away with its points; return how many there were."""
        models = self._outside.catalog.snapshot().models
        if any(model.identity == identity and not model.is_active for model in models):
            self.index(identity).delete_everything()
        return self._known.drop(identity)  # which says what is wrong with others


class QdrantStore:
    """A store, with its vectors in collections that other stores and organisations may share."""

    def __init__(self, store: Store, url: str, org: str, options: Mapping[str, Any]) -> None:
        self.inner = store
        self.catalog, self.words, self.cache = store.catalog, store.words, store.cache
        self.outbox, self.journal, self.lock = store.outbox, store.journal, store.lock
        self.links = store.links
        self.repair, self.backup, self.copy = store.repair, store.backup, store.copy
        self.connection = Connection(url, options)
        self.collections = Collections(self.connection, options)
        self.home = f"{self.connection.url}/{self.collections.base}"
        self.models: Models = QdrantModels(self, store.models)
        self._org = org

    @property
    def place(self) -> Place:
        """Where the store itself is."""
        return self.inner.place

    def check(self) -> list[Finding]:
        """Look into both."""
        return [*self.inner.check(), *self.check_vectors()]

    def maintain(self, progress: Progress) -> None:
        """Let the store tidy up, and tell Qdrant all changes; one that is down hears of them later."""
        self.inner.maintain(progress)
        home = self.outbox.home()
        if home.url == self.home:
            with suppress(BackendDown, MissingExtra, StoreBusy):
                self.send_changes(home)

    def vector_index_state(self) -> None:
        """Return nothing: Qdrant has an index of its own."""

    def close(self) -> None:
        """Close both."""
        self.connection.close()
        self.inner.close()

    def warm(self) -> None:
        """Import the client, which takes a second."""
        with suppress(MissingExtra, BackendDown):  # reported by the first call that needs it
            self.connection.opened()

    def reach(self, dimension: int) -> None:
        """Make the collection for vectors of a dimension."""
        self.collections.make(dimension)

    def check_vectors(self) -> list[Finding]:
        """Compare how many of the chunks have a point with how many Qdrant has acknowledged.

        If it has none yet, check that it answers: otherwise the first note would be the first to fail.
        """
        home = self.outbox.home()
        models = self._sent_models() if home.url == self.home else {}
        try:
            if not models:
                with self.connection.client() as client:
                    client.collection_exists(self.collections.base)
            there = {identity: self._points(home, identity) for identity in models}
        except BackendDown as fault:
            return [Finding("outside", fault.message, fault.hint or "")]
        return [
            Finding(
                "outside",
                f"{self.home} holds {there[identity]:,} vectors of the {sent:,} that were sent there",
                Hint(Action.MIGRATE, "{migrate} sends all of them again"),
            )
            for identity, sent in models.items()
            if there[identity] < sent
        ]

    def sweep(self) -> None:
        """Delete all points, those of chunks that the store does not know among them."""
        if self.own_home() is not None:
            for identity in self._sent_models():
                QdrantVectors(self, identity).delete_everything()

    @classmethod
    def clear(cls, store: Store, home: Home, org: str, options: Mapping[str, Any]) -> None:
        """Delete all points that a store has sent to a place, which the settings may name no more."""
        from concord.store.qdrant.points import Owner

        url, _, collection = home.url.rpartition("/")
        named = options["vectors.url"]
        is_named = bool(named) and without_secrets(named) == url
        known = {**options, "vectors.collection": collection}
        if named and not is_named:
            known["vectors.api_key"] = ""  # it belongs to the server that the settings name, and to no other
        connection = Connection(named if is_named else url, known)
        dimensions = {model.identity.dimension for model in store.catalog.snapshot().models}
        try:
            with connection.client() as client:
                for name in (collection, *(f"{collection}_{dimension}" for dimension in dimensions)):
                    if client.collection_exists(name):
                        client.delete(name, Owner.everything(org, home.key), wait=True)
        finally:
            connection.close()

    def owner(self, home: Home, identity: Identity) -> Owner:
        """Return the owner of a model's points."""
        from concord.store.qdrant.points import Owner  # with the client's models: a second to import

        return Owner(self._org, home.key, identity)

    def claim(self) -> Home:
        """Keep the store's vectors here; that is refused where there are some elsewhere."""
        home = self.outbox.home()
        if home.url != self.home:
            if not self.outbox.is_empty():
                raise kept_elsewhere(home.url, self.home)
            self.outbox.move(self.home)
            return self.outbox.home()
        return home

    def own_home(self) -> Home | None:
        """Return where vectors are if that is here, None while there are none; another place is refused."""
        home = self.outbox.home()
        if home.url == self.home:
            return home
        if not self.outbox.is_empty():
            raise kept_elsewhere(home.url, self.home)
        return None

    def writing(self) -> AbstractContextManager[None]:
        """Hold the right to change what is kept in Qdrant, across processes."""
        return self.lock("vectors kept elsewhere", "changing the vectors", wait_s=WRITE_WAIT_S)

    def send_changes(self, home: Home) -> None:
        """Tell Qdrant all changes; others may write between two requests."""
        while self.outbox.changes(1):
            with self.writing():
                self._send_request(home)

    def _send_request(self, home: Home) -> None:
        """Delete the points of chunks that are gone, and label others as their documents are now."""
        changes = self.outbox.changes(SENT_AT_ONCE)
        if not changes:
            return
        chunk_ids = list({chunk_id for _, chunk_id in changes})
        alive = self.catalog.read(chunk_ids)
        gone = [chunk_id for chunk_id in chunk_ids if chunk_id not in alive]
        for model in self.catalog.snapshot().models:
            dimension, owner = model.identity.dimension, self.owner(home, model.identity)
            operations = [*owner.relabelled(alive.values()), *([owner.deleted(gone)] if gone else ())]
            if self.collections.has(dimension):  # else no vector was ever sent
                with self.collections.asking(dimension) as (client, name):
                    client.batch_update_points(name, operations, wait=True)
        self.outbox.settle([turn for turn, _ in changes])

    def _sent_models(self) -> dict[Identity, int]:
        """Return the models of which vectors were acknowledged, and how many."""
        chunks, known = self.catalog.count().chunks, self.catalog.snapshot().models
        pending = {it.identity: self.inner.models.index(it.identity).count_pending() for it in known}
        return {identity: chunks - count for identity, count in pending.items() if count < chunks}

    def _points(self, home: Home, identity: Identity) -> int:
        """Return how many of the store's chunks have a point there; other points may be of a lost state."""
        mine, offset, found = self.owner(home, identity).mine(), None, 0
        while True:
            with self.collections.asking(identity.dimension) as (client, name):
                records, offset = client.scroll(
                    name, mine, limit=PAGE, offset=offset, with_payload=False, with_vectors=False
                )
            found += len(self.catalog.allowed(EVERYTHING, [chunk_of(record.id) for record in records]))
            if offset is None:
                return found
