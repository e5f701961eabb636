"""Test collections in BEIR layout, read and indexed as documents."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple, replace

from concord.config import Resolved, Settings
from concord.errors import BadValue, EmbedderDown, NotFound
from concord.indexing.embedding import EmbeddingReport
from concord.protocols import Embedder, Progress
from concord.storage import Store
from concord.text.chunk import ChunkSize, chunk
from concord.text.clean import clean
from concord.types import Document, DocumentType, Extracted, Identity, Source

Qrels = Mapping[str, Mapping[str, int]]  # query → document → how relevant

FOREIGN = 500  # queries taken from other collections: enough for a share to be known to 2 %

# Collections hold text without a file name, so its first line has to tell what it is.
_CODE = {
    "python": re.compile(r"\s*(?:async def |def |class |import |from \w+ import |@\w)"),
    "javascript": re.compile(r"\s*(?:function\b|const |let |var |export |async function)"),
    "go": re.compile(r"\s*(?:func |package )"),
    "java": re.compile(r"\s*(?:public |private |protected |@Override)"),
    "ruby": re.compile(r"\s*(?:module |require )"),
    "php": re.compile(r"\s*<\?php"),
}
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)


class Entry(NamedTuple):
    """One document of a collection."""

    id: str
    title: str
    text: str


class Collection(Struct, frozen=True):
    """Documents, queries and which document answers which query."""

    folder: Path
    queries: Mapping[str, str]
    qrels: Qrels

    def documents(self) -> Iterator[Entry]:
        """Yield the documents, one at a time."""
        for row in _rows(self.folder / "corpus.jsonl"):
            yield Entry(row["_id"], str(row.get("title") or ""), str(row.get("text") or ""))

    @property
    def judged(self) -> dict[str, str]:
        """The queries that have a relevant document."""
        return {
            id: text
            for id, text in self.queries.items()
            if any(relevance > 0 for relevance in self.qrels.get(id, {}).values())
        }

    def sampled(self, limit: int | None) -> Collection:
        """Return the collection with no more judged queries than `limit`: the same ones each time."""
        judged = self.judged
        if limit is None or len(judged) <= limit:
            return self
        chosen = set(sorted(judged, key=_shuffled)[:limit])
        return replace(self, queries={id: text for id, text in judged.items() if id in chosen})


def read_collection(folder: Path, split: str | None = None) -> Collection:
    """Read a collection's queries and judgements: of the split that is given, else `test`, else the only one.

    Raises:
        NotFound: the folder or one of its files is missing.
        BadValue: a file is not of this layout.
    """
    folder = folder.resolve()  # its name is shown, and `.` has none
    files = {path.stem: path for path in sorted((folder / "qrels").glob("*.tsv"))}
    if not (folder / "corpus.jsonl").is_file() or not files:
        raise NotFound(
            f"{folder} holds no test collection",
            hint="it needs corpus.jsonl, queries.jsonl and qrels/*.tsv, as BEIR has them",
        )
    chosen = split or ("test" if "test" in files else next(iter(files)))
    if chosen not in files:
        raise NotFound(f"{folder} has no judgements called {chosen!r}", hint="it has: " + ", ".join(files))
    qrels = _qrels(files[chosen])
    texts = {row["_id"]: str(row.get("text") or "") for path in _query_files(folder) for row in _rows(path)}
    collection = Collection(folder, {id: text for id, text in texts.items() if id in qrels}, qrels)
    if not collection.judged:
        raise BadValue(
            f"no query of {folder} has a relevant document",
            hint=f"{files[chosen]} names queries and documents",
        )
    return collection


def index_collection(
    collection: Collection, store: Store, tokenizer: Embedder, size: ChunkSize, progress: Progress
) -> None:
    """Store every document of a collection that is new or changed, through the real chunker."""
    source = Source("collection", collection.folder.name, None, "notes", collection.folder.name)
    store.catalog.put_source(source)
    known = store.catalog.file_states(source.id)
    for done, entry in enumerate(collection.documents(), 1):
        path, digest = f"{source.prefix}/{entry.id}", _digest(entry)
        old = known.pop(path, None)
        if old is None or old.content_hash != digest:
            extracted = _extracted(entry)
            document = Document(entry.id, source.id, path, extracted.type, entry.title, content_hash=digest)
            store.catalog.put_document(document, chunk(extracted, tokenizer.token_starts, size))
        progress("index", done, None)
    if known:
        store.catalog.delete_documents([state.document_id for state in known.values()])


def foreign_queries(folders: Sequence[Path], limit: int | None) -> dict[str, list[str]]:
    """Return queries of other collections by name, or by path where names are the same.

    No more in all than `limit` and FOREIGN.
    """
    share = min(limit or FOREIGN, FOREIGN) // max(1, len(folders))
    shared = Counter(folder.name for folder in folders)
    return {
        folder.name if shared[folder.name] == 1 else str(folder): list(
            read_collection(folder).sampled(max(1, share)).queries.values()
        )
        for folder in folders
    }


def settings_apart(
    collection: Collection, settings: Settings, identity: Identity, recipe: Mapping[str, Any]
) -> Settings:
    """Return the settings with a store for this collection alone, cut as they say, embedded by a recipe."""
    cut = [str(settings[key]) for key in ("ingest.chunk_tokens", "ingest.chunk_overlap")]
    told = "\0".join([str(collection.folder), *cut, *map(str, astuple(identity))])
    name = f"{collection.folder.name}-{hashlib.sha256(told.encode()).hexdigest()[:12]}"
    home = Path(settings.paths.cache, "collections", name)
    apart = {**recipe, "store.url": f"sqlite:///{home}", "vectors.url": "", "org": "default"}
    values = {key: Resolved(apart.get(key, settings[key]), settings.origin(key)) for key in settings}
    return Settings(values, settings.paths)


def complete(embedding: EmbeddingReport) -> None:
    """Insist that every chunk has a vector.

    Raises:
        EmbedderDown: some have none, and what is measured would not be what is searched later.
    """
    if embedding.pending:
        raise EmbedderDown(
            f"{embedding.pending:,} chunks of the collection could not be embedded: {embedding.degraded}",
            hint="try again: what has been embedded is kept",
        )


def _extracted(entry: Entry) -> Extracted:
    text = clean(entry.text, paged=False)
    for language, begins in _CODE.items():
        if begins.match(text):
            return Extracted(text, "code", entry.title or None, language=language)
    kind: DocumentType = "markdown" if len(_HEADING.findall(text)) > 1 else "text"
    return Extracted(text, kind, entry.title or None)


def _shuffled(id: str) -> bytes:
    """Return a key that orders ids as if by chance, and always alike."""
    return hashlib.sha256(id.encode("utf-8", "replace")).digest()


def _digest(entry: Entry) -> str:
    return hashlib.sha256(f"{entry.title}\0{entry.text}".encode("utf-8", "replace")).hexdigest()


def _query_files(folder: Path) -> list[Path]:
    """Return queries.jsonl and, where other splits have more queries, the file that holds them all."""
    return [path for name in ("queries_all.jsonl", "queries.jsonl") if (path := folder / name).is_file()]


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        columns = line.split("\t")
        if number == 1 and not columns[-1].lstrip("-").isdigit():
            continue  # the header
        if len(columns) != 3 or not columns[2].lstrip("-").isdigit():
            raise BadValue(
                f"line {number} of {path} is no judgement", hint="query, document, relevance, by tabs"
            )
        found.setdefault(columns[0], {})[columns[1]] = int(columns[2])
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file, each with its `_id` as text."""
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            yield {**row, "_id": str(row["_id"])}
        except (ValueError, TypeError, KeyError) as fault:
            raise BadValue(
                f"line {number} of {path} cannot be read: {fault}", hint="one JSON object with an _id a line"
            ) from fault


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that hold anything, with their numbers."""
    try:
        with path.open(encoding="utf-8", newline="\n") as file:  # U+2028 within a text ends no line
            for number, line in enumerate(file, 1):
                if not line.isspace():
                    yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="it has to be a text file in UTF-8") from fault
