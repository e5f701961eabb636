"""Rows and nouns, each way, and a filter in SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import DecodeError, json
from msgspec.structs import asdict, astuple

from concord.core.errors import Action, CorruptStore, Hint, shown
from concord.store.sql import Dialect, Row
from concord.text.globs import is_prefix, literal_prefix
from concord.text.names import names_of
from concord.text.terms import index_terms
from concord.types import Chunk, Document, Filter, Identity, Piece, Source

LAST_CHARACTER = "\U0010ffff"  # whatever begins with `text` sorts between `text` and `text + LAST_CHARACTER`


def source_values(source: Source) -> dict[str, Any]:
    """Return the columns of a source."""
    lists = {"patterns": stored_list(source.patterns), "tags": stored_list(source.tags)}
    return {**asdict(source), **lists}


def document_values(document: Document) -> dict[str, Any]:
    """Return the columns of a document; its source by id. Its tags are rows of another table."""
    details, fields = details_column(document.details), details_column(document.fields)
    return {**asdict(document), "details": details, "fields": fields}


def details_column(details: Mapping[str, Any]) -> str:
    """Return details as their column keeps them; front matter may hold dates, and NaN or infinity."""
    return _standard_json().dumps(dict(details), default=str) if details else "{}"


def details_of(stored: str) -> Mapping[str, Any]:
    """Return details from their column."""
    try:
        found: dict[str, Any] = _standard_json().loads(stored) if stored != "{}" else {}
    except (ValueError, TypeError) as fault:
        raise _unreadable(stored) from fault
    return found


def stored_list(values: Collection[Any]) -> str:
    """Return a list as its column keeps it.

    Raises:
        UnicodeEncodeError: there is half a character in it, and what comes back would be no text.
    """
    return json.encode(values).decode()


def list_column(values: Collection[Any]) -> str:
    """Return a list that looks like its column, and as `json_each` takes it."""
    try:
        return stored_list(values)
    except UnicodeEncodeError:  # half a character, which no stored text holds: it is to match nothing
        return str(_standard_json().dumps(list(values)))


def list_of(stored: str) -> tuple[Any, ...]:
    """Return a list from its column."""
    try:
        return tuple(json.decode(stored or "")) if stored != "[]" else ()
    except DecodeError as fault:
        raise _unreadable(stored) from fault


def _unreadable(stored: str | None) -> CorruptStore:
    """Say that a column does not hold what this program writes there."""
    said = f"the store is damaged: {shown(stored)} is not what was written"
    return CorruptStore(said, hint=Hint(Action.DOCTOR, "{doctor} looks further into it"))


def _standard_json() -> Any:
    import json  # late: 2 ms, which a search of documents without details need not pay

    return json


class Columns(NamedTuple):
    """The indexed text of one chunk, in the order of the index's columns."""

    title: str
    content: str
    tags: str
    terms: str


# BM25 multiplies how often a term occurs in a column by these. A starting point until the judged sets say
# better: a title is a summary that somebody wrote; `terms` repeats what another column holds already.
WEIGHTS = (2.0, 1.0, 1.0, 0.5)
LEAST_IDF = 1e-6  # as of BM25: what most chunks have still counts


def columns_of(title: str, tags: Sequence[str], heading: Iterable[str], text: str) -> Columns:
    """Return what is indexed of a chunk: its document's title and tags, its headings and its text."""
    # The first heading of a Markdown file is its title as a rule; twice in the column it would count twice.
    titles = "\n".join(dict.fromkeys((title, *heading)))
    labels = " ".join(tags)
    return Columns(titles, text, labels, index_terms(f"{titles}\n{text}\n{labels}"))


def chunk_names(document: Document, heading: Sequence[str], text: str) -> list[str]:
    """Return the name tokens of a chunk of a document."""
    return names_of(document.type, document.path, document.title, heading, text)


def owner_and_name(token: str) -> tuple[str, str]:
    """Return the two parts of a token that is asked for; the owner is empty where there is none."""
    owner, _, name = token.rpartition(" ")
    return owner, name


NANOSECONDS = 1e9  # a float, so that a date beyond all files is still a number for SQL

TAGS = "(SELECT json_list(tag, position) FROM kb_document_tags WHERE document = d.key)"
SOURCE_COLUMNS = (
    "s.id, s.name, s.path, s.kind, s.prefix, s.patterns, s.tags, s.trust, s.created_at, s.synced_at, s.about"
)
DOCUMENT_COLUMNS = f"""d.id, (SELECT id FROM kb_sources WHERE key = d.source), d.path, d.type, d.title,
{TAGS}, d.details, d.file_hash, d.content_hash, d.size, d.mtime_ns, d.superseded_by, d.indexed_at, d.fields"""
CHUNK_COLUMNS = """c.id, d.id, c.position, c.content, c.start_offset, c.end_offset, c.start_line, c.end_line,
c.page, c.heading, c.last_page, c.start_column, c.end_column"""

OF_SOURCE = "d.source = (SELECT key FROM kb_sources WHERE id = :source)"
HAS_SUPERSEDED = "SELECT EXISTS (SELECT 1 FROM kb_documents WHERE superseded_by IS NOT NULL)"
_TAGGED = """d.key IN (
    SELECT document FROM kb_document_tags WHERE tag IN (:tags...)
    GROUP BY document HAVING count(*) = :tag_count)"""
_IN_FOLDER = "path >= :path_from AND path < :path_to"
# A glob is compared once for each document, not once for each chunk: the function may be Python.
_AT_PATH = "d.key IN (SELECT key FROM kb_documents WHERE {})"


def source_of(row: Row) -> Source:
    """Return the source in a row of SOURCE_COLUMNS."""
    values = list(row)
    values[5:7] = list_of(row[5]), list_of(row[6])
    return Source(*values)


def document_of(row: Row) -> Document:
    """Return the document in a row of DOCUMENT_COLUMNS."""
    values = list(row)
    values[5:7] = list_of(row[5]), details_of(row[6])
    values[-1] = details_of(row[-1])
    return Document(*values)


def chunk_of(row: Row) -> Chunk:
    """Return the chunk in a row of CHUNK_COLUMNS."""
    values = [*row[:9], list_of(row[9]), *row[10:]]
    return Chunk(*values)


def chunk_values(document: Document, position: int, piece: Piece | Chunk) -> dict[str, Any]:
    """Return the columns of a chunk, with those that are indexed for words."""
    names = ("start_line", "end_line", "page", "last_page", "start_column", "end_column")
    return {
        "position": position,
        "start_offset": piece.start,
        "end_offset": piece.end,
        **{name: getattr(piece, name) for name in names},
        "heading": stored_list(piece.heading),
        **columns_of(document.title, document.tags, piece.heading, piece.text)._asdict(),
    }


def identity_column(identity: Identity) -> str:
    """Return an identity as it is stored: JSON without spaces."""
    return list_column(astuple(identity))


def identity_of(column: str) -> Identity:
    """Return an identity as it was stored."""
    return Identity(*list_of(column))


def condition(filter: Filter, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """Return what a document must satisfy: SQL about a document `d`, and the values in it."""
    parts, values = chosen(
        {
            "d.type = :type": ("type", filter.type),
            OF_SOURCE: ("source", filter.source_id),
            "d.mtime_ns >= :since": ("since", filter.since and filter.since * NANOSECONDS),
            "d.mtime_ns <= :until": ("until", filter.until and filter.until * NANOSECONDS),
        }
    )
    if not filter.include_superseded:
        parts.insert(0, "d.superseded_by IS NULL")
    if filter.tags:
        wanted = sorted(set(filter.tags))
        parts.append(_TAGGED)
        values.update(tags=wanted, tag_count=len(wanted))
    if filter.path is not None:
        start = literal_prefix(filter.path)
        globbed = "" if is_prefix(filter.path) else f" AND {dialect.glob}"
        parts.append(_AT_PATH.format(_IN_FOLDER + globbed))
        values.update(path_from=start, path_to=start + LAST_CHARACTER)
        if globbed:
            values["glob"] = dialect.glob_value(filter.path)
    return " AND ".join(parts) or "TRUE", values


def chosen(given: Mapping[str, tuple[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """Return those conditions whose value is given, and the values by name."""
    chosen = {sql: item for sql, item in given.items() if item[1] is not None}
    return [*chosen], dict(chosen.values())
