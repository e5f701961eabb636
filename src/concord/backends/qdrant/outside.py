"""A store's vectors in Qdrant, outside the store: whose they are, and what Qdrant is told of changes.

The store's catalog stays the truth. Chunks that it dropped, and documents whose fields changed, wait in the
store's ledger until Qdrant has been told; every write and every search tells it first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from concord.backends.qdrant.collections import Collections
from concord.backends.qdrant.compared import compare
from concord.backends.qdrant.connection import Connection, without_secrets
from concord.backends.qdrant.spaces import QdrantSpaces
from concord.backends.qdrant.vectors import WRITE_WAIT_S, QdrantVectors
from concord.core.batches import batched
from concord.core.errors import Action, BackendDown, Hint, MissingExtra, StoreBusy
from concord.core.reports import Finding
from concord.store.store_errors import kept_by_another, kept_elsewhere
from concord.types import Chunk, ChunkId, Document, Home, Identity

if TYPE_CHECKING:
    from concord.backends.qdrant.points import Owner
    from concord.core.storage import Store

TOLD = 256  # changes in a request
TOLD_REQUESTS = 4  # that one call may spend on telling Qdrant what changed; the rest can wait
TELL_WAIT_S = 0.2  # for another process that tells: whoever does not wait checks what it finds anyway


class QdrantOutsideVectors:
    """The vectors of one store, in collections that other stores and organisations may share."""

    def __init__(self, store: Store, url: str, org: str, options: Mapping[str, Any]) -> None:
        self.store = store
        self.connection = Connection(url, options)
        self._org = org
        self.collections = Collections(self.connection, options)
        self.home = f"{self.connection.url}/{self.collections.base}"
        self.vectors = QdrantVectors(self, store.vectors)
        self.spaces = QdrantSpaces(self)

    @classmethod
    def at_home(cls, store: Store, home: str, org: str, options: Mapping[str, Any]) -> QdrantOutsideVectors:
        """Open the home that a ledger names, which the settings may name no more."""
        url, _, collection = home.rpartition("/")
        named = options["vectors.url"]
        is_named = bool(named) and without_secrets(named) == url
        known = {**options, "vectors.collection": collection}
        if named and not is_named:
            known["vectors.api_key"] = ""  # it belongs to the server that the settings name, and to no other
        return cls(store, named if is_named else url, org, known)

    def close(self) -> None:
        """Close the connections."""
        self.connection.close()

    def warm(self) -> None:
        """Import the client, which takes a second."""
        with suppress(MissingExtra, BackendDown):  # told by the first call that needs it
            self.connection.opened()

    def reach(self, dimension: int) -> None:
        """See that vectors of this dimension could be kept there.

        Raises:
            BackendDown: Qdrant does not answer.
        """
        self.collections.make(dimension)

    def check(self) -> list[Finding]:
        """Compare the vectors that Qdrant has, one by one, with those that it has acknowledged.

        If it has none yet, check that it answers: otherwise the first note would be the first to fail.
        """
        home = self.store.ledger.home()
        is_mine = home.url == self.home and not home.is_anothers
        try:
            return [*self._lost_or_stray(home)] if is_mine and self._filled() else self._answers()
        except BackendDown as fault:
            return [Finding("outside", fault.message, fault.hint or "")]

    def _lost_or_stray(self, home: Home) -> Iterator[Finding]:
        for identity in self._filled():
            compared = compare(self, home, identity)
            if compared.found < compared.marked:
                said = f"holds {compared.found:,} vectors of the {compared.marked:,} that were sent there"
                hint = Hint(Action.MIGRATE, "{migrate} sends all of them again")
                yield Finding("outside", f"{self.home} {said}", hint)
            if compared.strays:
                said = f"holds {len(compared.strays):,} vectors of passages that this store does not know"
                hint = Hint(
                    Action.MIGRATE,
                    "an older state of the store was put back: {migrate} deletes them, and sends its own",
                )
                yield Finding("outside", f"{self.home} {said}", hint)

    def _filled(self) -> list[Identity]:
        """Return the models of which some vectors were sent."""
        chunks, spaces = self.store.catalog.counts().chunks, self.store.spaces
        known = [space.identity for space in spaces.all()]
        return [identity for identity in known if spaces.of(identity).count_pending() < chunks]

    def _answers(self) -> list[Finding]:
        """Ask Qdrant anything, to see that it answers; there is no finding if it does."""
        with self.connection.client() as client:
            client.collection_exists(self.collections.base)
        return []

    def sweep(self) -> None:
        """Delete the points of chunks that the store does not know, though it has sent them.

        Raises:
            BackendDown: Qdrant does not answer.
        """
        if (home := self.found_home()) is None:
            return
        for identity in self._filled():
            owner = self.owner(home, identity)
            for part in batched(compare(self, home, identity).strays, TOLD):
                with self.collections.asking(identity.dimension) as (client, name):
                    client.batch_update_points(name, [owner.deleted(part)], wait=True)

    def owner(self, home: Home, identity: Identity) -> Owner:
        """Return the owner of a space's points."""
        from concord.backends.qdrant.points import Owner  # with the client's models: a second to import

        return Owner(self._org, home.key, identity)

    def claim(self) -> Home:
        """Keep the store's vectors here, unless there are some elsewhere.

        Raises:
            VectorsElsewhere: there are.
        """
        ledger = self.store.ledger
        home = ledger.own()
        if home.url != self.home:
            if not ledger.is_empty():
                raise kept_elsewhere(home.url, self.home)
            ledger.move(self.home)
            return ledger.home()
        return home

    def found_home(self) -> Home | None:
        """Return the home when it is here, None while there is nothing to find anywhere.

        Raises:
            VectorsElsewhere: the store has vectors in another home, or none of its own, being a copy.
        """
        home = self.store.ledger.home()
        if home.url == self.home and not home.is_anothers:
            return home
        if not self.store.ledger.is_empty():
            raise kept_by_another(home.url) if home.is_anothers else kept_elsewhere(home.url, self.home)
        return None

    def tend(self) -> None:
        """Tell Qdrant all that has changed; one that is down, or that others write to, is told later."""
        home = self.store.ledger.home()
        if home.url == self.home and not home.is_anothers:
            with suppress(BackendDown, MissingExtra, StoreBusy):
                self.settle(home)

    def clear(self, key: str) -> None:
        """Delete all points that the store has sent under a key, of every model.

        Raises:
            BackendDown: Qdrant does not answer.
        """
        from concord.backends.qdrant.points import Owner

        names = self.collections.there({space.identity.dimension for space in self.store.spaces.all()})
        with self.connection.client() as client:
            for name in names:
                client.delete(name, Owner.everything(self._org, key), wait=True)

    def tell(self, home: Home) -> bool:
        """Tell Qdrant some of what has changed, unless another process is at it; say whether all is told."""
        ledger = self.store.ledger
        if not ledger.unsettled(1):
            return True
        with suppress(StoreBusy), ledger.exclusive(wait_s=TELL_WAIT_S):
            for _ in range(TOLD_REQUESTS):
                self._tell_some(home)
        return not ledger.unsettled(1)

    def settle(self, home: Home) -> None:
        """Tell Qdrant all that has changed; others may write between two requests.

        Raises:
            StoreBusy: another process does, for too long.
            BackendDown: Qdrant does not answer.
        """
        ledger = self.store.ledger
        while ledger.unsettled(1):
            with ledger.exclusive(wait_s=WRITE_WAIT_S):
                self._tell_some(home)

    def _tell_some(self, home: Home) -> None:
        """Tell the oldest changes, as many as go into a request; it is our turn to write."""
        ledger = self.store.ledger
        if changes := ledger.unsettled(TOLD):
            chunk_ids = list({chunk_id for _, chunk_id in changes})
            alive = self.store.catalog.read(chunk_ids)
            for space in self.store.spaces.all():
                self._tell_of(self.owner(home, space.identity), space.identity, chunk_ids, alive)
            ledger.settle([turn for turn, _ in changes])

    def _tell_of(
        self,
        owner: Owner,
        identity: Identity,
        chunk_ids: Sequence[ChunkId],
        alive: Mapping[ChunkId, tuple[Chunk, Document]],
    ) -> None:
        """Delete the points of chunks that are gone, and label the others as their documents are now."""
        operations = owner.relabelled(alive.values())
        if gone := [i for i in chunk_ids if i not in alive]:
            operations.append(owner.deleted(gone))
        if self.collections.has(identity.dimension):  # else no vector was ever sent
            with self.collections.asking(identity.dimension) as (client, name):
                client.batch_update_points(name, operations, wait=True)
