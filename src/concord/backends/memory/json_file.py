"""A memory store that is kept as one JSON file an organisation: what `json:///folder` URLs open.

For small collections, where a file that any program can read matters more than speed: every change writes
the whole file, under another name first, so that a crash leaves the old one or the new one and never a half.
Other processes may read and write it too: each looks whether the file has changed before it reads its own
copy, and writers take turns.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from concord.backends.memory.bm25 import InvertedIndex
from concord.backends.memory.contents import Contents, Held
from concord.backends.memory.store import MemoryStore
from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, SchemaTooNew
from concord.core.filesystem import replace_file, sweep_drafts
from concord.core.values import check_org
from concord.store.birthplaces import file_birthplace
from concord.store.columns import chunk_names, columns_of
from concord.store.file_identity import file_identity
from concord.store.file_locks import file_lock
from concord.store.organisations_beside import organisations_beside
from concord.types import Access, Chunk, ChunkId, Document, Feedback, Home, Identity, Source, Vector

SCHEME = "json://"
VERSION = 1
WRITE_WAIT_S = 60.0  # for another process that writes: it takes as long as writing the file takes

_Signature = tuple[int, int, int]


class Saved(msgspec.Struct):
    """The file. Vectors are base64 of their float32 bytes."""

    version: int = VERSION
    generation: int = 0
    last_chunk_id: ChunkId = 0
    sources: list[Source] = []
    memos: dict[str, str] = {}
    documents: list[Document] = []
    chunks: list[Chunk] = []
    spaces: list[tuple[Identity, Held]] = []
    active: Identity | None = None
    cache_hits: int = 0
    cache_misses: int = 0
    cached: list[tuple[Identity, bytes, Vector]] = []
    home: str = ""
    key: str = ""
    birthplace: str = ""
    left: list[Home] = []
    unsettled: dict[int, ChunkId] = {}
    accesses: dict[str, Access] = {}
    feedback: list[Feedback] = []
    last_turn: int = 0


# What the file and the contents hold in the same form.
_SAME = [
    "generation",
    "last_chunk_id",
    "memos",
    "active",
    "cache_hits",
    "cache_misses",
    "home",
    "key",
    "birthplace",
    "left",
    "unsettled",
    "last_turn",
    "accesses",
]


class JsonContents(Contents, kw_only=True):
    """Contents that are as the file says whenever they are looked at."""

    path: Path
    seen: _Signature | None = None  # the file that was read last; None: whatever is held is not to be trusted
    depth: int = 0  # of blocks within each other: only the outermost looks at the file

    @contextmanager
    def reading(self) -> Iterator[Contents]:
        """Let nobody in this process change anything during the block, and see what others changed before."""
        with self.lock:
            if not self.depth:
                self.catch_up()
            with self._within():
                yield self

    @contextmanager
    def changing(self) -> Iterator[Contents]:
        """Let nobody else change anything during the block; write the file at its end, unless it fails."""
        with self.lock:
            if self.depth:
                yield self
                return
            self._make_folder()
            with file_lock(str(self.path), "writing", "writing to this store", WRITE_WAIT_S), self._within():
                self.catch_up()
                self.seen = None  # which stays so if the block or the disk fails
                yield self
                self.save()

    @contextmanager
    def exclusive(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        """Hold the right to long work of this name, across processes.

        Raises:
            StoreBusy: somebody else holds it for longer than `wait_s`.
        """
        self._make_folder()
        with file_lock(str(self.path), name, doing, wait_s):
            yield

    def _make_folder(self) -> None:
        with _told(self.path.parent):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # for its owner's eyes

    @contextmanager
    def _within(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def here(self) -> str:
        """Return the folder and the name: each change is a new file."""
        folder = file_birthplace(str(self.path.parent))
        return folder and f"{folder}/{self.path.name}"

    def catch_up(self) -> None:
        """Read the file, unless it is the one that was read or written last."""
        signature = _signature(self.path)
        if signature != self.seen or signature is None:
            self._fill(_read(self.path) if signature else Saved())
            self.seen = signature

    def save(self) -> None:
        """Replace the file."""
        same = {name: getattr(self, name) for name in _SAME}
        saved = Saved(
            sources=[*self.sources.values()],
            documents=[*self.documents.values()],
            chunks=[self.chunks[i] for ids in self.chunks_of.values() for i in ids],
            spaces=[*self.spaces.items()],
            feedback=[*self.feedback.values()],
            cached=[(identity, key, vector) for (identity, key), vector in self.cached.items()],
            **same,
        )
        data = _encoded(saved)
        sweep_drafts(self.path)  # it is our turn to write
        self.seen = _write(self.path, data)

    def _fill(self, saved: Saved) -> None:
        for name in _SAME:
            setattr(self, name, getattr(saved, name))
        self.sources = {source.id: source for source in saved.sources}
        self.documents = {document.id: document for document in saved.documents}
        self.chunks = {chunk.id: chunk for chunk in saved.chunks}
        self.spaces = dict(saved.spaces)
        self.feedback = {(one.query, one.document_id): one for one in saved.feedback}
        self.cached = {(identity, key): vector for identity, key, vector in saved.cached}
        self.chunks_of = {document_id: [] for document_id in self.documents}
        for chunk in saved.chunks:
            self.chunks_of[chunk.document_id].append(chunk.id)
        self._index()

    def _index(self) -> None:
        """Index the words and the names of every chunk."""
        self.indexed, self.words = {}, InvertedIndex()
        self.names, self.named = {}, defaultdict(set)
        for chunk in self.chunks.values():
            document = self.documents[chunk.document_id]
            columns = columns_of(document.title, document.tags, chunk.heading, chunk.text)
            self.indexed[chunk.id] = columns
            self.words.add(chunk.id, columns)
            self.call(chunk.id, chunk_names(document, chunk.heading, chunk.text))


class JsonStore(MemoryStore):
    """The storage of one organisation in one file."""

    def __init__(self, path: Path) -> None:
        super().__init__(JsonContents(path=path))
        self.path = str(path)

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> JsonStore:
        """Open an organisation's file; there need not be one before the first change.

        Raises:
            BadValue: the URL or the organisation's name is not of the form it must have.
            StoreError: the file cannot be used as it is.
            BackendDown: the disk refuses.
        """
        store = cls(locate(url, org))
        store.catalog.generation()  # reads the file: a damaged one is told of now
        return store

    @property
    def is_begun(self) -> bool:
        """Whether there is a file."""
        return os.path.lexists(str(self.path))

    def others(self) -> list[str]:
        """Return the organisations that have a file in the same folder."""
        return organisations_beside(str(self.path))

    def unique_id(self) -> str:
        """Return the folder, by what the system knows it by, and the name: each change is a new file."""
        folder, name = os.path.split(str(self.path))
        return f"{file_identity(folder)}/{name}"


def locate(url: str, org: str) -> Path:
    """Return the file that holds an organisation.

    Raises:
        BadValue: the URL or the organisation's name is not of the form it must have.
    """
    folder = url.removeprefix(SCHEME)
    if not url.startswith(SCHEME) or not folder.startswith("/") or "\0" in folder:
        raise BadValue(f"{url!r} names no JSON store", hint="write json:///absolute/folder")
    check_org(org)
    return Path("/" + folder.lstrip("/")) / f"{org}.json"


def _signature(path: Path) -> _Signature | None:
    """Return what tells one version of the file from the next: each is a new file."""
    with _told(path):
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read(path: Path) -> Saved:
    with _told(path):
        data = path.read_bytes()
    try:
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("version")
        if version is not None and int(bytes(version)) > VERSION:
            raise SchemaTooNew(
                f"{path} was written by a newer program", hint=Hint(Action.UPGRADE, package="concord-kb")
            )
        saved = msgspec.json.decode(data, type=Saved)
        if loose := next(_loose_ends(saved), None):
            raise ValueError(loose)
        return saved
    except (msgspec.DecodeError, ValueError) as fault:
        raise CorruptStore(
            f"{path} is damaged, or is no knowledge base: {fault}", hint="move it away, or restore a copy"
        ) from fault


def _loose_ends(saved: Saved) -> Iterator[str]:
    """Yield what names something that is not in the file, as after an edit by hand."""
    sources, documents = {one.id for one in saved.sources}, {one.id for one in saved.documents}
    chunks, spaces = {one.id for one in saved.chunks}, dict(saved.spaces)
    for document in saved.documents:
        if document.source_id not in sources:
            yield f"the document {document.path!r} belongs to no source"
    for chunk in saved.chunks:
        if chunk.document_id not in documents:
            yield f"chunk {chunk.id} belongs to no document"
    if any(held.vectors.keys() - chunks for held in spaces.values()):
        yield "a vector belongs to no chunk"
    if saved.active is not None and saved.active not in spaces:
        yield f"there are no vectors of {saved.active.name}"


def _encoded(saved: Saved) -> bytes:
    """Return what the file is to hold.

    Raises:
        BadValue: JSON cannot say it.
    """
    try:
        return msgspec.json.encode(saved)
    except UnicodeEncodeError as fault:
        odd = next((one.path for one in saved.documents if not _is_unicode(one)), "something")
        raise BadValue(
            f"{odd} holds half a character, which a JSON file cannot",
            hint="rename or convert a file; notes are mended by exporting and importing them again",
        ) from fault


def _is_unicode(document: Document) -> bool:
    try:
        msgspec.json.encode(document)
    except UnicodeEncodeError:
        return False
    return True


def _write(path: Path, data: bytes) -> _Signature | None:
    """Replace a file by another, all or nothing, also when the power fails."""
    with _told(path):
        replace_file(path, data)
    return _signature(path)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise BackendDown(
            f"{path} cannot be used: {fault.strerror}",
            hint=Hint(Action.STORE, "check the folder, or use another {store}"),
        ) from fault
