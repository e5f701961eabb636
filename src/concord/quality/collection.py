"""Test collections in BEIR layout, read and indexed as documents."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple, replace

from concord.core.config import Resolved, Settings
from concord.core.errors import BadValue, NotFound
from concord.core.protocols import Embedder, Progress
from concord.index.documents import READER_VERSION
from concord.index.links import find_mentions
from concord.store.contract import Store
from concord.text.chunk import ChunkSize, chunk
from concord.text.clean import clean, without_lone_surrogates
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
        """Yield the documents, one at a time; a document without text has its title for a text."""
        for row in _rows(self.folder / "corpus.jsonl"):
            title, text = (without_lone_surrogates(str(row.get(key) or "")) for key in ("title", "text"))
            yield Entry(row["_id"], title, text) if text.strip() else Entry(row["_id"], "", title)

    @property
    def judged(self) -> dict[str, str]:
        """The queries that have words and a relevant document."""
        return {id: text for id, text in self.queries.items() if text.strip() and self.relevant(id)}

    def relevant(self, query_id: str) -> list[str]:
        """Return the ids of the documents that are relevant to a query."""
        return [id for id, relevance in self.qrels.get(query_id, {}).items() if relevance > 0]

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
    if not (folder / "corpus.jsonl").is_file() or not _query_files(folder) or not files:
        raise NotFound(
            f"{folder} holds no test collection",
            hint="it needs corpus.jsonl, queries.jsonl and qrels/*.tsv, as BEIR has them",
        )
    chosen = split or ("test" if "test" in files else next(iter(files)))
    if chosen not in files:
        raise NotFound(f"{folder} has no judgements called {chosen!r}", hint="it has: " + ", ".join(files))
    qrels = _qrels(files[chosen])
    queries = {id: text for id, text in _query_texts(folder).items() if id in qrels}
    collection = Collection(folder, queries, qrels)
    if not collection.judged:
        raise BadValue(
            f"no query of {folder} has words and a relevant document",
            hint=f'{files[chosen]} names queries and documents by their "_id", and queries have a "text"',
        )
    return collection


def index_collection(
    collection: Collection, store: Store, tokenizer: Embedder, size: ChunkSize, progress: Progress
) -> None:
    """Store every document of a collection that is new or changed, through the real chunker."""
    source = Source("collection", collection.folder.name, None, "notes", collection.folder.name)
    store.catalog.put_source(source)
    known = store.catalog.file_states(source.id)
    for done, (entry, digest) in enumerate(_distinct(collection), 1):
        path = f"{source.prefix}/{entry.id}"
        old = known.pop(path, None)
        if old is None or old.content_hash != digest:
            extracted = _extracted(entry)
            document = Document(entry.id, source.id, path, extracted.type, entry.title, content_hash=digest)
            store.catalog.put_documents([(document, chunk(extracted, tokenizer.token_starts, size))])
        progress("index", done, None)
    if known:
        store.catalog.delete_documents([state.document_id for state in known.values()])
    find_mentions(store, progress)
    if not store.catalog.count().chunks:
        raise BadValue(
            f"no document of {collection.folder} holds any text",
            hint='each line of corpus.jsonl has an "_id", a "text" and perhaps a "title"',
        )


def _distinct(collection: Collection) -> Iterator[tuple[Entry, str]]:
    """Yield each document once, with a digest of it and of the version that cuts it."""
    met: dict[str, str] = {}
    for entry in collection.documents():
        content = f"{READER_VERSION}\0{entry.title}\0{entry.text}"
        digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()
        if entry.id not in met:
            met[entry.id] = digest
            yield entry, digest
        elif met[entry.id] != digest:
            raise BadValue(
                f"two documents of {collection.folder / 'corpus.jsonl'} have the id {entry.id!r}",
                hint="which of them is judged cannot be told: give each an _id of its own",
            )


def foreign_queries(
    folders: Sequence[str | os.PathLike[str]], limit: int | None, own: Collection | None = None
) -> dict[str, list[str]]:
    """Return queries of other collections, or of folders that hold nothing but queries, by name.

    No more in all than `limit` and FOREIGN.
    """
    share = max(1, min(limit or FOREIGN, FOREIGN) // max(1, len(folders)))
    found: dict[str, list[str]] = {}
    for folder in (Path(folder).resolve() for folder in folders):  # a name is shown, and `.` has none
        if own and folder == own.folder:
            raise BadValue(
                f"the queries of {folder} are answered by its own documents",
                hint="name another collection, whose queries these documents cannot answer",
            )
        if (folder / "corpus.jsonl").exists() or not _query_files(folder):
            texts = read_collection(folder).judged
        else:
            texts = {id: text for id, text in _query_texts(folder).items() if text.strip()}
        name = str(folder) if folder.name in found else folder.name
        found[name] = [texts[id] for id in sorted(texts, key=_shuffled)[:share]]
    return found


def near_misses(path: Path) -> list[str]:
    """Return the queries of a file: plain lines, or JSON objects with a `text`."""
    texts = []
    for number, line in _lines(path):
        try:
            texts.append(str(json.loads(line)["text"]) if line.lstrip().startswith("{") else line.strip())
        except (ValueError, KeyError) as fault:
            raise BadValue(
                f"line {number} of {path} holds no query: {fault}",
                hint='a query a line, or JSON objects with a "text"',
            ) from fault
    return texts


def settings_apart(
    collection: Collection, settings: Settings, identity: Identity, recipe: Mapping[str, Any]
) -> Settings:
    """Return the settings with a store for this collection alone, cut as they say, embedded by a recipe."""
    cut = [str(settings[key]) for key in ("ingest.chunk_tokens", "ingest.chunk_overlap")]
    key = "\0".join([str(collection.folder), *cut, *map(str, astuple(identity))])
    name = f"{collection.folder.name}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    return settings_at(Path(settings.paths.cache, "collections", name), settings, recipe)


def settings_at(home: Path, settings: Settings, recipe: Mapping[str, Any]) -> Settings:
    """Return the settings with a store of its own in a folder, embedded by a recipe."""
    apart = {**recipe, "store.url": f"sqlite:///{home}", "vectors.url": "", "org": "default"}
    values = {key: Resolved(apart.get(key, settings[key]), settings.origin(key)) for key in settings}
    return Settings(values, settings.paths)


def _extracted(entry: Entry) -> Extracted:
    text = clean(entry.text, paged=False)
    for language, begins in _CODE.items():
        if begins.match(text):
            return Extracted(text, "code", entry.title or None, language=language)
    kind: DocumentType = "markdown" if len(_HEADING.findall(text)) > 1 else "text"
    return Extracted(text, kind, entry.title or None)


def _shuffled(id: str) -> bytes:
    """Return a key that puts ids in an order that looks random and is always the same."""
    return hashlib.sha256(id.encode("utf-8", "replace")).digest()


def _query_files(folder: Path) -> list[Path]:
    """Return queries.jsonl and, where other splits have more queries, the file that holds them all."""
    return [path for name in ("queries_all.jsonl", "queries.jsonl") if (path := folder / name).is_file()]


def _query_texts(folder: Path) -> dict[str, str]:
    return {row["_id"]: str(row.get("text") or "") for path in _query_files(folder) for row in _rows(path)}


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        columns = line.split("\t")
        try:
            query, document, relevance = columns
            qrels.setdefault(query, {})[document] = int(relevance)
        except ValueError as fault:
            if number > 1 or columns[-1].strip().isdecimal():  # else it is the header
                raise BadValue(
                    f"line {number} of {path} is no judgement",
                    hint="query, document and relevance, a whole number, parted by tabs",
                ) from fault
    return qrels


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            yield {**row, "_id": without_lone_surrogates(str(row["_id"]))}
        except (ValueError, TypeError, KeyError) as fault:
            raise BadValue(
                f"line {number} of {path} cannot be read: {fault}", hint="one JSON object with an _id a line"
            ) from fault


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that hold anything, with their numbers."""
    try:
        # With or without a byte order mark; and U+2028 within a text ends no line.
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, 1):
                if not line.isspace():
                    yield number, line.rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="it has to be a text file in UTF-8") from fault
