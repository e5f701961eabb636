"""What partitions by organisation would change on PostgreSQL: one table for all, beside one in partitions.

    python -m benchmarks partitions

The simulation in docs/scaling.md: vectors only, in tables of the form that ours have, many organisations on
one small server, each too large a share of it to be searched exactly. Both tables are asked by the statement
that our searches use, with the same settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.measure import Clock, Cost, Row, absent, cost_of, elapsed_ms, mean_cpu_ms, milliseconds, sized
from benchmarks.server_time import clock_with_server
from benchmarks.synthetic import DIMENSION, SEED, Floats

ORGS, VECTORS_EACH = sized((8, 2_500), (2, 200))
PARTITIONS = 16
QUERIES = sized(60, 4)
LIMIT = 40

_WHOLE = f"""
CREATE TABLE whole (org integer, chunk bigint, embedding vector({DIMENSION}), PRIMARY KEY (org, chunk))"""
_PARTED = "CREATE TABLE parted (LIKE whole, PRIMARY KEY (org, chunk)) PARTITION BY HASH (org)"
_PART = "CREATE TABLE parted_{at} PARTITION OF parted FOR VALUES WITH (MODULUS {of}, REMAINDER {at})"
_INDEX = "CREATE INDEX ON {table} USING hnsw (embedding vector_cosine_ops)"
_SETTINGS = """
SET maintenance_work_mem = '256MB'; SET jit = off; SET hnsw.ef_search = 64;
SET hnsw.iterative_scan = relaxed_order; SET enable_seqscan = off; SET enable_bitmapscan = off"""
_NEAREST = """
SELECT chunk FROM {table} WHERE org = %(org)s ORDER BY embedding <=> %(vector)s::vector LIMIT {limit}"""


def run() -> Iterator[Row]:
    """Fill both tables with the same vectors and ask them the same."""
    try:
        import psycopg

        from benchmarks.postgres_lab import points, server
    except ImportError as fault:
        yield absent("partitions by organisation", str(fault))
        return
    vectors, queries = points(ORGS * VECTORS_EACH, SEED), points(QUERIES, SEED + 1)
    with server() as url, psycopg.connect(url, autocommit=True) as connection:
        _make_tables(connection, vectors)
        clock = clock_with_server(connection.info.backend_pid)
        took = {name: _ask(connection, name, vectors, queries, clock) for name in ("parted", "whole")}
    for name, figure in (("cpu (mean)", mean_cpu_ms), ("p50", elapsed_ms)):
        parted, whole = (figure(took[table][0]) for table in ("parted", "whole"))
        what = f"nearest {LIMIT} of {VECTORS_EACH:,} in one of {ORGS} organisations, {name}"
        yield Row(what, milliseconds(parted), milliseconds(whole), parted / whole)
    found, found_whole = took["parted"][1], took["whole"][1]
    yield Row(f"share of the exact nearest {LIMIT} found", f"{found:.3f}", f"{found_whole:.3f}")


def _make_tables(connection: Any, vectors: Floats) -> None:
    """Fill the one, copy it to the other, and build the vector index of each."""
    parts = [_PART.format(at=at, of=PARTITIONS) for at in range(PARTITIONS)]
    for statement in (_SETTINGS, _WHOLE, _PARTED, *parts):
        connection.execute(statement)
    with connection.cursor() as cursor, cursor.copy("COPY whole FROM STDIN") as copy:
        for number, vector in enumerate(vectors.tolist()):
            copy.write_row((number % ORGS, number, str(vector)))
    connection.execute("INSERT INTO parted SELECT * FROM whole")
    for table in ("whole", "parted"):
        connection.execute(_INDEX.format(table=table))
        connection.execute(f"ANALYZE {table}")


def _ask(
    connection: Any, table: str, vectors: Floats, queries: Floats, clock: Clock
) -> tuple[list[Cost], float]:
    """Return what searches took, and which share of the exact nearest they found."""
    costs, shares = [], []
    statement = _NEAREST.format(table=table, limit=LIMIT)
    for number, query in enumerate(queries):
        org = number % ORGS
        cost, found = _search(connection, statement, {"org": org, "vector": str(query.tolist())}, clock)
        costs.append(cost)
        shares.append(len(found & _exact(vectors, query, org)) / LIMIT)
    return costs, mean(shares)


def _search(connection: Any, statement: str, values: dict[str, Any], clock: Clock) -> tuple[Cost, set[int]]:
    rows: list[tuple[int]] = []
    cost = cost_of(lambda: rows.extend(connection.execute(statement, values).fetchall()), clock)
    return cost, {chunk for (chunk,) in rows}


def _exact(vectors: Floats, query: Any, org: int) -> set[int]:
    return set((np.argsort(-(vectors[org::ORGS] @ query))[:LIMIT] * ORGS + org).tolist())
