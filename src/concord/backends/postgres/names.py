"""What chunks are called: writing their name tokens, and finding chunks by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any

from concord.backends.postgres.array_form import Texts
from concord.backends.postgres.connections import Connection
from concord.backends.postgres.filters import condition
from concord.backends.postgres.rows import array_of
from concord.store.columns import LEAST_IDF, owner_and_name
from concord.types import ChunkId, Filter, Scored

_STORED = "SELECT chunk, array_agg(token) FROM kb_names WHERE org = %s AND chunk = ANY(%s) GROUP BY chunk"
_FORGET = "DELETE FROM kb_names WHERE org = %s AND chunk = ANY(%s)"
_PUT = """
INSERT INTO kb_names (org, token, chunk)
SELECT %(org)s, given.* FROM unnest(%(tokens)s::text[], %(chunks)s::bigint[]) AS given"""

# Chunks with a name; where it is asked for with an owner, those that have the owner as well.
_HELD = """
WITH asked AS (SELECT * FROM unnest(%(owners)s::text[], %(tokens)s::text[]) AS a (owner, token)),
held AS MATERIALIZED (
    SELECT a.owner, a.token, n.chunk
    FROM asked AS a JOIN kb_names AS n ON n.org = %(org)s AND n.token = a.token
    WHERE a.owner = '' OR EXISTS (
        SELECT FROM kb_names AS o
        WHERE o.org = %(org)s AND o.token = '@' || a.owner AND o.chunk = n.chunk))"""
_COUNT = f"{_HELD} SELECT owner, token, count(*) FROM held GROUP BY owner, token"
_SEARCH = f"""{_HELD},
counted AS (SELECT owner, token, count(*)::float8 AS n FROM held GROUP BY owner, token),
total AS (SELECT chunks::float8 AS n FROM kb_orgs WHERE key = %(org)s),
weighed AS MATERIALIZED (
    SELECT c.owner, c.token, greatest({LEAST_IDF}, ln((greatest(t.n, c.n) - c.n + 0.5) / (c.n + 0.5))) AS idf
    FROM counted AS c, total AS t)
SELECT h.chunk, sum(w.idf) AS score FROM held AS h JOIN weighed AS w USING (owner, token)
WHERE EXISTS (
    SELECT FROM kb_chunks AS c JOIN kb_documents AS d ON d.org = c.org AND d.id = c.document
    WHERE c.org = %(org)s AND c.id = h.chunk AND {{condition}})
GROUP BY h.chunk ORDER BY score DESC, h.chunk LIMIT %(limit)s"""


def put_names(connection: Connection, org: int, names: Mapping[ChunkId, Sequence[str]]) -> set[ChunkId]:
    """Write what stored chunks are called; return those that were called something else before."""
    if not names:
        return set()
    stored = {chunk: set(tokens) for chunk, tokens in connection.execute(_STORED, (org, list(names)))}
    changed = {chunk: tokens for chunk, tokens in names.items() if stored.get(chunk, set()) != set(tokens)}
    forget_names(connection, org, [*changed.keys() & stored.keys()])
    add_names(connection, org, changed)
    return set(changed)


def add_names(connection: Connection, org: int, names: Mapping[ChunkId, Sequence[str]]) -> None:
    """Write what chunks are called that had no names."""
    rows = sorted({(token, chunk_id) for chunk_id, tokens in names.items() for token in tokens})
    if rows:
        tokens, chunks = zip(*rows, strict=True)
        connection.execute(_PUT, {"org": org, "tokens": Texts(tokens), "chunks": array_of(chunks)})


def forget_names(connection: Connection, org: int, chunk_ids: Sequence[ChunkId]) -> None:
    """Delete what chunks are called."""
    if chunk_ids:
        connection.execute(_FORGET, (org, list(chunk_ids)))


def search_names(
    connection: Connection, org: int, tokens: Sequence[str], filter: Filter, limit: int
) -> list[Scored]:
    """Return the chunks that have most of some name tokens, best first; ties by chunk id."""
    allowed = condition(filter)
    values = {**allowed.values, **_asked(org, tokens), "limit": limit}
    return list(starmap(Scored, connection.execute(_SEARCH.format(condition=allowed.sql), values).fetchall()))


def name_frequencies(connection: Connection, org: int, tokens: Sequence[str]) -> dict[str, int]:
    """Return how many chunks have each of some name tokens."""
    rows = connection.execute(_COUNT, _asked(org, tokens)).fetchall()
    counts = {f"{owner} {token}".lstrip(): count for owner, token, count in rows}
    return {token: counts.get(token, 0) for token in tokens}


def _asked(org: int, tokens: Sequence[str]) -> dict[str, Any]:
    asked = [owner_and_name(token) for token in dict.fromkeys(tokens)]
    return {"org": org, "owners": [owner for owner, _ in asked], "tokens": [name for _, name in asked]}
