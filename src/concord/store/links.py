"""What documents are called and what chunks point to, kept in step with them; written once for every engine.

A document that appears, disappears or is called otherwise is met by the links that name it in the same
transaction. Mentions of its title in other documents are looked for afterwards, by `index/links.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any, NamedTuple

from concord.core.batches import batched
from concord.store.rows import condition, details_of
from concord.store.sql import Database, Session
from concord.text.links import Named, fitting, is_page, meant, names_of
from concord.types import ChunkId, Document, Filter, Link, LinkKind

_NAMED_AT_ONCE = 1000  # documents
_NAMED = "SELECT document, name, title FROM kb_titles WHERE document IN (:keys...)"
_FORGET_NAMES = "DELETE FROM kb_titles WHERE document IN (:keys...)"
_PUT_NAME = """
INSERT INTO kb_titles (name, document, opening, title) VALUES (:name, :document, :opening, :title)"""
_NAMES_OF = "SELECT DISTINCT name FROM kb_titles WHERE document IN (:keys...)"
_FORGET_LINKS = """
DELETE FROM kb_links WHERE chunk IN (SELECT id FROM kb_chunks WHERE document IN (:keys...))"""
_STORED = """
SELECT chunk, kind, target, words FROM kb_links
WHERE kind <> 'mention' AND chunk IN (SELECT id FROM kb_chunks WHERE document = :key)"""
_PUT_LINK = """
INSERT INTO kb_links (chunk, kind, name, target, words, document)
VALUES (:chunk, :kind, :name, :target, :words, :document)
ON CONFLICT (chunk, kind, name, target) DO NOTHING"""
_AWAIT = """
INSERT INTO kb_unlinked (document, is_new) VALUES (:key, :is_new)
ON CONFLICT (document) DO UPDATE SET
    is_new = CASE WHEN kb_unlinked.is_new = 1 THEN 1 ELSE excluded.is_new END"""
_CALLED = """
SELECT t.name, t.document, d.path FROM kb_titles AS t JOIN kb_documents AS d ON d.key = t.document
WHERE t.name IN (:names...)"""
_TO_NAMES = """
SELECT l.chunk, l.kind, l.name, l.target, l.document, d.path
FROM kb_links AS l JOIN kb_chunks AS c ON c.id = l.chunk JOIN kb_documents AS d ON d.key = c.document
WHERE l.name IN (:names...)"""
_POINT = """
UPDATE kb_links SET document = :document
WHERE chunk = :chunk AND kind = :kind AND name = :name AND target = :target"""
_FORGET_LOST = "DELETE FROM kb_links WHERE kind = 'mention' AND document IS NULL AND name IN (:names...)"
_PATHS = """
SELECT c.id, d.path FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
WHERE c.id IN (:chunks...)"""
_WAITING = """
SELECT d.id FROM kb_unlinked AS u JOIN kb_documents AS d ON d.key = u.document
ORDER BY u.document LIMIT :most"""
_DONE = "DELETE FROM kb_unlinked WHERE document IN (SELECT key FROM kb_documents WHERE id IN (:ids...))"
_AWAIT_ALL = """
INSERT INTO kb_unlinked (document, is_new)
SELECT key, 0 FROM kb_documents WHERE key NOT IN (SELECT document FROM kb_unlinked)"""
_TITLES = "SELECT DISTINCT name, title FROM kb_titles WHERE opening <> '' AND common = 0"
_NEW_TITLES = f"{_TITLES} AND document IN (SELECT document FROM kb_unlinked WHERE is_new = 1)"
_MENTIONED = """
SELECT name, count(*) FROM kb_links WHERE kind = 'mention' AND name IN (:names...) GROUP BY name"""
_DROP_COMMON = "DELETE FROM kb_links WHERE kind = 'mention' AND name = :name"
_MARK_COMMON = "UPDATE kb_titles SET common = :count WHERE name = :name AND opening <> ''"
_NO_LONGER_COMMON = "SELECT DISTINCT name, title FROM kb_titles WHERE common > 0 AND 2 * common <= :limit"

_KEYS = "SELECT id, key FROM kb_documents WHERE id IN (:ids...)"
_EVERY = "SELECT chunk, kind, target, words FROM kb_links ORDER BY chunk, kind, name, target"
_COMMON = "SELECT DISTINCT name, common FROM kb_titles WHERE common > 0 ORDER BY name"
_UNLINKED = """
SELECT d.id, u.is_new FROM kb_unlinked AS u JOIN kb_documents AS d ON d.key = u.document ORDER BY d.key"""

_MOST_COUNTED = 200  # links to one document: how rare it is named is known well enough
_POINTING = f"""
SELECT l.chunk, l.kind, l.target, l.words, d.id,
    (SELECT id FROM kb_chunks WHERE document = d.key AND position = 0),
    (SELECT count(*) FROM (SELECT 1 FROM kb_links AS o WHERE o.document = d.key LIMIT {_MOST_COUNTED}) AS few)
FROM kb_links AS l JOIN kb_documents AS d ON d.key = l.document JOIN kb_chunks AS c ON c.id = l.chunk
WHERE l.chunk IN (:chunks...) AND c.document <> d.key AND {{condition}}
ORDER BY l.chunk, l.kind, l.name, l.target"""
_ROWS = """
SELECT l.chunk, l.kind, l.target, l.words, f.id, d.id
FROM kb_links AS l JOIN kb_chunks AS c ON c.id = l.chunk JOIN kb_documents AS f ON f.key = c.document
LEFT JOIN kb_documents AS d ON d.key = l.document
WHERE {} ORDER BY f.path, c.position, l.kind, l.name, l.target"""
_OUT = _ROWS.format("f.id = :id")
_BACK = _ROWS.format("l.document = (SELECT key FROM kb_documents WHERE id = :id) AND f.id <> :id")
_UNMET = _ROWS.format("l.document IS NULL AND l.kind <> 'import'")
_ORPHANS = """
SELECT d.id FROM kb_documents AS d WHERE d.source = (SELECT key FROM kb_sources WHERE id = :source)
AND NOT EXISTS (SELECT 1 FROM kb_links AS l JOIN kb_chunks AS c ON c.id = l.chunk
    WHERE l.document = d.key AND c.document <> d.key)"""


class Pointing(NamedTuple):
    """A chunk that points to another document, and what a search weighs of that."""

    chunk_id: ChunkId
    kind: LinkKind
    target: str
    words: str
    document_id: str  # that it points to
    first: ChunkId  # of that document
    pointed_to: int  # how many links lead to that document; many are not counted further


class LinkRow(NamedTuple):
    """A link as it is stored."""

    chunk_id: ChunkId
    link: Link
    origin: str  # id of the document that holds it
    document_id: str | None  # id of the document that it leads to
    is_broken: bool  # whether it surely names a document that is not there


class Links:
    """What chunks point to. What documents are called and link to is stored with them, by `put_documents`.

    Mentions of titles are not: whoever stores documents sees to it that they are looked for. The generation
    does not grow.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def pointing(self, chunk_ids: Sequence[ChunkId], filter: Filter) -> list[Pointing]:
        """Return what chunks point to among the documents that a filter lets through."""
        sql, values = condition(filter, self._database.dialect)
        rows = self._database.rows(_POINTING.format(condition=sql), {**values, "chunks": list(chunk_ids)})
        return list(starmap(Pointing, rows))

    def outgoing(self, document_id: str) -> list[LinkRow]:
        """Return the links of a document in order."""
        return self._rows(_OUT, {"id": document_id})

    def incoming(self, document_id: str) -> list[LinkRow]:
        """Return the links to a document by the paths of theirs."""
        return self._rows(_BACK, {"id": document_id})

    def broken(self) -> list[LinkRow]:
        """Return the links that lead to no document and should."""
        return [row for row in self._rows(_UNMET, {}) if row.is_broken]

    def orphans(self, source_id: str) -> set[str]:
        """Return the documents of a source that no other links to."""
        return {id for (id,) in self._database.rows(_ORPHANS, {"source": source_id})}

    def waiting(self, most: int) -> list[str]:
        """Return documents whose mentions of others are to be looked for."""
        return [id for (id,) in self._database.rows(_WAITING, {"most": most})]

    def await_all(self) -> None:
        """Let all documents wait."""
        with self._database.transaction() as session:
            session.run(_AWAIT_ALL)

    def done(self, document_ids: Sequence[str]) -> None:
        """Let documents wait no more."""
        with self._database.transaction() as session:
            session.run(_DONE, {"ids": list(document_ids)})

    def titles(self, *, new: bool = False) -> list[Named]:
        """Return all titles, or those new to documents that wait."""
        return list(starmap(Named, self._database.rows(_NEW_TITLES if new else _TITLES)))

    def titles_opening(self, openings: Sequence[str]) -> list[Named]:
        """Return the titles that begin with two such words, or one."""
        rows = self._database.rows(f"{_TITLES} AND opening IN (:openings...)", {"openings": list(openings)})
        return list(starmap(Named, rows))

    def put_mentions(self, found: Mapping[ChunkId, Iterable[str]]) -> dict[str, int]:
        """Store which titles chunks mention; return in how many chunks each of these titles stands now."""
        with self._database.transaction() as session:
            mentions = [(chunk, Link("mention", name)) for chunk, held in found.items() for name in held]
            put_stored(session, mentions)
            names = {"names": list({link.target for _, link in mentions})}
            session.run(_FORGET_LOST, names)
            return dict(session.rows(_MENTIONED, names))

    def drop_common(self, counts: Mapping[str, int]) -> None:
        """Delete the mentions of titles that stand in too many chunks, and look for them no more."""
        with self._database.transaction() as session:
            session.run_many(_DROP_COMMON, ({"name": name} for name in counts))
            session.run_many(_MARK_COMMON, ({"name": name, "count": n} for name, n in counts.items()))

    def revived(self, limit: int) -> list[Named]:
        """Return titles that stood in half of `limit` chunks or less: they are looked for again."""
        rows = self._database.rows(_NO_LONGER_COMMON, {"limit": limit})
        if rows:
            with self._database.transaction() as session:
                session.run_many(_MARK_COMMON, ({"name": name, "count": 0} for name, _ in rows))
        return list(starmap(Named, rows))

    def _rows(self, statement: str, values: Mapping[str, Any]) -> list[LinkRow]:
        rows = []
        for chunk, kind, target, words, origin, document in self._database.rows(statement, values):
            link = Link(kind, target, words)
            rows.append(LinkRow(chunk, link, origin, document, not document and is_page(link)))
        return rows


def put_links(
    session: Session, given: Sequence[tuple[int, Document, Mapping[ChunkId, Sequence[Link]]]]
) -> None:
    """Store what documents are called and what their chunks link to; each document comes with its key."""
    changed = _put_names(session, {key: document for key, document, _ in given})
    keys = {"keys": [key for key, _, _ in given]}
    session.run(_FORGET_LINKS, keys)
    session.run_many(_AWAIT, ({"key": key, "is_new": int(key in changed)} for key in keys["keys"]))
    relink(session, {name for names in changed.values() for name in names})
    placed = []
    for _, document, links in given:
        placed += [(chunk, link, document.path) for chunk, held in links.items() for link in held]
    _insert(session, placed)


def fill_links(
    session: Session,
    links: Sequence[tuple[ChunkId, Link]],
    common: Mapping[str, int],
    waiting: Mapping[str, int],
) -> None:
    """Write links into a store that holds none, and name its documents."""
    name_all(session)
    put_stored(session, links)
    session.run_many(_MARK_COMMON, ({"name": name, "count": n} for name, n in common.items()))
    keys = dict(session.rows(_KEYS, {"ids": list(waiting)}))
    session.run_many(_AWAIT, ({"key": keys[id], "is_new": new} for id, new in waiting.items() if id in keys))


def links_in(session: Session) -> tuple[list[tuple[ChunkId, Link]], dict[str, int], dict[str, int]]:
    """Return what `fill_links` is given: links, common titles, and documents whose mentions are awaited."""
    links = [(chunk, Link(*link)) for chunk, *link in session.rows(_EVERY)]
    return links, dict(session.rows(_COMMON)), dict(session.rows(_UNLINKED))


def put_stored(session: Session, links: Sequence[tuple[ChunkId, Link]]) -> None:
    """Store links of chunks that are there; what another process has deleted meanwhile is skipped."""
    paths = dict(session.rows(_PATHS, {"chunks": list({chunk for chunk, _ in links})}))
    _insert(session, ((chunk, link, paths[chunk]) for chunk, link in links if chunk in paths))


def _insert(session: Session, links: Iterable[tuple[ChunkId, Link, str]]) -> None:
    """Store links, each with its chunk and the path of its document."""
    placed = [(chunk, link, found, path) for chunk, link, path in links if (found := meant(link, path))]
    called = _called(session, {found.name for _, _, found, _ in placed})
    rows = (
        {
            "chunk": chunk,
            "kind": link.kind,
            "name": found.name,
            "target": link.target,
            "words": link.words,
            "document": fitting(found, called.get(found.name, ()), path, link.kind),
        }
        for chunk, link, found, path in placed
        if link.kind != "mention" or path not in (own for _, own in called.get(found.name, ()))
    )
    session.run_many(_PUT_LINK, rows)


def rename(session: Session, key: int, document: Document) -> None:
    """Let a document that is called otherwise be found by its names, and its links lead from where it is."""
    links: defaultdict[ChunkId, list[Link]] = defaultdict(list)
    for chunk, kind, target, words in session.rows(_STORED, {"key": key}):
        links[chunk].append(Link(kind, target, words))
    put_links(session, [(key, document, links)])


def _put_names(session: Session, documents: Mapping[int, Document]) -> dict[int, set[str]]:
    """Store what documents are called; return by key the names that one has gained or lost, if any."""
    before: defaultdict[int, set[Named]] = defaultdict(set)
    for key, name, title in session.rows(_NAMED, {"keys": list(documents)}):
        before[key].add(Named(name, title))
    now = {
        key: set(names_of(document.path, document.title, document.details, document.fields))
        for key, document in documents.items()
    }
    changed = {key: names for key, names in now.items() if names != before[key]}
    if changed:
        session.run(_FORGET_NAMES, {"keys": list(changed)})
        rows = (
            {"name": called.name, "document": key, "opening": called.opening, "title": called.title}
            for key, names in changed.items()
            for called in sorted(names)
        )
        session.run_many(_PUT_NAME, rows)
    return {key: {called.name for called in names ^ before[key]} for key, names in changed.items()}


def names_of_documents(session: Session, keys: Sequence[int]) -> set[str]:
    """Return what documents are called, before they are deleted."""
    return {name for (name,) in session.rows(_NAMES_OF, {"keys": list(keys)})}


def relink(session: Session, names: Iterable[str]) -> None:
    """Let the links that name documents so point to whatever has the name now."""
    wanted = {"names": list(names)}
    if not wanted["names"]:
        return
    called = _called(session, wanted["names"])
    moved = []
    for chunk, kind, name, target, document, path in session.rows(_TO_NAMES, wanted):
        found = meant(Link(kind, target), path)
        now = fitting(found, called.get(name, ()), path, kind) if found else None
        if now != document:
            moved.append({"chunk": chunk, "kind": kind, "name": name, "target": target, "document": now})
    session.run_many(_POINT, moved)
    session.run(_FORGET_LOST, wanted)


def name_all(session: Session) -> None:
    """Store what the documents of an earlier schema are called; their links are looked for as they change."""
    rows = session.rows("SELECT key, id, path, title, type, details, fields FROM kb_documents")
    for group in batched(rows, _NAMED_AT_ONCE):
        documents = {
            key: Document(id, "", path, type, title, details=details_of(details), fields=details_of(fields))
            for key, id, path, title, type, details, fields in group
        }
        _put_names(session, documents)


def _called(session: Session, names: Iterable[str]) -> Mapping[str, list[tuple[int, str]]]:
    """Return the documents that have each of some names: key and path."""
    called: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for name, document, path in session.rows(_CALLED, {"names": list(names)}):
        called[name].append((document, path))
    return called
