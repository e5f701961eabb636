"""What may be wrong with an organisation's rows: words, counters or vectors out of step, orphans.

Nothing is changed. The server looks after its pages itself; rows that only this program has written fail none
of the checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.schema import vector_table
from concord.outcomes import FaultName, Finding

NO_DOCUMENT = """
kb_chunks AS c WHERE c.org = %(org)s
AND NOT EXISTS (SELECT FROM kb_documents AS d WHERE d.org = c.org AND d.id = c.document)"""
HIDDEN = """
kb_documents AS d WHERE d.org = %(org)s AND d.superseded_by IS NOT NULL
AND NOT EXISTS (SELECT FROM kb_documents AS n WHERE n.org = d.org AND n.id = d.superseded_by)"""
# Of one space, whose vectors are in a table.
NO_CHUNK = """
{table} AS v WHERE v.org = %(org)s AND v.space = %(space)s
AND NOT EXISTS (SELECT FROM kb_chunks AS c WHERE c.org = v.org AND c.id = v.chunk)"""
NO_VECTOR = """
kb_chunks AS c WHERE c.org = %(org)s
AND NOT EXISTS (SELECT FROM kb_pending AS p WHERE p.org = c.org AND p.space = %(space)s AND p.chunk = c.id)
AND NOT EXISTS (SELECT FROM {table} AS v WHERE v.org = c.org AND v.space = %(space)s AND v.chunk = c.id)"""
STALE_PENDING = """
kb_pending AS p WHERE p.org = %(org)s AND p.space = %(space)s
AND (NOT EXISTS (SELECT FROM kb_chunks AS c WHERE c.org = p.org AND c.id = p.chunk)
     OR EXISTS (SELECT FROM {table} AS v WHERE v.org = p.org AND v.space = p.space AND v.chunk = p.chunk))"""
# Every token of every chunk is one posting, and so is every token of those deleted since the last merge.
_WORDS_IN_STEP = """
SELECT coalesce((SELECT sum(size) FROM kb_postings WHERE org = %(org)s), 0)
    - coalesce((SELECT sum(chunks) FROM kb_gone WHERE org = %(org)s), 0)
    = coalesce((SELECT sum(length(words)) FROM kb_chunks WHERE org = %(org)s), 0)"""
_COUNTED = """
SELECT (o.chunks, o.tokens) = (SELECT count(*), coalesce(sum(length), 0) FROM kb_chunks WHERE org = %(org)s)
FROM kb_orgs AS o WHERE o.key = %(org)s"""
_TYPES_KNOWN = """
SELECT coalesce(o.types @> ARRAY(SELECT DISTINCT type FROM kb_documents WHERE org = %(org)s), true)
FROM kb_orgs AS o WHERE o.key = %(org)s"""
_BROKEN_INDEX = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%(index)s)"
_HOME = "SELECT home FROM kb_orgs WHERE key = %s"
_SPACES = "SELECT key, dimension FROM kb_spaces WHERE org = %s"


class _Count(NamedTuple):
    """A check that counts rows which should not be there."""

    check: FaultName
    rows: str
    said: str
    repair: str


_COUNTS = (
    _Count("chunks", NO_DOCUMENT, "{:,} chunks of no document", "deletes them"),
    _Count("superseded", HIDDEN, "{:,} documents superseded by one that is gone", "brings them back"),
)
_COUNTS_OF_SPACE = (
    _Count("vectors", NO_CHUNK, "{:,} vectors of no chunk", "deletes them"),
    _Count("lost-vectors", NO_VECTOR, "{:,} chunks without the vector they had", "embeds them again"),
    _Count("pending", STALE_PENDING, "{:,} marks of chunks that wait for no vector", "takes them away"),
)


class SpaceTable(NamedTuple):
    """A space, and the table of its vectors; where it has none yet, one without rows."""

    space: int
    table: str


def find_faults(connections: Connections) -> list[Finding]:
    """Run every check."""
    return connections.read(lambda connection: list(_faults(connection, connections.org)))


def spaces_of(connection: Connection, org: int) -> list[SpaceTable]:
    """Return every space of an organisation."""
    empty = "(SELECT 0 AS org, 0 AS space, 0 AS chunk WHERE FALSE)"
    rows = connection.execute(_SPACES, (org,)).fetchall()
    return [SpaceTable(key, vector_table(dimension) if dimension else empty) for key, dimension in rows]


def _faults(connection: Connection, org: int) -> Iterator[Finding]:
    yield from _counted(connection, _COUNTS, {"org": org}, "")
    if not _holds(connection, _WORDS_IN_STEP, org):
        yield _repairable("words", "the word index does not hold what the chunks say", "builds it anew")
    if not _holds(connection, _COUNTED, org):
        yield _repairable("counter", "the number of chunks that is kept is not theirs", "counts them anew")
    if not _holds(connection, _TYPES_KNOWN, org):
        yield _repairable("types", "there are documents of a type that is not known", "notes it")
    is_elsewhere = connection.execute(_HOME, (org,)).fetchone() != ("",)
    for space, table in spaces_of(connection, org):
        # What vectors elsewhere were lost, nobody can tell here.
        counts = [one for one in _COUNTS_OF_SPACE if not (is_elsewhere and one.check == "lost-vectors")]
        yield from _counted(connection, counts, {"org": org, "space": space}, table)
        index = {"index": f"{table}_hnsw"}
        if table.startswith("kb_") and connection.execute(_BROKEN_INDEX, index).fetchone() == (True,):
            yield _repairable("index", "the vector index was not finished", "builds it anew")


def _counted(
    connection: Connection, counts: Iterable[_Count], values: dict[str, int], table: str
) -> Iterator[Finding]:
    for check, rows, said, repair in counts:
        statement = f"SELECT count(*) FROM {rows.format(table=table)}"
        (count,) = connection.execute(statement, values).fetchone() or (0,)
        if count:
            yield _repairable(check, said.format(count), repair)


def _holds(connection: Connection, statement: str, org: int) -> bool:
    (holds,) = connection.execute(statement, {"org": org}).fetchone() or (False,)
    return bool(holds)


def _repairable(check: FaultName, message: str, repair: str) -> Finding:
    return Finding(check, message, f"`kb doctor --fix` {repair}", is_repairable=True)
