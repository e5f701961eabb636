"""Test collections in BEIR layout, read and indexed as documents."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from concord.errors import BadValue, NotFound
from concord.protocols import Embedder, Progress, Store
from concord.text.chunk import ChunkSize, chunk
from concord.text.clean import clean
from concord.types import Document, DocumentType, Extracted, Source

Qrels = Mapping[str, Mapping[str, int]]  # query → document → how relevant

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


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, queries and which document answers which query."""

    folder: Path
    queries: Mapping[str, str]
    qrels: Qrels

    def documents(self) -> Iterator[Entry]:
        """Yield the documents, one at a time."""
        for row in _rows(self.folder / "corpus.jsonl"):
            yield Entry(str(row["_id"]), str(row.get("title") or ""), str(row.get("text") or ""))

    @property
    def judged(self) -> dict[str, str]:
        """The queries that have a relevant document."""
        return {
            id: text
            for id, text in self.queries.items()
            if any(relevance > 0 for relevance in self.qrels.get(id, {}).values())
        }


def read_collection(folder: Path, split: str | None = None) -> Collection:
    """Read a collection's queries and judgements: of one split, else of `test`, else of the only one.

    Raises:
        NotFound: the folder or one of its files is missing.
        BadValue: a file is not of this layout.
    """
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
    queries = {str(row["_id"]): str(row["text"]) for path in _query_files(folder) for row in _rows(path)}
    return Collection(folder, {id: text for id, text in queries.items() if id in qrels}, qrels)


def index_collection(
    collection: Collection, store: Store, measure: Embedder, size: ChunkSize, progress: Progress
) -> None:
    """Store every document of a collection that is new or changed, through the real chunker."""
    source = Source("collection", collection.folder.name, None, "notes", collection.folder.name)
    store.catalog.put_source(source)
    known = store.catalog.file_states(source.id)
    for done, entry in enumerate(collection.documents(), 1):
        extracted = _extracted(entry)
        document = _document(entry, extracted.type, source)
        old = known.get(document.path)
        if old is None or old.content_hash != document.content_hash:
            store.catalog.put_document(document, chunk(extracted, measure.token_starts, size))
        progress("index", done, None)


def _extracted(entry: Entry) -> Extracted:
    text = clean(entry.text, paged=False)
    for language, begins in _CODE.items():
        if begins.match(text):
            return Extracted(text, "code", entry.title or None, language=language)
    kind: DocumentType = "markdown" if len(_HEADING.findall(text)) > 1 else "text"
    return Extracted(text, kind, entry.title or None)


def _document(entry: Entry, kind: DocumentType, source: Source) -> Document:
    digest = hashlib.sha256(f"{entry.title}\0{entry.text}".encode("utf-8", "replace")).hexdigest()
    return Document(
        id=entry.id,
        source_id=source.id,
        path=f"{source.prefix}/{entry.id}",
        type=kind,
        title=entry.title,
        content_hash=digest,
    )


def _query_files(folder: Path) -> list[Path]:
    """Return queries.jsonl and, where other splits have more queries, the file that holds them all."""
    return [path for name in ("queries_all.jsonl", "queries.jsonl") if (path := folder / name).is_file()]


def _qrels(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        for number, row in enumerate(rows, 1):
            if number == 1 and not row[-1].lstrip("-").isdigit():
                continue  # the header
            if len(row) != 3:
                raise BadValue(
                    f"line {number} of {path} has {len(row)} columns", hint="query, document, relevance"
                )
            found.setdefault(row[0], {})[row[1]] = int(row[2])
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as fault:
                    raise BadValue(
                        f"line {number} of {path} is not JSON: {fault}", hint="one object a line"
                    ) from fault
