"""What may be wrong with the tables of any engine, and how it is put right.

Tables that only this program has written fail none of the checks; a disk, a crashed copy or another program
may see to it that one does. Only data that can be made again from the rest is ever deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from concord.core.batches import batched
from concord.core.errors import Action, Hint
from concord.core.reports import FaultName, Finding
from concord.store.changes import COUNT_CHANGE
from concord.store.embeddings import EMBEDDED, delete_embeddings, is_intact, pending_of, text_hash
from concord.store.models import Model, all_models
from concord.store.sql import Database, Session, VectorTables

Repair = Callable[[Session, VectorTables], None]

_READ_AT_ONCE = 1000  # vectors

_NO_CHUNK = "FROM kb_chunk_vectors WHERE chunk NOT IN (SELECT id FROM kb_chunks)"
_HIDDEN = """
FROM kb_documents WHERE superseded_by IS NOT NULL AND superseded_by NOT IN (SELECT id FROM kb_documents)"""
_EMBEDDED = f"""
SELECT {EMBEDDED}, e.text_hash FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
JOIN kb_chunk_vectors AS v ON v.chunk = c.id JOIN kb_embeddings AS e ON e.id = v.embedding
WHERE d.type <> 'note' OR d.fields <> '{{}}'"""  # of early notes other texts were embedded
UNREAD = """
UPDATE kb_documents SET file_hash = '', content_hash = '',
    mtime_ns = CASE type WHEN 'note' THEN mtime_ns ELSE -1 END"""
_UNREAD_SOME = f"{UNREAD} WHERE key IN (SELECT document FROM kb_chunks WHERE id IN (:chunks...))"
_KNOWN = "SELECT id FROM kb_embeddings WHERE model = :model"
_USERS = "SELECT count(*) FROM kb_chunk_vectors WHERE embedding IN (:ids...)"
_CRCS = "SELECT id, crc FROM kb_embeddings WHERE model = :model ORDER BY id"


def repairable(fault: FaultName, message: str, repair: str) -> Finding:
    """Return a finding that a repair puts right: what it does follows its name."""
    return Finding(fault, message, Hint(Action.REPAIR, f"{{repair}} {repair}"), is_repairable=True)


def find_faults(session: Session, tables: VectorTables) -> Iterator[Finding]:
    """Yield what is wrong with vectors and with who supersedes whom; nothing is changed."""
    models = all_models(session)
    orphans = session.value(f"SELECT count(*) {_NO_CHUNK}")
    if orphans := orphans + sum(len(_unknown(session, tables, model)) for model in models):
        yield repairable("vectors", f"{orphans:,} vectors that belong to no text or no chunk", "deletes them")
    lost = [id for model in models for id in _lost(session, tables, model)]
    if users := session.value(_USERS, {"ids": lost}):
        yield repairable("lost-vectors", f"{users:,} chunks that have lost their vector", "embeds them again")
    if count := sum(len(_damaged(session, tables, model)) for model in models):
        message = f"{count:,} vectors are not as they were written"
        yield repairable("damaged-vectors", message, "makes them again")
    if count := len(_altered(session)):
        message = f"{count:,} passages are not as they were written"
        yield repairable("texts", message, "reads their files again")
    if hidden := session.value(f"SELECT count(*) {_HIDDEN}"):
        message = f"{hidden:,} documents superseded by one that is gone"
        yield repairable("superseded", message, "brings them back")


def put_right(
    findings: Sequence[Finding], database: Database, tables: VectorTables, own: Mapping[FaultName, Repair]
) -> None:
    """Repair everything that was found, in one transaction: what an engine has of its own first."""
    wanted = {finding.fault for finding in findings if finding.is_repairable}
    repairs = {**own, **_REPAIRS, **own}.items()
    chosen = dict.fromkeys(repair for fault, repair in repairs if fault in wanted)  # each once
    if chosen:
        with database.transaction() as session:
            for repair in chosen:
                repair(session, tables)
            session.run(COUNT_CHANGE)


def _unknown(session: Session, tables: VectorTables, model: Model) -> list[int]:
    rows = session.rows(f"{tables.stored(session, model)} EXCEPT {_KNOWN}", {"model": model.key})
    return [id for (id,) in rows]


def _lost(session: Session, tables: VectorTables, model: Model) -> list[int]:
    rows = session.rows(f"{_KNOWN} EXCEPT {tables.stored(session, model)}", {"model": model.key})
    return [id for (id,) in rows]


def _damaged(session: Session, tables: VectorTables, model: Model) -> list[int]:
    """Return the vectors of a model that are not as they were written, or cannot be read."""
    damaged: list[int] = []
    stored = {id for (id,) in session.rows(tables.stored(session, model))}
    known = (row for row in session.rows(_CRCS, {"model": model.key}) if row[0] in stored)
    for rows in batched(known, _READ_AT_ONCE):
        vectors = tables.read(session, model, [id for id, _ in rows])
        damaged += [id for id, crc in rows if not is_intact(vectors.get(id), crc)]
    return damaged


def mend_vectors(session: Session, tables: VectorTables) -> None:
    """Delete vectors that nothing uses, and let the chunks wait for others that use lost or damaged ones."""
    session.run(f"DELETE {_NO_CHUNK}")
    for model in all_models(session):
        tables.remove(session, model, _unknown(session, tables, model))
        ids = [*_lost(session, tables, model), *_damaged(session, tables, model)]
        session.run("DELETE FROM kb_chunk_vectors WHERE embedding IN (:ids...)", {"ids": ids})
        delete_embeddings(session, tables, model, ids)


def _altered(session: Session) -> list[int]:
    """Return the chunks whose text is not the one that was embedded.

    Where that is so of most, another version has embedded other texts of them, and it tells nothing.
    """
    compared, altered = 0, []
    for id, *text, key in session.iterate(_EMBEDDED):
        compared += 1
        if text_hash(pending_of((id, *text))) != bytes(key):
            altered.append(id)
    return altered if len(altered) * 2 < compared else []


# In this order: what comes later is reckoned from what comes before. Files of altered chunks are read by the
# next sync; notes are made anew from their fields.
_REPAIRS: Mapping[FaultName, Repair] = {
    "vectors": mend_vectors,
    "lost-vectors": mend_vectors,
    "damaged-vectors": mend_vectors,
    "texts": lambda session, tables: session.run(_UNREAD_SOME, {"chunks": _altered(session)}),
    "superseded": lambda session, tables: session.run(
        f"UPDATE kb_documents SET superseded_by = NULL WHERE key IN (SELECT key {_HIDDEN})"
    ),
}
