"""Do two stores hold the same? All of it is compared: sources, documents, chunks, vectors, journals."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any, NamedTuple, NoReturn

from msgspec import Struct
from msgspec.structs import asdict

from concord.core.batches import batched
from concord.core.errors import StoreError
from concord.core.protocols import Progress
from concord.index.documents import WHOLE_DOCUMENTS
from concord.store.contract import Store, document_by_id
from concord.types import Access, Chunk, ChunkId, Counts, Document, Feedback, Identity, Vector

SAME_DIRECTION = 1 - 1e-5  # a store may normalise a vector again, which changes its last bits
DECIMALS = 3  # of a time: the clocks of stores are not all as fine


def plain(noun: Struct) -> dict[str, Any]:
    """Return the fields of a source, document or chunk that every store keeps alike: all but a chunk's id."""
    fields = asdict(noun)
    if isinstance(noun, Chunk):
        del fields["id"]
    return {
        name: round(value, DECIMALS) if isinstance(value, float) else value for name, value in fields.items()
    }


def merged(accesses: Mapping[str, Access], others: Mapping[str, Access]) -> dict[str, Access]:
    """Return how often documents were read according to two stores: the higher number, the later time.

    They are not added up: those that a copy came with would count again with every migration.
    """
    both = {
        document_id: Access(max(a.times, b.times), max(a.last_at, b.last_at))
        for document_id, a in accesses.items()
        if (b := others.get(document_id))
    }
    return {**others, **accesses, **both}


class Copied(NamedTuple):
    """What was copied of the journal: people go on reading and judging, which makes no copy a wrong one."""

    accesses: Mapping[str, Access]
    feedback: Sequence[Feedback]


def verify(origin: Store, target: Store, journal: Copied, progress: Progress) -> str:
    """Compare two stores, all of it; return the checksum that they share."""
    here, there = origin.catalog.count(), target.catalog.count()
    if here != there:
        _differ(f"{_told(here)} here, {_told(there)} there")
    known = {source.id: plain(source) for source in target.catalog.snapshot().sources}
    digest = hashlib.sha256()
    for source in origin.catalog.snapshot().sources:
        if known.get(source.id) != plain(source):
            _differ(f"the source {source.name}")
        digest.update(_bytes(plain(source)))
    if journal.feedback != target.journal.feedback():
        _differ("opinions on results")
    done = 0
    for group in batched(origin.catalog.documents(), WHOLE_DOCUMENTS):
        _compare_accesses([document.id for document in group], journal.accesses, target)
        digest.update(_verified(group, origin, target))
        done += len(group)
        progress("verify", done, here.documents)
    return digest.hexdigest()


class _Copy(NamedTuple):
    """A document as one store has it."""

    checksum: bytes
    chunk_ids: list[ChunkId]


def _verified(group: Sequence[Document], origin: Store, target: Store) -> bytes:
    """Return the checksums of documents that are the same in both stores, with their chunks and vectors."""
    here, there = ([_read(document.id, store) for document in group] for store in (origin, target))
    for document, a, b in zip(group, here, there, strict=True):
        if a.checksum != b.checksum:
            _differ(document.path)
    for model in origin.catalog.snapshot().models:
        _compare_vectors(model.identity, (origin, here), (target, there))
    return b"".join(copy.checksum for copy in here)


def _compare_accesses(document_ids: Sequence[str], copied: Mapping[str, Access], target: Store) -> None:
    there = target.journal.accesses(document_ids)
    if merged({key: copied[key] for key in document_ids if key in copied}, there) != there:
        _differ("how often documents were read")


def _compare_vectors(identity: Identity, *sides: tuple[Store, Sequence[_Copy]]) -> None:
    """See that chunks in the same places have the same vectors of a model."""
    ids = [[chunk_id for copy in copies for chunk_id in copy.chunk_ids] for _, copies in sides]
    found = [
        store.models.index(identity).fetch(wanted) for (store, _), wanted in zip(sides, ids, strict=True)
    ]
    if not all(_is_same(found[0].get(a), found[1].get(b)) for a, b in zip(*ids, strict=True)):
        _differ(f"vectors of {identity.name}")


def _read(document_id: str, store: Store) -> _Copy:
    document, chunks = document_by_id(store.catalog, document_id), store.catalog.chunks(document_id)
    fields = [plain(document) if document else None, *map(plain, chunks)]
    return _Copy(hashlib.sha256(_bytes(fields)).digest(), [chunk.id for chunk in chunks])


def _is_same(vector: Vector | None, other: Vector | None) -> bool:
    if vector is None or other is None or vector == other:
        return vector == other
    return len(vector) == len(other) and sum(map(mul, array("f", vector), array("f", other))) > SAME_DIRECTION


def _bytes(plain: Any) -> bytes:
    return json.dumps(plain, sort_keys=True, default=dict).encode()


def _told(counts: Counts) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in asdict(counts).items())


def _differ(what: str) -> NoReturn:
    raise StoreError(
        f"the copy differs from what it was made of: {what}",
        hint="something changed meanwhile: run the same command again, it copies what is missing",
    )
