"""Repairs of what `checks` finds. Only data that can be made again from the rest is ever deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import apsw

from concord.backends.sqlite import checks, schema
from concord.backends.sqlite.connections import Connection, Writer
from concord.backends.sqlite.vec_table import all_keys, forget_in, forget_vectors, vec_exists
from concord.core.reports import FaultName, Finding

_REBUILD_WORDS = "INSERT INTO kb_chunks_fts (kb_chunks_fts) VALUES ('rebuild')"
_COUNT_ANEW = "UPDATE kb_meta SET value = (SELECT count(*) FROM kb_chunks) WHERE key = 'chunks'"
_NEXT_GENERATION = "UPDATE kb_meta SET value = value + 1 WHERE key = 'generation'"


def put_right(findings: Sequence[Finding], writer: Writer) -> None:
    """Repair everything that was found, in one transaction."""
    wanted = {finding.fault for finding in findings if finding.is_repairable} & _REPAIRS.keys()
    with writer.transaction() as connection:
        for fault, repair in _REPAIRS.items():
            if fault in wanted:
                repair(connection)
        if wanted:
            connection.execute(_NEXT_GENERATION)


def _rebuild_indexes(connection: Connection) -> None:
    """Build all indexes anew, unless two rows have a value that must be unique: then nothing is changed."""
    with suppress(apsw.ConstraintError):  # it is found again, with what else can be done
        connection.execute("REINDEX")


def _delete_orphan_chunks(connection: Connection) -> None:
    """Delete chunks that nothing can show, past the trigger: it trusts an index that may be wrong too."""
    orphans = [chunk_id for (chunk_id,) in connection.execute(f"SELECT id {checks.NO_DOCUMENT}")]
    forget_vectors(connection, orphans)
    connection.execute("DROP TRIGGER IF EXISTS kb_chunks_deleted")
    connection.executemany("DELETE FROM kb_chunks WHERE id = ?", ((chunk_id,) for chunk_id in orphans))
    connection.execute("DELETE FROM kb_pending WHERE chunk NOT IN (SELECT id FROM kb_chunks)")
    connection.execute(schema.DELETED_TRIGGER)
    _rebuild_words(connection)
    _count_anew(connection)


def _rebuild_words(connection: Connection) -> None:
    connection.execute(_REBUILD_WORDS)


def _count_anew(connection: Connection) -> None:
    connection.execute(_COUNT_ANEW)


def _delete_orphan_vectors(connection: Connection) -> None:
    connection.load_vec0()
    for key in all_keys(connection):
        if vec_exists(connection, key):
            orphans = connection.execute(f"SELECT rowid {checks.no_chunk(key)}")
            forget_in(connection, key, [rowid for (rowid,) in orphans])


def _await_lost_vectors(connection: Connection) -> None:
    connection.load_vec0()
    for key in all_keys(connection):
        connection.execute(f"INSERT INTO kb_pending SELECT {key:d}, id {checks.no_vector(connection, key)}")


def _unmark_pending(connection: Connection) -> None:
    connection.load_vec0()
    for key in all_keys(connection):
        connection.execute(f"DELETE {checks.stale_pending(connection, key)}")


def _bring_back(connection: Connection) -> None:
    hidden = f"SELECT key {checks.HIDDEN}"
    connection.execute(f"UPDATE kb_documents SET superseded_by = NULL WHERE key IN ({hidden})")


# In this order: what comes later is reckoned from what comes before.
_REPAIRS: Mapping[FaultName, Callable[[Connection], None]] = {
    "integrity": _rebuild_indexes,
    "chunks": _delete_orphan_chunks,
    "words": _rebuild_words,
    "counter": _count_anew,
    "vectors": _delete_orphan_vectors,
    "lost-vectors": _await_lost_vectors,
    "pending": _unmark_pending,
    "superseded": _bring_back,
}
