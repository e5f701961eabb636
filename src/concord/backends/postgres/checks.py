"""What may be wrong with an organisation's rows: words, counters or vectors out of step, orphans.

Nothing is changed. The server looks after its pages itself; rows that only this program has written fail none
of the checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from concord.backends.postgres import upkeep
from concord.backends.postgres.connections import Connection, Connections
from concord.backends.postgres.hnsw import has_vectors, hnsw_state
from concord.backends.postgres.schema import GUARDED, MAY_ADD_POSTINGS, is_vector_table, vector_table
from concord.backends.postgres.space_rows import count_vectors, find_space
from concord.core.errors import Action, Hint, joined
from concord.core.reports import FaultName, Finding, VectorIndexState

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
# For superusers, roles with BYPASSRLS, and on tables whose policies somebody has switched off.
_UNGUARDED = f"""
SELECT c.relname, current_user, (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user)
FROM pg_class AS c
WHERE c.relkind IN ('r', 'p') AND (c.relname = ANY(%s) OR {is_vector_table("c.relname")})
    AND pg_table_is_visible(c.oid) AND NOT row_security_active(c.oid) ORDER BY c.relname LIMIT 1"""
# Where no policy is, nobody is to look, nor to say whose a row is; whoever has rights for all tables may.
_MAY_LOOK = """
SELECT has_any_column_privilege('kb_postings_rows', 'SELECT, UPDATE')
        OR has_table_privilege('kb_postings_rows', 'DELETE, TRUNCATE'),
    has_column_privilege('kb_postings_rows', 'org', 'INSERT'), quote_ident(current_user)"""
_HOME = "SELECT home FROM kb_orgs WHERE key = %s"
_SPACES = "SELECT key, dimension FROM kb_spaces WHERE org = %s"
_DIMENSIONS = "SELECT DISTINCT dimension FROM kb_spaces WHERE org = %s AND dimension <= %s"


class _Count(NamedTuple):
    """A check that counts rows which should not be there."""

    fault: FaultName
    rows: str
    said: str
    repair: str


_COUNTS = (
    _Count("chunks", NO_DOCUMENT, "{:,} chunks that belong to no document", "deletes them"),
    _Count("superseded", HIDDEN, "{:,} documents superseded by one that is gone", "brings them back"),
)
_COUNTS_OF_SPACE = (
    _Count("vectors", NO_CHUNK, "{:,} vectors that belong to no chunk", "deletes them"),
    _Count("lost-vectors", NO_VECTOR, "{:,} chunks that have lost their vector", "embeds them again"),
    _Count("pending", STALE_PENDING, "{:,} chunks wrongly marked as waiting for a vector", "unmarks them"),
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
        yield _repairable("words", "the word index does not match the chunks", "builds it anew")
    if not _holds(connection, _COUNTED, org):
        yield _repairable("counter", "the stored number of chunks is wrong", "counts them anew")
    if not _holds(connection, _TYPES_KNOWN, org):
        yield _repairable("types", "the list of document types is incomplete", "completes it")
    is_elsewhere = connection.execute(_HOME, (org,)).fetchone() != ("",)
    for space, table in spaces_of(connection, org):
        # What vectors elsewhere were lost, nobody can tell here.
        counts = [one for one in _COUNTS_OF_SPACE if not (is_elsewhere and one.fault == "lost-vectors")]
        yield from _counted(connection, counts, {"org": org, "space": space}, table)
    for dimension in _dimensions(connection, org):
        yield from _index_faults(connection, org, vector_table(dimension))
    yield from _policy_faults(connection)


def _policy_faults(connection: Connection) -> Iterator[Finding]:
    """Whether anything but our own statements keeps organisations apart."""
    row = connection.execute(_UNGUARDED, (list(GUARDED),)).fetchone()
    if row is None:
        yield from _rights_faults(connection)
        return
    table, role, is_above = row
    if is_above:
        said = f"the role {role} is above row-level policies: only our statements keep organisations apart"
        hint = "connect as a role that is no superuser and has no BYPASSRLS: docs/postgresql.md"
    else:
        said = f"row-level policies are switched off for {table}, and perhaps for other tables"
        hint = f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
    yield Finding("policies", said, hint)


def _rights_faults(connection: Connection) -> Iterator[Finding]:
    """Whether the role may see rows that no policy hides."""
    may_look, may_add, role = connection.execute(_MAY_LOOK).fetchone() or (False, False, "")
    if may_look or may_add:
        what = "look at the words of all organisations" if may_look else "add words to any organisation"
        said = f"the role {role} may {what} in kb_postings_rows"
        hint = f"REVOKE ALL ON kb_postings_rows FROM {role}; GRANT {MAY_ADD_POSTINGS} TO {role}"
        yield Finding("policies", said, hint)


def _index_faults(connection: Connection, org: int, table: str) -> Iterator[Finding]:
    index = hnsw_state(connection, table)
    if index is None or index.is_valid:
        return
    if index.is_valid is False:
        said = "the vector index was not finished"
    elif has_vectors(connection, table, org, upkeep.INDEX_FROM):
        said = "there is no vector index: every search compares all vectors"
    else:
        return
    yield Finding("index", said, index.cure, is_repairable=index.is_ours_to_build)


def index_state(connections: Connections) -> VectorIndexState:
    """Tell whether there is an index of the vectors that searches use."""
    return connections.read(lambda connection: _index_state(connection, connections.org))


def _index_state(connection: Connection, org: int) -> VectorIndexState:
    space = find_space(connection, org, None)
    dimension = (space and space.dimension) or 0
    table, least = vector_table(dimension), upkeep.INDEX_FROM
    index = hnsw_state(connection, table)
    if space and index and index.is_valid:
        return VectorIndexState(count_vectors(connection, org, space.key), index.size_bytes)
    if dimension > upkeep.MOST_DIMENSIONS:
        why = f"pgvector indexes up to {upkeep.MOST_DIMENSIONS:,} dimensions"
    elif index and has_vectors(connection, table, org, least):
        why = joined(": ", "missing", index.cure)
    else:
        why = f"from {least:,} vectors on"
    return VectorIndexState(0, 0, why)


def _dimensions(connection: Connection, org: int) -> list[int]:
    """Return those of an organisation's vectors that can be indexed."""
    rows = connection.execute(_DIMENSIONS, (org, upkeep.MOST_DIMENSIONS)).fetchall()
    return [dimension for (dimension,) in rows]


def _counted(
    connection: Connection, counts: Iterable[_Count], values: dict[str, int], table: str
) -> Iterator[Finding]:
    for fault, rows, said, repair in counts:
        statement = f"SELECT count(*) FROM {rows.format(table=table)}"
        (count,) = connection.execute(statement, values).fetchone() or (0,)
        if count:
            yield _repairable(fault, said.format(count), repair)


def _holds(connection: Connection, statement: str, org: int) -> bool:
    (holds,) = connection.execute(statement, {"org": org}).fetchone() or (False,)
    return bool(holds)


def _repairable(fault: FaultName, message: str, repair: str) -> Finding:
    return Finding(fault, message, Hint(Action.REPAIR, f"{{repair}} {repair}"), is_repairable=True)
