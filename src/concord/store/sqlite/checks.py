"""What may be wrong inside a file: damaged pages, wrong indexes, words or vectors out of step, orphans.

Each check returns a finding or None and changes nothing. A store that only this program has written fails
none of them; a disk, a crashed copy or another program may see to it that one does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import apsw

from concord.core.errors import Action, Hint
from concord.core.reports import FaultName, Finding
from concord.store.embeddings import is_intact
from concord.store.models import Model, all_models
from concord.store.sqlite.connections import Connection, Readers, Writer
from concord.store.sqlite.faults import DAMAGE
from concord.store.sqlite.vectors import table_of

# Until then, a write-ahead log with several writers could damage the file (sqlite.org/wal.html, "WAL-reset").
OLDEST_SQLITE = (3, 51, 3)
LEAST_FREE_BYTES = 16_000_000  # and half of the file: what is less is soon used again
_MOST_SHOWN = 3  # complaints of an integrity check that a sentence holds
# What an integrity check says of an index that does not match its table, though its pages are sound.
_WRONG_INDEX = re.compile(
    r"row \d+ missing from index |row \d+ values differ from index |wrong # of entries in index "
    r"|rowid not at end-of-record for row \d+ of index "
)

NO_DOCUMENT = "FROM kb_chunks WHERE document NOT IN (SELECT key FROM kb_documents)"
NO_CHUNK = "FROM kb_chunk_vectors WHERE chunk NOT IN (SELECT id FROM kb_chunks)"
_NOT_IN_WORDS = "FROM kb_chunks WHERE id NOT IN (SELECT id FROM kb_chunks_fts_docsize)"
_ONLY_IN_WORDS = "FROM kb_chunks_fts_docsize WHERE id NOT IN (SELECT id FROM kb_chunks)"
HIDDEN = """
FROM kb_documents WHERE superseded_by IS NOT NULL AND superseded_by NOT IN (SELECT id FROM kb_documents)"""
_COMPARE_WORDS = "INSERT INTO kb_chunks_fts (kb_chunks_fts, rank) VALUES ('integrity-check', 1)"
_COUNTED = "SELECT (SELECT value FROM kb_meta WHERE key = 'chunks') IS (SELECT count(*) FROM kb_chunks)"
_HAS_TABLE = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = :table)"


def has_table(connection: Connection, model: Model) -> bool:
    """Whether a model's table of vectors is there."""
    return bool(connection.value(_HAS_TABLE, {"table": table_of(model.key)}))


def lost(connection: Connection, model: Model) -> str:
    """Return the condition for what is known of vectors that are not there."""
    gone = f"FROM kb_embeddings WHERE model = {model.key:d}"
    there = f" AND id NOT IN (SELECT rowid FROM {table_of(model.key)})"
    return gone + there if has_table(connection, model) else gone


def unknown(model: Model) -> str:
    """Return the condition for vectors of which nothing is known."""
    known = f"SELECT id FROM kb_embeddings WHERE model = {model.key:d}"
    return f"FROM {table_of(model.key)} WHERE rowid NOT IN ({known})"


def damaged(connection: Connection, model: Model) -> list[int]:
    """Return the vectors of a model that are not as they were written."""
    if not has_table(connection, model):
        return []
    rows = f"{table_of(model.key)} AS v JOIN kb_embeddings AS e ON e.id = v.rowid"
    vectors = connection.iterate(f"SELECT e.id, e.crc, v.embedding FROM {rows}")
    return [id for id, crc, vector in vectors if not is_intact(vector, crc)]


def find_faults(readers: Readers, writer: Writer) -> list[Finding]:
    """Run every check; a damaged file is not looked into further: what it says cannot be relied on."""
    with readers.connection() as connection:
        connection.load_vec0()
        found = [finding for check in (_version, _integrity) if (finding := check(connection))]
        if any(finding.fault == "integrity" for finding in found):
            return found
        found += [finding for check in _CONTENT if (finding := check(connection))]
    if not any(finding.fault == "words" for finding in found) and (finding := _words_compared(writer)):
        found.append(finding)
    return found


def _version(connection: Connection) -> Finding | None:
    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split(".")[:3])) >= OLDEST_SQLITE:
        return None
    wanted = ".".join(map(str, OLDEST_SQLITE))
    return Finding(
        "sqlite",
        f"SQLite {version} can damage a store that two processes write; {wanted} is the first that cannot",
        Hint(Action.UPGRADE, package="apsw"),
    )


def _integrity(connection: Connection) -> Finding | None:
    """Let SQLite compare every page and every index; wrong indexes can be built anew from their tables."""
    complaints = _complaints(connection)
    if not complaints:
        return None
    said = "; ".join(complaints[:_MOST_SHOWN])
    if all(_WRONG_INDEX.match(complaint) for complaint in complaints):
        repair = f"builds all indexes anew; if this is found again, {DAMAGE}"
        return _repairable("integrity", f"indexes of the file do not match its tables: {said}", repair)
    return Finding("integrity", f"the file is damaged: {said}", Hint(Action.NOTE_EXPORT, DAMAGE))


def _complaints(connection: Connection) -> list[str]:
    """Return what an integrity check says; the first fault may stop it."""
    try:
        said = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
    except (apsw.CorruptError, apsw.NotADBError) as fault:
        said = [str(fault)]
    # What FTS5 says of its own index is looked into by the other checks: that can be repaired.
    return [line for line in said if line != "ok" and "fts5" not in line.lower()]


def _orphan_chunks(connection: Connection) -> Finding | None:
    return _counted(connection, [NO_DOCUMENT], "chunks", "{} that belong to no document", "deletes them")


def _words(connection: Connection) -> Finding | None:
    missing, extra = _count(connection, _NOT_IN_WORDS), _count(connection, _ONLY_IN_WORDS)
    if not missing and not extra:
        return None
    said = f"the word index lacks {missing:,} chunks and holds {extra:,} that do not exist"
    return _repairable("words", said, "builds it anew")


def _words_compared(writer: Writer) -> Finding | None:
    """Compare the word index with the texts; FTS5 does that as a write, though nothing is written."""
    with writer.transaction() as connection:
        try:
            connection.execute(_COMPARE_WORDS)
        except apsw.CorruptError:
            return _repairable("words", "the word index does not match the chunks", "builds it anew")
    return None


def _counter(connection: Connection) -> Finding | None:
    if connection.value(_COUNTED):
        return None
    return _repairable("counter", "the stored number of chunks is wrong", "counts them anew")


def _orphan_vectors(connection: Connection) -> Finding | None:
    conditions = [unknown(model) for model in all_models(connection) if has_table(connection, model)]
    said = "{} that belong to no text or no chunk"
    return _counted(connection, [NO_CHUNK, *conditions], "vectors", said, "deletes them")


def _lost_vectors(connection: Connection) -> Finding | None:
    conditions = [
        f"FROM kb_chunk_vectors WHERE embedding IN (SELECT id {lost(connection, model)})"
        for model in all_models(connection)
    ]
    said = "{} that have lost their vector"
    return _counted(connection, conditions, "lost-vectors", said, "embeds them again")


def _damaged_vectors(connection: Connection) -> Finding | None:
    count = sum(len(damaged(connection, model)) for model in all_models(connection))
    if not count:
        return None
    said = f"{count:,} vectors are not as they were written, and are left out of searches"
    return _repairable("damaged-vectors", said, "makes them again")


def _hidden(connection: Connection) -> Finding | None:
    return _counted(
        connection, [HIDDEN], "superseded", "{} superseded by one that is gone", "brings them back"
    )


def _free(connection: Connection) -> Finding | None:
    """Pages that are empty by now; new texts will use them, but only `--fix` gives them back to the disk."""
    page, free = connection.pragma("page_size"), connection.pragma("freelist_count")
    whole = connection.pragma("page_count")
    if free * page < LEAST_FREE_BYTES or free * 2 < whole:
        return None
    room, size = (f"{pages * page / 1e6:,.0f}" for pages in (free, whole))
    said = f"{room} of the file's {size} MB are free, because much was removed"
    return _repairable("space", said, "gives them back to the disk; otherwise new texts fill them")


_CONTENT: tuple[Callable[[Connection], Finding | None], ...] = (
    _orphan_chunks,
    _words,
    _counter,
    _orphan_vectors,
    _lost_vectors,
    _damaged_vectors,
    _hidden,
    _free,
)


def _counted(
    connection: Connection, conditions: Sequence[str], fault: FaultName, said: str, repair: str
) -> Finding | None:
    count = sum(_count(connection, condition) for condition in conditions)
    what = {"vectors": "vectors", "superseded": "documents"}.get(fault, "chunks")
    return _repairable(fault, said.format(f"{count:,} {what}"), repair) if count else None


def _count(connection: Connection, condition: str) -> int:
    return int(connection.value(f"SELECT count(*) {condition}"))


def _repairable(fault: FaultName, message: str, repair: str) -> Finding:
    return Finding(fault, message, Hint(Action.REPAIR, f"{{repair}} {repair}"), is_repairable=True)
