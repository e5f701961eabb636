"""From a file's bytes to documents that are stored together, and what is counted on the way."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple, replace

from concord.core.errors import BadValue, ExtractionError, MissingExtra, NotIndexable, UnknownName
from concord.core.protocols import Embedder, FileReader, PictureReader, Progress
from concord.core.reports import FILE_COUNTS, Failure, PartlyRead, SyncReport, partly_read
from concord.files.opening import read_unchanging
from concord.files.state import may_be_another, settled_mtime
from concord.files.walk import Found
from concord.store.contract import Catalog, Store, document_by_id
from concord.text.chunk import ChunkSize, chunk
from concord.types import Document, Extracted, FileState, Piece, Source

# Raise it when the same file would give another text or other chunks. Chunks of an earlier one serve until
# their file changes; collections that measure the quality of answers are chunked anew.
READER_VERSION = 13

# Documents stored in one transaction. A transaction waits for the disk, and leaves the full-text index one
# more part to merge: 400 Markdown pages take a fifth less work in such groups than one by one.
GROUP_DOCUMENTS = 256
GROUP_CHUNKS = 2048  # chunks in a transaction, which keeps other writers waiting
GROUP_S = 0.5  # how long a document may wait to be searchable
WHOLE_DOCUMENTS = 64  # in memory with all their chunks at a time, where nobody counts these
# Documents whose labels change in one transaction, their texts staying as they are. An index rewrites a tag
# once for all of them; meanwhile other writers wait.
UPDATED_AT_ONCE = 1000


BAD_FILE = (ExtractionError, MissingExtra, UnknownName, BadValue)  # faults of one file: the run goes on


class ReadLimits(Struct, frozen=True):
    """How files are read and chunked."""

    max_bytes: int
    chunk: ChunkSize

    def chunking_key(self) -> list[int]:
        """Return what decides, beside a file itself, which chunks it has."""
        return [READER_VERSION, *astuple(self.chunk)]

    def is_met_by(self, key: list[int]) -> bool:
        """Whether chunks that were made by this key serve; they do whichever version of ours made them."""
        return not key or key[1:] == self.chunking_key()[1:]


class SyncTools(NamedTuple):
    """What ingest works with. Embedders are opened when a file needs one: most syncs find nothing to do."""

    store: Store
    reader: FileReader
    tokenizer: Callable[[], Embedder]  # whose tokens chunks are measured in
    embedder: Callable[[], Embedder | None]  # None when nothing is to be embedded
    limits: ReadLimits
    progress: Progress
    pictures: Callable[[], PictureReader | None] = lambda: None  # None when nobody reads them


class ReadFile(NamedTuple):
    """A file whose content was read, and when that began."""

    path: str  # of its document
    found: Found
    known: FileState | None  # its document; None for a new file
    read_at: float
    data: bytes
    file_hash: str

    def tells_more_than(self, known: FileState) -> bool:
        """Whether the state of an unchanged file is worth storing again, to spare the next sync a look."""
        ctime_ns = self.found.ctime_ns
        has_settled = may_be_another(ctime_ns, known.indexed_at) > may_be_another(ctime_ns, self.read_at)
        return has_settled or (known.size, known.mtime_ns) != (self.found.size, settled_mtime(self.found))

    def state(self) -> dict[str, Any]:
        """Return the fields of its document that tell the next sync whether to read it again."""
        return {
            "size": self.found.size,
            "mtime_ns": settled_mtime(self.found),
            "indexed_at": self.read_at,
        }


def read_file(source: Source, found: Found, known: FileState | None, max_bytes: int) -> ReadFile | None:
    """Return a file with its content; None if it is gone.

    Raises:
        ExtractionError: it cannot be read, or is not to be indexed.
    """
    read_at, path = time.time(), source.path_of(found.relative)
    data = read_unchanging(found, max_bytes)
    if data is None:
        return None
    return ReadFile(path, found, known, read_at, data, hashlib.sha256(data).hexdigest())


def new_document(source: Source, read: ReadFile, extracted: Extracted) -> Document:
    """Return the document for a file, under a new id."""
    return Document(
        id=secrets.token_hex(8),
        source_id=source.id,
        path=read.path,
        type=extracted.type,
        title=extracted.title or read.found.path.stem,
        tags=tuple(dict.fromkeys((*source.tags, *extracted.tags))),
        details=extracted.details,
        file_hash=read.file_hash,
        content_hash=hashlib.sha256(extracted.text.encode("utf-8", "replace")).hexdigest(),
        **read.state(),
    )


def renamed_title(title: str, old: Path, new: Path) -> str:
    """Return the title of a renamed file: changed only if it was, or began with, the name."""
    if title == old.stem:
        return new.stem
    return new.name + title.removeprefix(old.name) if title.startswith(old.name) else title


class Prepared(NamedTuple):
    """A document that is ready to be stored, and as what it is counted."""

    document: Document
    pieces: list[Piece]
    counted_as: str


def prepared(
    source: Source, read: ReadFile, extracted: Extracted, tools: SyncTools, counted_as: str
) -> Prepared:
    """Chunk the text of a file; its document keeps the id that it has.

    Raises:
        NotIndexable: it holds no text.
    """
    pieces = chunk(extracted, tools.tokenizer().token_starts, tools.limits.chunk)
    if not pieces:
        raise NotIndexable("no text")
    document = new_document(source, read, extracted)
    if read.known and (old := document_by_id(tools.store.catalog, read.known.document_id)):
        document = replace(document, id=old.id, superseded_by=old.superseded_by)
    return Prepared(document, pieces, counted_as)


def is_full(pieces: Sequence[Sequence[Piece]]) -> bool:
    """Whether documents, given by the pieces of each, are enough for one transaction."""
    return len(pieces) >= GROUP_DOCUMENTS or sum(map(len, pieces)) >= GROUP_CHUNKS


class Tally:
    """Documents that are to be stored together, counts of what was done, and files left out or failed."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._group: list[Prepared] = []
        self._since = 0.0  # the first of the group was added
        self.counts: Counter[str] = Counter()
        self.skipped: list[Failure] = []
        self.partly_read: dict[str, PartlyRead] = {}
        self.failed: list[Failure] = []

    def add(self, ready: Prepared) -> None:
        """Take a document, which is stored with the next ones."""
        self._since = self._since if self._group else time.monotonic()
        self._group.append(ready)

    def store_in_time(self) -> None:
        """Store what was added if it is enough, or has waited long enough."""
        is_late = time.monotonic() - self._since >= GROUP_S
        if self._group and (is_late or is_full([ready.pieces for ready in self._group])):
            self.store()

    def store(self) -> None:
        """Store what was added."""
        group, self._group = self._group, []
        if group:
            self._put(group)

    def _put(self, group: Sequence[Prepared]) -> None:
        """Store documents together, and count them; one that no store can keep does not keep others out."""
        try:
            self._catalog.put_documents((ready.document, ready.pieces) for ready in group)
        except BadValue as fault:
            if len(group) == 1:
                self.failed.append(Failure(group[0].document.path, fault.message))
                return
            for ready in group:
                self._put([ready])
            return
        for document, pieces, counted_as in group:
            self.counts.update({counted_as: 1, "chunks": len(pieces)})
            self.partly_read.pop(document.path, None)  # pictures may have been read since
            self.partly_read |= {part.path: part for part in partly_read([document])}

    def report(self, source: Source) -> SyncReport:
        """Return what has been done."""
        report = SyncReport(
            source,
            skipped=Counter(left_out.reason for left_out in self.skipped),
            skipped_files=tuple(self.skipped),
            partly_read=tuple(self.partly_read.values()),
            failed=tuple(self.failed),
        )
        return replace(report, **{name: self.counts[name] for name in (*FILE_COUNTS, "chunks")})
