"""What chunks are called: writing their name tokens, and finding chunks by them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import Any

from concord.backends.columns import LEAST_IDF, owner_and_name
from concord.backends.sql_values import list_column
from concord.backends.sqlite.connections import Connection
from concord.backends.sqlite.filters import condition
from concord.types import ChunkId, Filter, Scored

_STORED = "SELECT chunk, token FROM kb_names WHERE chunk IN (SELECT value FROM json_each(?))"
_FORGET = "DELETE FROM kb_names WHERE chunk = ?"
_PUT = "INSERT INTO kb_names (token, chunk) VALUES (?, ?)"

# Chunks with a name; where it is asked for with an owner, those that have the owner as well.
_HELD = """
WITH asked AS (SELECT value ->> 0 AS owner, value ->> 1 AS token FROM json_each(:asked)),
held AS MATERIALIZED (
    SELECT a.owner, a.token, n.chunk FROM asked AS a CROSS JOIN kb_names AS n ON n.token = a.token
    WHERE a.owner = '' OR EXISTS (
        SELECT 1 FROM kb_names AS o WHERE o.token = '@' || a.owner AND o.chunk = n.chunk))"""
_COUNT = f"{_HELD} SELECT owner, token, count(*) FROM held GROUP BY owner, token"
_SEARCH = f"""{_HELD},
counted AS (SELECT owner, token, count(*) AS n FROM held GROUP BY owner, token),
total AS (SELECT value AS n FROM kb_meta WHERE key = 'chunks'),
weighed AS MATERIALIZED (
    SELECT c.owner, c.token, max({LEAST_IDF}, ln((max(t.n, c.n) - c.n + 0.5) / (c.n + 0.5))) AS idf
    FROM counted AS c, total AS t)
SELECT h.chunk, sum(w.idf) AS score FROM held AS h JOIN weighed AS w USING (owner, token)
WHERE EXISTS (
    SELECT 1 FROM kb_chunks AS c INDEXED BY kb_chunks_place CROSS JOIN kb_documents AS d ON d.key = c.document
    WHERE c.id = h.chunk AND {{condition}})
GROUP BY h.chunk ORDER BY score DESC, h.chunk LIMIT :limit"""


def put_names(connection: Connection, names: Mapping[ChunkId, Sequence[str]]) -> set[ChunkId]:
    """Write what chunks are called; return those that were called something else before."""
    stored: dict[ChunkId, set[str]] = defaultdict(set)
    for chunk_id, token in connection.execute(_STORED, (list_column([*names]),)):
        stored[chunk_id].add(token)
    changed = {chunk_id for chunk_id, tokens in names.items() if stored.get(chunk_id, set()) != set(tokens)}
    connection.executemany(_FORGET, ((chunk_id,) for chunk_id in changed & stored.keys()))
    rows = {(token, chunk_id) for chunk_id in changed for token in names[chunk_id]}
    connection.executemany(_PUT, sorted(rows))  # in the order of the table
    return changed


def search_names(connection: Connection, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
    """Return the chunks that have most of some name tokens, best first; ties by chunk id."""
    sql, values = condition(filter)
    known: dict[str, Any] = {**values, "asked": _asked(tokens), "limit": limit}
    return list(starmap(Scored, connection.execute(_SEARCH.format(condition=sql), known)))


def name_frequencies(connection: Connection, tokens: Sequence[str]) -> dict[str, int]:
    """Return how many chunks have each of some name tokens."""
    rows = connection.execute(_COUNT, {"asked": _asked(tokens)})
    counts = {f"{owner} {token}".lstrip(): count for owner, token, count in rows}
    return {token: counts.get(token, 0) for token in tokens}


def _asked(tokens: Sequence[str]) -> str:
    """Return owners and names as JSON."""
    return list_column([owner_and_name(token) for token in dict.fromkeys(tokens)])
