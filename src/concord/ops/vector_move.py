"""Keeping a store's vectors in another home, top to bottom: reach → move → send → compare → clear the old.

Vectors are taken from the embedding cache, so that the old home need not answer. It still has vectors with
their texts: they are deleted, by the key under which they were sent, once nothing is missing in the new home.
A home that cannot be cleared now stays in the outbox, and every later run tries again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from concord.core.errors import Action, BadValue, Hint, KBError
from concord.core.protocols import Embedder, Progress
from concord.index.embedding import EmbeddingReport, embed_pending, embedded_text, text_key
from concord.store.contract import OutsideVectors, Store
from concord.types import Home, Identity

MOVED_AT_ONCE = 512  # vectors
_UNFINISHED = Hint(Action.SYNC, "some vectors are yet to be made in the new place, by {sync} or {models_add}")
_ANOTHERS = "this store is a copy, and the one that it was made of may need it"


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
    if tools.new is None and not store.outbox.home().url and not store.outbox.left():
        raise BadValue(
            "there is nothing to move: vectors are in the store itself, and vectors.url names no other place",
            hint=Hint(
                Action.MIGRATE_TO,
                "{migrate_to} copies everything to another store; vectors.url = http://HOST:6333 moves the"
                " vectors to Qdrant",
                url="URL",
            ),
        )
    _change_home(store, tools.new)
    for model in store.catalog.snapshot().models:
        if embedder is None or not model.is_active:
            _refill(model.identity, store)
    done = embed_pending(store, embedder, progress)
    store.maintain(progress)
    return VectorMove(done, tuple(_clear(store, tools)))


def _change_home(store: Store, new: OutsideVectors | None) -> None:
    home, url = store.outbox.home(), new.home if new else ""
    if new:
        for model in store.catalog.snapshot().models:
            new.reach(model.identity.dimension)
        if home.url == url and not home.is_anothers:
            new.sweep()  # all is sent again, but what is gone from here would be there for ever
    if new or home.url:
        store.outbox.move(url)


def _refill(identity: Identity, store: Store) -> None:
    """Give chunks the vectors of a model that the cache has for them; the others wait for the model."""
    index, after = store.models.index(identity), 0
    while window := index.pending(after, MOVED_AT_ONCE):
        after = window[-1].chunk_id
        keys = {pending.chunk_id: text_key(embedded_text(pending)) for pending in window}
        known = index.cached(list(set(keys.values())))
        index.put((chunk_id, key, known[key]) for chunk_id, key in keys.items() if key in known)


def _clear(store: Store, tools: VectorMoveTools) -> Iterator[LeftBehind]:
    """Delete what lies in homes that vectors were moved away from; yield those where that cannot be done."""
    left = store.outbox.left()
    missing = _missing(store, tools.new) if left else None
    for home in left:
        why = missing or (_ANOTHERS if home.is_anothers else None)
        if why is None:
            try:
                tools.clear(home)
            except KBError as fault:  # whatever it is, the vectors have moved
                why = fault.message
        if why:
            yield LeftBehind(home, why)
        if why in (None, _ANOTHERS):  # another store's are reported once: they may still be needed
            store.outbox.forget(home)


def _missing(store: Store, new: OutsideVectors | None) -> str | None:
    """Return why what was sent to the old home is still needed; None when all is in the new one."""
    models = store.catalog.snapshot().models
    if any(store.models.index(model.identity).count_pending() for model in models):
        return _UNFINISHED
    return next((finding.message for finding in (new.check_vectors() if new else ())), None)
