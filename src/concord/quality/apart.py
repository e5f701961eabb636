"""A copy of documents to ask questions of, in which the words that are asked for are hidden.

It lasts as long as it is asked. Vectors are taken over wherever a text stays the same.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import astuple, replace

from concord.core.batches import batched
from concord.core.errors import BadValue
from concord.core.protocols import Progress
from concord.index.embedding import ready_index, text_key
from concord.quality.own_pairs import Pair
from concord.reading.locate import joined
from concord.store.contract import Select, Store
from concord.text.document import embeddable_text, embedded_tags
from concord.types import Chunk, ChunkId, Document, Identity, Piece

COPIED = 200  # documents at once


class Copied(NamedTuple):
    """A document as it is and its chunks, and both as they are asked about."""

    original: Document
    chunks: list[Chunk]
    document: Document
    pieces: list[Piece]
    words: list[str]  # that are hidden, the longest first


def copied(pairs: Sequence[Pair], origin: Store, source_id: str | None = None) -> Iterator[Copied]:
    """Yield the documents that searches see, all or one source's, without the words that pairs hide."""
    hidden: dict[str, set[str]] = defaultdict(set)
    for document_id, said in (place for pair in pairs for place in pair.hidden):
        hidden[document_id].add(said)
    for document in origin.catalog.documents(Select(source_id=source_id)):
        if document.superseded_by is None:
            chunks = origin.catalog.chunks(document.id)
            words = sorted(hidden[document.id], key=len, reverse=True)
            bare = replace(document, title="") if document.title in words else document
            pieces = [
                replace(
                    Piece(*astuple(chunk)[3:]),
                    text=_hide(words, chunk.text),
                    heading=tuple(part for part in chunk.heading if part not in words),
                )
                for chunk in chunks
            ]
            yield Copied(document, chunks, bare, pieces, words)


def _hide(words: Sequence[str], text: str) -> str:
    return reduce(lambda left, said: left.replace(said, " "), words, text)


def copy_without(
    pairs: Sequence[Pair],
    origin: Store,
    target: Store,
    identity: Identity | None,
    progress: Progress,
    *,
    source_id: str | None = None,
) -> None:
    """Copy documents without the words that pairs hide."""
    for source in origin.catalog.snapshot().sources:
        if source_id in (None, source.id):
            target.catalog.put_source(source)
    done = 0
    for batch in batched(copied(pairs, origin, source_id), COPIED):
        made = target.catalog.put_documents((copy.document, copy.pieces) for copy in batch)
        if identity is not None:
            _take_over(batch, made, origin, target, identity)
        done += len(batch)
        progress("copy", done, None)


def _take_over(
    batch: Sequence[Copied],
    made: Sequence[Sequence[ChunkId]],
    origin: Store,
    target: Store,
    identity: Identity,
) -> None:
    same: list[tuple[ChunkId, ChunkId, bytes]] = []
    for copy, ids in zip(batch, made, strict=True):
        tags = embedded_tags(copy.document)
        for new, piece, chunk in zip(ids, copy.pieces, copy.chunks, strict=True):
            was = embeddable_text(copy.original.title, chunk.heading, chunk.text, tags)
            if embeddable_text(copy.document.title, piece.heading, piece.text, tags) == was:
                same.append((new, chunk.id, text_key(was)))
    known = origin.models.index(identity).fetch([old for _, old, _ in same])
    ready_index(target, identity).put((new, key, known[old]) for new, old, key in same if old in known)


def save_beir(pairs: Sequence[Pair], origin: Store, folder: Path, source_id: str | None = None) -> None:
    """Write documents and pairs as a test collection, for `evaluate` and other tools."""
    try:
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        with (folder / "corpus.jsonl").open("w", encoding="utf-8") as file:
            for copy in copied(pairs, origin, source_id):
                text = _hide(copy.words, joined(copy.chunks)) if copy.chunks else ""
                row = {"_id": copy.original.id, "title": copy.document.title, "text": text}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        queries = [{"_id": f"q{at}", "text": pair.query, "kind": pair.kind} for at, pair in enumerate(pairs)]
        lines = (json.dumps(query, ensure_ascii=False) + "\n" for query in queries)
        (folder / "queries.jsonl").write_text("".join(lines), encoding="utf-8")
        judged = (f"q{at}\t{target}\t1\n" for at, pair in enumerate(pairs) for target in pair.targets)
        head = "query-id\tcorpus-id\tscore\n"
        (folder / "qrels" / "test.tsv").write_text(head + "".join(judged), encoding="utf-8")
    except OSError as fault:
        raise BadValue(
            f"cannot write {fault.filename}: {fault.strerror}", hint="choose another place"
        ) from fault
