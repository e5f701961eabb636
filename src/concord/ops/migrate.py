"""Moving to another store, top to bottom: refuse → sources → documents → vectors → cache → journal → verify.

Nothing is embedded again, and the origin is only read. A document and its chunks arrive in one transaction,
and vectors go to chunks that have none, so that a run that was killed is continued by the next one. A target
that holds anything which the origin has not, or has otherwise, is refused. Only while a mark says that
nothing but a migration has written to the target, that is deleted there.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import groupby
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import asdict

from concord.core.batches import batched
from concord.core.errors import Action, BadValue, Hint, NotFound, ReadOnlyStore
from concord.core.protocols import Progress
from concord.files.state import unfinished_copy
from concord.index.documents import is_full
from concord.index.embedding import embedded_text, ready_index, text_key
from concord.index.links import find_mentions
from concord.index.lock import SYNCING
from concord.ops.compare import Copied, merged, plain, verify
from concord.ops.vector_move import MOVED_AT_ONCE
from concord.store.contract import Store
from concord.types import Access, Chunk, ChunkId, Counts, Document, Identity, Link, Piece, Source, Vector


class Migration(Struct, frozen=True):
    """What a finished migration has moved, and the checksum that proves it complete."""

    counts: Counts
    cached: int  # vectors in the embedding cache
    checksum: str  # of sources, documents and chunks: the same on both sides
    copied: int  # documents that this run had to copy
    took_s: float
    left: str = ""  # where the origin's vectors outside are; they stay there


def migrate(origin: Store, target: Store, progress: Progress, *, lock_wait_s: float) -> Migration:
    """Copy everything and see that it has arrived."""
    started = time.monotonic()
    if origin.place.unique_id == target.place.unique_id:
        raise BadValue(
            "the target is this store itself",
            hint=Hint(Action.MIGRATE, "{migrate} alone moves the vectors of a store"),
        )
    if not origin.catalog.snapshot().sources:  # more likely a slip than a knowledge base
        raise NotFound(
            "there is nothing to migrate: this store is empty",
            hint=Hint(Action.STORE, "check {store} and {org}"),
        )
    _drop_or_refuse_strangers(origin, target)
    with ExitStack() as held:
        for source in origin.catalog.snapshot().sources:
            with suppress(ReadOnlyStore):  # on a read-only medium nobody syncs; who does elsewhere is noticed
                held.enter_context(origin.lock(source.id, SYNCING, wait_s=lock_wait_s))
        _add_models(origin, target)  # first: it may refuse, and nothing must have changed then
        copied = _copy_documents(origin, target, progress)
        for model in origin.catalog.snapshot().models:
            _copy_vectors(model.identity, origin, target, progress)
        cached = _copy_cache(origin, target, progress)
        find_mentions(target, progress)
        journal = _copy_journal(origin, target)
        checksum = verify(origin, target, journal, progress)
        for source in origin.catalog.snapshot().sources:
            target.catalog.put_sync_state(source.id, origin.catalog.sync_state(source.id))
    target.maintain(progress)
    left = "" if origin.outbox.is_empty() else origin.outbox.home().url
    return Migration(target.catalog.count(), cached, checksum, copied, time.monotonic() - started, left)


def _drop_or_refuse_strangers(origin: Store, target: Store) -> None:
    """Refuse a target that holds what this store does not; from an unfinished copy, delete it."""
    here = {(type(kept), kept.id): plain(kept) for kept in _kept(origin)}
    if _is_unfinished_copy(origin, target):
        gone = [document.id for document in target.catalog.documents() if (Document, document.id) not in here]
        target.catalog.delete_documents(gone)
        for source in target.catalog.snapshot().sources:
            if (Source, source.id) not in here:
                target.catalog.remove_source(source.id)
        _mark_unfinished(target)
        return
    for kept in _kept(target):
        if here.get((type(kept), kept.id)) != plain(kept):
            _refuse(kept.name if isinstance(kept, Source) else kept.path)
    known = {(opinion.query, opinion.document_id) for opinion in origin.journal.feedback()}
    for opinion in target.journal.feedback():
        if (opinion.query, opinion.document_id) not in known:
            _refuse(f"an opinion on {opinion.citation}")


def _refuse(name: str) -> NoReturn:
    raise BadValue(
        f"the target holds a knowledge base of its own: {name!r} is not so in this one",
        hint="choose an empty store: another folder, file or database",
    )


def _kept(store: Store) -> Iterator[Source | Document]:
    yield from store.catalog.snapshot().sources
    yield from store.catalog.documents()


def _mark_unfinished(target: Store) -> None:
    """Write down that nobody but a migration has changed the target so far."""
    for source in target.catalog.snapshot().sources[:1]:
        target.catalog.put_sync_state(source.id, unfinished_copy(target.catalog.snapshot().generation))


def _is_unfinished_copy(origin: Store, target: Store) -> bool:
    """Whether the target is what a migration from here has left, and nobody has changed it since."""
    mark = unfinished_copy(target.catalog.snapshot().generation)
    there, here = ({source.id for source in store.catalog.snapshot().sources} for store in (target, origin))
    return bool(there & here) and any(target.catalog.sync_state(source_id) == mark for source_id in there)


def _copy_documents(origin: Store, target: Store, progress: Progress) -> int:
    """Copy sources, then the documents that are new or different; return how many."""
    _mark_unfinished(target)
    for source in origin.catalog.snapshot().sources:
        target.catalog.put_source(source)
        _mark_unfinished(target)
    there = {document.id: plain(document) for document in target.catalog.documents()}
    total, copied = origin.catalog.count().documents - len(there), 0
    missing = (
        document for document in origin.catalog.documents() if there.get(document.id) != plain(document)
    )
    for group in _groups(missing, origin):
        target.catalog.put_documents(group)
        _mark_unfinished(target)
        copied += len(group)
        progress("copy", copied, max(copied, total))
    return copied


def _groups(documents: Iterable[Document], origin: Store) -> Iterator[list[tuple[Document, list[Piece]]]]:
    group: list[tuple[Document, list[Piece]]] = []
    for document in documents:
        links: defaultdict[ChunkId, list[Link]] = defaultdict(list)
        for row in origin.links.outgoing(document.id):
            if row.link.kind != "mention":
                links[row.chunk_id].append(row.link)
        chunks = origin.catalog.chunks(document.id)
        group.append((document, [_piece(chunk, links[chunk.id]) for chunk in chunks]))
        if is_full([pieces for _, pieces in group]):
            yield group
            group = []
    if group:
        yield group


def _piece(chunk: Chunk, links: Sequence[Link]) -> Piece:
    fields = {**asdict(chunk), "links": tuple(links)}
    return Piece(**{name: fields[name] for name in Piece.__struct_fields__})


def _add_models(origin: Store, target: Store) -> None:
    """Add the models there that are here, and let searches use the same one."""
    snapshot = origin.catalog.snapshot()
    if snapshot.active is None:
        return
    ready_index(target, snapshot.active.identity)
    for model in snapshot.models:
        target.models.add(model.identity, model.recipe)
    target.models.activate(snapshot.active.identity)


def _copy_vectors(identity: Identity, origin: Store, target: Store, progress: Progress) -> None:
    """Copy the vectors of one model to the chunks of the target that have none."""
    mine, theirs = origin.models.index(identity), target.models.index(identity)
    after, done, total = 0, 0, theirs.count_pending()
    while window := theirs.pending(after, MOVED_AT_ONCE):
        after = window[-1].chunk_id
        here = _counterparts([waiting.chunk_id for waiting in window], origin, target)
        vectors = mine.fetch(list(here.values()))
        keys = {waiting.chunk_id: text_key(embedded_text(waiting)) for waiting in window}
        theirs.put((there, keys[there], vectors[own]) for there, own in here.items() if own in vectors)
        done += len(window)
        progress("moving", done, total)


def _counterparts(chunk_ids: Sequence[ChunkId], origin: Store, target: Store) -> dict[ChunkId, ChunkId]:
    """Return chunk there → chunk here: ids differ, a chunk's place in its document does not."""
    places = {i: (chunk.document_id, chunk.index) for i, (chunk, _) in target.catalog.read(chunk_ids).items()}
    mine = {
        (document_id, chunk.index): chunk.id
        for document_id in {document_id for document_id, _ in places.values()}
        for chunk in origin.catalog.chunks(document_id)
    }
    return {there: mine[place] for there, place in places.items() if place in mine}


def _copy_cache(origin: Store, target: Store, progress: Progress) -> int:
    """Copy the embedding cache, also of texts that are no longer indexed; return how many vectors."""
    copied = 0
    for identity, entries in groupby(origin.cache.entries(), key=lambda entry: entry[0]):
        for batch in batched(entries, MOVED_AT_ONCE):
            _remember(identity, {key: vector for _, key, vector in batch}, target)
            copied += len(batch)
            progress("cache", copied, None)
    return copied


def _remember(identity: Identity, vectors: Mapping[bytes, Vector], target: Store) -> None:
    index = target.models.index(identity)
    known = index.cached(list(vectors))
    index.remember({key: vector for key, vector in vectors.items() if key not in known})


def _copy_journal(origin: Store, target: Store) -> Copied:
    """Copy how often documents were read, unless they are read more there, and opinions on results."""
    read: dict[str, Access] = {}
    for group in batched(origin.catalog.documents(), MOVED_AT_ONCE):
        if accesses := origin.journal.accesses([document.id for document in group]):
            target.journal.put_accesses(merged(accesses, target.journal.accesses([*accesses])))
            read |= accesses
    known, opinions = set(target.journal.feedback()), origin.journal.feedback()
    for opinion in opinions:
        if opinion not in known:
            target.journal.record_feedback(opinion)
    return Copied(read, opinions)
