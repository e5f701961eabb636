"""Repairs of what `checks` finds, and what is done so that searches stay fast and the file small.

Only data that can be made again from the rest is ever deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import apsw

from concord.core.protocols import Progress
from concord.core.reports import FaultName, Finding
from concord.store.embeddings import delete_embeddings
from concord.store.models import Model, all_models
from concord.store.sqlite import checks
from concord.store.sqlite.connections import Connection, Writer
from concord.store.sqlite.dialect import DELETED_TRIGGER
from concord.store.sqlite.vectors import SQLiteVectorTables

# Documents stored one by one leave FTS5 with several segments, and every look-up asks each of them. Merged
# into one, counting ten words takes 0.09 ms instead of 0.32, and a search half its time (10,000 chunks).
_MIN_CHANGES = 16
_MIN_SHARE = 0.1  # of all documents: merging rewrites the whole index, so little changes do not call for it
_MERGE_PAGES = 1000  # a transaction; others may write in between

_STEPS = 1_000_000  # of SQLite between two signs of life, a fraction of a second

_MERGE = "INSERT INTO kb_chunks_fts (kb_chunks_fts, rank) VALUES ('merge', ?)"
_REBUILD_WORDS = "INSERT INTO kb_chunks_fts (kb_chunks_fts) VALUES ('rebuild')"
_COUNT_ANEW = "UPDATE kb_meta SET value = (SELECT count(*) FROM kb_chunks) WHERE key = 'chunks'"
_NEXT_GENERATION = "UPDATE kb_meta SET value = value + 1 WHERE key = 'generation'"


def put_right(findings: Sequence[Finding], writer: Writer) -> None:
    """Repair everything that was found, in one transaction."""
    wanted = {finding.fault for finding in findings if finding.is_repairable} & _REPAIRS.keys()
    with writer.transaction() as connection:
        connection.load_vec0()
        for fault, repair in _REPAIRS.items():
            if fault in wanted:
                repair(connection)
        if wanted:
            connection.run(_NEXT_GENERATION)


def is_worth_merging(changes: int, documents: int) -> bool:
    """Whether so many changed documents are reason to merge the full-text index."""
    return changes >= max(_MIN_CHANGES, documents * _MIN_SHARE)


def merge_words(writer: Writer) -> None:
    """Merge the full-text index into one segment, step by step."""
    pages = -_MERGE_PAGES  # a negative number starts a merge of everything, a positive one goes on with it
    is_done = False
    while not is_done:
        with writer.transaction() as connection:
            before = connection.total_changes()
            connection.execute(_MERGE, (pages,))
            is_done = connection.total_changes() - before < 2  # so FTS5 says that nothing was left to do
        pages = _MERGE_PAGES


def shrink(writer: Writer, progress: Progress) -> None:
    """Write the file anew without its free pages; others read meanwhile, and whoever writes waits.

    Raises:
        StoreBusy: somebody else writes for too long.
        BackendDown: there is no room for the copy that is made on the way.
    """

    def is_stopped() -> bool:
        progress("shrink", 0, None)
        return False

    merge_words(writer)  # FTS5 keeps the words of what was deleted until then
    with writer.alone() as connection:
        connection.set_progress_handler(is_stopped, _STEPS)
        try:
            connection.execute("VACUUM")
        finally:
            connection.set_progress_handler(None)
        # The new pages are in the log. Where somebody reads the old ones, a later write brings them over.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _rebuild_indexes(connection: Connection) -> None:
    """Build all indexes anew, unless two rows have a value that must be unique: then nothing is changed."""
    with suppress(apsw.ConstraintError):  # it is found again, with what else can be done
        connection.execute("REINDEX")


def _delete_orphan_chunks(connection: Connection) -> None:
    """Delete chunks that nothing can show, past the trigger: it trusts an index that may be wrong too."""
    connection.run("DROP TRIGGER IF EXISTS kb_chunks_deleted")
    connection.run(f"DELETE {checks.NO_DOCUMENT}")
    connection.run(DELETED_TRIGGER)
    _rebuild_words(connection)
    _count_anew(connection)


def _rebuild_words(connection: Connection) -> None:
    connection.run(_REBUILD_WORDS)


def _count_anew(connection: Connection) -> None:
    connection.run(_COUNT_ANEW)


def _delete_orphan_vectors(connection: Connection) -> None:
    connection.run(f"DELETE {checks.NO_CHUNK}")
    for model in all_models(connection):
        if checks.has_table(connection, model):
            orphans = [id for (id,) in connection.rows(f"SELECT rowid {checks.unknown(model)}")]
            SQLiteVectorTables().remove(connection, model, orphans)


def _await_lost_vectors(connection: Connection) -> None:
    for model in all_models(connection):
        ids = [id for (id,) in connection.rows(f"SELECT id {checks.lost(connection, model)}")]
        if not checks.has_table(connection, model):
            SQLiteVectorTables().create(connection, model)
        _await(connection, model, ids)


def _await_damaged_vectors(connection: Connection) -> None:
    for model in all_models(connection):
        _await(connection, model, checks.damaged(connection, model))


def _await(connection: Connection, model: Model, ids: list[int]) -> None:
    """Let the chunks that use some vectors wait for others."""
    connection.run("DELETE FROM kb_chunk_vectors WHERE embedding IN (:ids...)", {"ids": ids})
    delete_embeddings(connection, SQLiteVectorTables(), model, ids)


def _bring_back(connection: Connection) -> None:
    hidden = f"SELECT key {checks.HIDDEN}"
    connection.run(f"UPDATE kb_documents SET superseded_by = NULL WHERE key IN ({hidden})")


# In this order: what comes later is reckoned from what comes before.
_REPAIRS: Mapping[FaultName, Callable[[Connection], None]] = {
    "integrity": _rebuild_indexes,
    "chunks": _delete_orphan_chunks,
    "words": _rebuild_words,
    "counter": _count_anew,
    "vectors": _delete_orphan_vectors,
    "lost-vectors": _await_lost_vectors,
    "damaged-vectors": _await_damaged_vectors,
    "superseded": _bring_back,
}
