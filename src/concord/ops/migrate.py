"""How does everything get elsewhere? To another store by `kb migrate --to`, to a file by `kb backup`.

A copy in another store is made in one transaction: it is whole, or there is none. Nothing is embedded again,
and the origin is only read. Both are then read and compared.

Vectors alone go to another home by `kb migrate`: reach → move → send → compare → clear the old. They are
taken from the embedding cache, so that the old home need not answer. It still has vectors with their texts:
they are deleted, by the key under which they were sent, once nothing is missing in the new home. A home that
cannot be cleared now is named, once.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from operator import mul
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from concord.core.batches import batched
from concord.core.errors import Action, BadValue, Hint, KBError, NotFound, ReadOnlyStore, StoreError
from concord.core.protocols import Embedder, Progress
from concord.core.reports import Backup
from concord.index.embedding import EmbeddingReport, embed_pending, embedded_text, text_key
from concord.index.links import find_mentions
from concord.index.lock import SYNCING
from concord.store.contract import OutsideVectors, Store
from concord.types import ChunkId, Counts, Home, Identity, Vector

SAME_DIRECTION = 1 - 1e-5  # a store may normalise a vector again, which changes its last bits
_DECIMALS = 3  # of a time: the clocks of stores are not all as fine
_AT_ONCE = 512  # vectors
_UNFINISHED = Hint(Action.SYNC, "some vectors are yet to be made in the new place, by {sync} or {models_add}")


class Migration(Struct, frozen=True):
    """What a finished migration has moved, and the checksum that proves it complete."""

    counts: Counts
    cached: int  # vectors in the embedding cache
    checksum: str  # of sources, documents and chunks: the same on both sides
    copied: int  # documents
    took_s: float
    left: str = ""  # where the origin's vectors outside are; they stay there


def migrate(origin: Store, target: Store, progress: Progress, *, lock_wait_s: float) -> Migration:
    """Copy everything to a store that holds nothing, and see that it has arrived."""
    started = time.monotonic()
    if origin.place.unique_id == target.place.unique_id:
        raise BadValue(
            "the target is this store itself",
            hint=Hint(Action.MIGRATE, "{migrate} alone moves the vectors of a store"),
        )
    sources = origin.catalog.snapshot().sources
    if not sources:  # more likely a slip than a knowledge base
        raise NotFound(
            "there is nothing to migrate: this store is empty",
            hint=Hint(Action.STORE, "check {store} and {org}"),
        )
    with ExitStack() as held:
        for source in sources:
            with suppress(ReadOnlyStore):  # on a read-only medium nobody syncs; who does elsewhere is noticed
                held.enter_context(origin.lock(source.id, SYNCING, wait_s=lock_wait_s))
        target.copy(origin, progress)
        find_mentions(target, progress)
        checksum = verified(origin, target, progress)
    target.maintain(progress)
    left = "" if origin.outbox.is_empty() else origin.outbox.home().url
    counts, cached = target.catalog.count(), target.cache.usage().entries
    return Migration(counts, cached, checksum, counts.documents, time.monotonic() - started, left)


def verified(origin: Store, target: Store, progress: Progress) -> str:
    """Compare two stores; return the checksum of sources, documents and chunks that they share."""
    ids: list[ChunkId] = []
    checksum, other = _checksum(origin, ids, progress), _checksum(target, [], progress)
    is_same = checksum == other and origin.catalog.count() == target.catalog.count()
    for model in origin.catalog.snapshot().models:
        here, there = (store.models.index(model.identity) for store in (origin, target))
        for few in batched(ids, _AT_ONCE):
            ours, theirs = here.fetch(few), there.fetch(few)
            is_same = is_same and all(_is_same(ours.get(id), theirs.get(id)) for id in few)
    if not is_same:
        raise StoreError(
            "the copy differs from what it was made of",
            hint="something changed meanwhile: delete the copy, and run the same command again",
        )
    return checksum


def _checksum(store: Store, ids: list[ChunkId], progress: Progress) -> str:
    """Return the checksum of what a store holds, and gather the ids of its chunks."""
    digest = hashlib.sha256()
    for noun in _nouns(store, ids, progress):
        digest.update(json.dumps(_plain(noun), sort_keys=True, default=dict).encode())
    return digest.hexdigest()


def _nouns(store: Store, ids: list[ChunkId], progress: Progress) -> Iterator[Struct]:
    yield from sorted(store.catalog.snapshot().sources, key=lambda source: source.id)
    documents = sorted(store.catalog.documents(), key=lambda document: document.id)
    for number, document in enumerate(documents, 1):
        yield document
        for chunk in store.catalog.chunks(document.id):
            ids.append(chunk.id)
            yield chunk
        progress("verify", number, len(documents))


def _plain(noun: Struct) -> dict[str, Any]:
    fields = asdict(noun).items()
    return {name: round(value, _DECIMALS) if isinstance(value, float) else value for name, value in fields}


def _is_same(vector: Vector | None, other: Vector | None) -> bool:
    if vector is None or other is None or vector == other:
        return vector == other
    return len(vector) == len(other) and sum(map(mul, array("f", vector), array("f", other))) > SAME_DIRECTION


def back_up(store: Store, path: str | os.PathLike[str], progress: Progress) -> Backup:
    """Copy a store to a file while it is in use; vectors that are kept outside it are made from its cache."""
    started = time.monotonic()
    place = store.place
    target = os.path.realpath(os.path.expanduser(path))  # a link stays one
    if os.path.isdir(target):
        raise BadValue(f"{target} is a folder", hint=f"name a file: {os.path.join(target, 'kb-backup.db')}")
    if place.path and target == os.path.realpath(place.path):
        raise BadValue(f"{target} is the store itself", hint="give the copy another name")
    store.backup(target, progress)
    return Backup(target, os.path.getsize(target), store.catalog.count(), time.monotonic() - started)


class LeftBehind(Struct, frozen=True):
    """A home that still holds what was sent there, and why."""

    home: Home
    why: str


class VectorMove(Struct, frozen=True):
    """What bringing vectors to another home came to."""

    embedding: EmbeddingReport
    left: tuple[LeftBehind, ...] = ()


class VectorMoveTools(Struct, frozen=True):
    """Where vectors are to be, and how to get to where they were."""

    new: OutsideVectors | None  # None: in the store itself
    clear: Callable[[Home], None]  # delete what was sent there


def move_vectors(
    store: Store, tools: VectorMoveTools, embedder: Embedder | None, progress: Progress
) -> VectorMove:
    """Keep a store's vectors outside it, or inside again.

    Interrupted, what has not arrived is pending for the next sync.
    """
    if tools.new is None and not store.outbox.home().url:
        raise BadValue(
            "there is nothing to move: vectors are in the store itself, and vectors.url names no other place",
            hint=Hint(
                Action.MIGRATE_TO,
                "{migrate_to} copies everything to another store; vectors.url = http://HOST:6333 moves the"
                " vectors to Qdrant",
                url="URL",
            ),
        )
    old = store.outbox.home()
    _change_home(store, tools.new)
    for model in store.catalog.snapshot().models:
        if embedder is None or not model.is_active:
            _refill(model.identity, store)
    done = embed_pending(store, embedder, progress)
    store.maintain(progress)
    return VectorMove(done, tuple(_clear(store, tools, old)))


def _change_home(store: Store, new: OutsideVectors | None) -> None:
    home, url = store.outbox.home(), new.home if new else ""
    if new:
        for model in store.catalog.snapshot().models:
            new.reach(model.identity.dimension)
        if home.url == url:
            new.sweep()  # all is sent again, but what is gone from here would be there for ever
    if new or home.url:
        store.outbox.move(url)


def _refill(identity: Identity, store: Store) -> None:
    """Give chunks the vectors of a model that the cache has for them; the others wait for the model."""
    index, after = store.models.index(identity), 0
    while window := index.pending(after, _AT_ONCE):
        after = window[-1].chunk_id
        keys = {pending.chunk_id: text_key(embedded_text(pending)) for pending in window}
        known = index.cached(list(set(keys.values())))
        index.put((chunk_id, key, known[key]) for chunk_id, key in keys.items() if key in known)


def _clear(store: Store, tools: VectorMoveTools, old: Home) -> Iterator[LeftBehind]:
    """Delete what lies where vectors were moved away from; yield that place where this cannot be done."""
    if old.url in ("", store.outbox.home().url):
        return
    if missing := _missing(store, tools.new):
        yield LeftBehind(old, missing)
        return
    try:
        tools.clear(old)
    except KBError as fault:  # whatever it is, the vectors have moved
        yield LeftBehind(old, fault.message)


def _missing(store: Store, new: OutsideVectors | None) -> str | None:
    """Return why what was sent to the old home is still needed; None when all is in the new one."""
    models = store.catalog.snapshot().models
    if any(store.models.index(model.identity).count_pending() for model in models):
        return _UNFINISHED
    return next((finding.message for finding in (new.check_vectors() if new else ())), None)
