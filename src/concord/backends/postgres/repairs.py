"""How what `checks` finds is put right. Only what can be made again from the rest is ever deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from concord.backends.postgres import checks
from concord.backends.postgres.changes import find_types
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.upkeep import tidy_up
from concord.backends.postgres.words import COUNT_BITS, LENGTH_BITS, MOST_COUNTED
from concord.core.reports import FaultName, Finding

_EMPTIED = ("kb_postings", "kb_segments", "kb_gone")
# As `segment.Segment.postings` packs them, from the labels that the tsvectors have.
_REBUILD = f"""
WITH counted AS (
    SELECT c.id, l.lexeme AS term,
        (c.length::bigint << {LENGTH_BITS}) + sum(p.number << p.shift)::bigint AS packed
    FROM kb_chunks AS c CROSS JOIN LATERAL unnest(c.words) AS l
    CROSS JOIN LATERAL (
        SELECT least(count(*), {MOST_COUNTED}) AS number, {COUNT_BITS} * (ascii(label) - ascii('A')) AS shift
        FROM unnest(l.weights) AS label GROUP BY label) AS p
    WHERE c.org = %(org)s GROUP BY c.id, c.length, l.lexeme)
INSERT INTO kb_postings (org, segment, term, size, chunks, packed)
SELECT %(org)s, max(id) OVER (), term, size, chunks, packed FROM (
    SELECT term, max(id) AS id, count(*) AS size,
        array_agg(id ORDER BY id) AS chunks, array_agg(packed ORDER BY id) AS packed
    FROM counted GROUP BY term) AS found"""
_ONE_SEGMENT = """
INSERT INTO kb_segments SELECT %(org)s, max(segment), (SELECT count(*) FROM kb_chunks WHERE org = %(org)s)
FROM kb_postings WHERE org = %(org)s HAVING count(*) > 0"""
_COUNT_ANEW = """
UPDATE kb_orgs SET (chunks, tokens) = (
    SELECT count(*), coalesce(sum(length), 0) FROM kb_chunks WHERE org = %(org)s) WHERE key = %(org)s"""
_PENDING_AGAIN = "INSERT INTO kb_pending SELECT c.org, %(space)s, c.id FROM {rows} ON CONFLICT DO NOTHING"
_BRING_BACK = """
UPDATE kb_documents SET superseded_by = NULL
WHERE org = %(org)s AND id IN (SELECT d.id FROM {rows})"""
_NEXT_GENERATION = "UPDATE kb_orgs SET generation = generation + 1 WHERE key = %(org)s"


def put_right(findings: Sequence[Finding], connections: Connections) -> None:
    """Repair everything that was found, in one transaction; an index is built after it."""
    wanted = {finding.fault for finding in findings if finding.is_repairable}
    if not wanted:
        return
    values = {"org": connections.org}
    with connections.transaction() as connection:
        connection.execute("SELECT FROM kb_orgs WHERE key = %(org)s FOR UPDATE", values)
        for fault, repair in _REPAIRS.items():
            if fault in wanted:
                repair(connection, connections.org)
        connection.execute(_NEXT_GENERATION, values)
    if "index" in wanted:
        tidy_up(connections)


def _delete(rows: str) -> Callable[[Connection, int], None]:
    """Return a repair that deletes, in every space, what should not be there."""

    def repair(connection: Connection, org: int) -> None:
        for space, table in checks.spaces_of(connection, org):
            if table.startswith("kb_") or rows is checks.STALE_PENDING:
                values = {"org": org, "space": space}
                connection.execute(f"DELETE FROM {rows.format(table=table)}", values)

    return repair


def _delete_orphan_chunks(connection: Connection, org: int) -> None:
    """Delete chunks that nothing can show; what they left in the word index goes with building it anew."""
    connection.execute(f"DELETE FROM {checks.NO_DOCUMENT}", {"org": org})
    _rebuild_words(connection, org)
    for rows in (checks.NO_CHUNK, checks.STALE_PENDING):
        _delete(rows)(connection, org)


def _embed_again(connection: Connection, org: int) -> None:
    for space, table in checks.spaces_of(connection, org):
        rows = checks.NO_VECTOR.format(table=table)
        connection.execute(_PENDING_AGAIN.format(rows=rows), {"org": org, "space": space})


def _bring_back(connection: Connection, org: int) -> None:
    connection.execute(_BRING_BACK.format(rows=checks.HIDDEN), {"org": org})


def _rebuild_words(connection: Connection, org: int) -> None:
    values = {"org": org}
    for table in _EMPTIED:
        connection.execute(f"DELETE FROM {table} WHERE org = %(org)s", values)
    for statement in (_REBUILD, _ONE_SEGMENT, _COUNT_ANEW):
        connection.execute(statement, values)
    connection.execute("UPDATE kb_orgs SET stale = 0 WHERE key = %(org)s", values)


def _count_anew(connection: Connection, org: int) -> None:
    connection.execute(_COUNT_ANEW, {"org": org})


# In this order: what goes first may be the cause of what follows.
_REPAIRS: Mapping[FaultName, Callable[[Connection, int], None]] = {
    "chunks": _delete_orphan_chunks,
    "words": _rebuild_words,
    "counter": _count_anew,
    "types": find_types,
    "vectors": _delete(checks.NO_CHUNK),
    "lost-vectors": _embed_again,
    "pending": _delete(checks.STALE_PENDING),
    "superseded": _bring_back,
}
