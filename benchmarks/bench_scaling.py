"""How bytes, memory, building and searching grow with the number of chunks, and what is fitted to that.

    KB_BENCH_SIZES=10000,100000,1000000 python -m benchmarks scaling

Texts and vectors are made up (synthetic.py); the model that embeds the questions is the real one. One client
asks one question after the other. A SQLite store is filled once and kept, with what that took. PostgreSQL is
filled each time, at the sizes of KB_BENCH_SERVER_SIZES; its processor time is the server's and ours together.
Of Qdrant there is the engine without a server (`qdrant-edge-py`), as one shard, and as four that are asked in
turn and whose answers are merged, as a cluster does it on four machines; KB_BENCH_QDRANT_SIZES has its sizes,
those of the server unless it is set.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import apsw
import numpy as np

from benchmarks.bench_memory import warm_mb
from benchmarks.fitted import fit_line, fit_power
from benchmarks.measure import Clock, Cost, await_codes, cost_of, elapsed_ms, mean_cpu_ms, p95_ms, sized
from benchmarks.qdrant_shards import CANDIDATES, QdrantShards
from benchmarks.server_time import clock_with_server
from benchmarks.synthetic import DIMENSION, Filling, fill, filled_store, filling_of, questions, unit_rows
from concord.core.config import load_settings
from concord.knowledge import KnowledgeBase
from concord.store.sqlite.file import locate
from concord.types import Answer, Mode, silent

SIZES = sized("10000,100000", "400")
SERVER_SIZES = sized("10000", "200")  # 100,000 take ten minutes, most of it to build graphs
QUERIES = sized(60, 2)  # more than the library remembers the vectors of
WARM_UP = sized(12, 2)  # a small store has its vectors in memory after seven
MODES: Mapping[str, Mode] = {"words": "fts5", "meaning": "semantic", "both": "auto"}
# So that all the work is done and measured; a search has 5 s unless it is told otherwise.
UNHURRIED_MS = 60_000
ORG = "scaling"
SHARDS = (1, 4)


class Figure(NamedTuple):
    """One thing that was measured at one size."""

    what: str
    value: float
    is_fitted: bool = True  # not what has a formula of its own, or depends on what else the machine does


class Disk(NamedTuple):
    """Bytes, by what they are for."""

    texts: int
    words: int
    vectors: int


Table = dict[int, list[Figure]]  # by number of chunks, the same figures in the same order


def main() -> None:
    """Measure each backend at each size; print what was measured and what is fitted to it."""
    sizes = _sizes("KB_BENCH_SIZES", SIZES)
    server_sizes = _sizes("KB_BENCH_SERVER_SIZES", SERVER_SIZES)
    qdrant_sizes = _sizes("KB_BENCH_QDRANT_SIZES", ",".join(map(str, server_sizes)))
    _report("SQLite", _sqlite, sizes)
    _report("PostgreSQL", _postgres, server_sizes)
    for shards in SHARDS:
        _report(f"Qdrant's engine, shards: {shards}", partial(_qdrant, shards=shards), qdrant_sizes)


def _report(backend: str, measure: Callable[[int], Iterable[Figure]], sizes: Sequence[int]) -> None:
    try:
        _print(backend, {chunks: list(measure(chunks)) for chunks in sizes})
    except ImportError as fault:
        print(f"{backend}: not measured: {fault}")


def _sizes(variable: str, default: str) -> list[int]:
    return sorted(int(size) for size in os.environ.get(variable, default).split(",") if size)


def _sqlite(chunks: int) -> Iterator[Figure]:
    url = filled_store(chunks)
    yield from _disk(_file_bytes(Path(locate(url, "default").path)), chunks)
    yield from _building(filling_of(chunks))
    yield Figure("warm process, MB", warm_mb(url), is_fitted=False)
    yield from _searching(url, "default", time.process_time)


def _postgres(chunks: int) -> Iterator[Figure]:
    """Fill and search a server of its own: a vector index holds the vectors of all organisations."""
    import psycopg

    from benchmarks.postgres_lab import server
    from concord.store.postgres.store import PostgresStore

    with server() as url, psycopg.connect(url, autocommit=True) as connection:
        clock = clock_with_server(connection.info.backend_pid)
        with closing(PostgresStore.open(url, ORG, load_settings())) as store:
            filling = fill(store, chunks, clock, partial(store.maintain, silent))
        yield from _disk(_server_bytes(connection), chunks)
        yield from _building(filling)
        yield Figure("warm process (client), MB", warm_mb(url, ORG), is_fitted=False)
        yield from _searching(url, ORG, clock)


def _qdrant(chunks: int, shards: int) -> Iterator[Figure]:
    with TemporaryDirectory() as folder:
        cluster = QdrantShards(Path(folder), shards)
        yield Figure("making up and writing, cpu s", cost_of(lambda: cluster.fill(chunks)).cpu)
        yield Figure("building the index, cpu s", cost_of(cluster.optimize).cpu)
        size = sum(path.stat().st_blocks * 512 for path in Path(folder).rglob("*"))  # logs are sparse files
        yield Figure("disk, MB", size / 1e6)
        asked = unit_rows(np.random.default_rng(QUERIES).standard_normal((WARM_UP + QUERIES, DIMENSION)))
        costs = [cost_of(partial(cluster.nearest, vector.tolist())) for vector in asked][WARM_UP:]
        yield Figure(f"nearest {CANDIDATES}, cpu ms", mean_cpu_ms(costs))
        yield Figure(f"nearest {CANDIDATES}, p50 ms", elapsed_ms(costs), is_fitted=False)
        yield Figure(f"nearest {CANDIDATES}, p95 ms", p95_ms(costs), is_fitted=False)
        cluster.close()


def _disk(disk: Disk, chunks: int) -> Iterator[Figure]:
    for part, size in disk._asdict().items():
        yield Figure(f"disk, {part}, MB", size / 1e6)
        yield Figure(f"disk, {part}, bytes a chunk", size / chunks, is_fitted=False)


def _file_bytes(path: Path) -> Disk:
    """Return the bytes of a file's tables; those of FTS5 and sqlite-vec have their owner's name in front."""
    statement = "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE"
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return _by_purpose(
            dict(connection.execute(statement)),
            ("kb_chunks_fts",),
            ("kb_vectors", "kb_embeddings", "kb_chunk_vectors"),
        )


def _server_bytes(connection: Any) -> Disk:
    """Return the bytes of tables and indexes, each with what it keeps elsewhere because it is long."""
    statement = """
SELECT c.relname, pg_relation_size(c.oid) + coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0)
FROM pg_class AS c WHERE c.relname LIKE 'kb\\_%' AND c.relkind IN ('r', 'i')"""
    sizes = dict(connection.execute(statement).fetchall())
    return _by_purpose(sizes, ("kb_postings",), ("kb_vectors_",))


def _by_purpose(sizes: Mapping[str, int], words: tuple[str, ...], vectors: tuple[str, ...]) -> Disk:
    of_words, of_vectors = (
        sum(size for name, size in sizes.items() if name.startswith(names)) for names in (words, vectors)
    )
    return Disk(sum(sizes.values()) - of_words - of_vectors, of_words, of_vectors)


def _building(filling: Filling) -> Iterator[Figure]:
    for part, cost in filling._asdict().items():
        yield Figure(f"building, {part}, cpu s", cost.cpu)
        yield Figure(f"building, {part}, elapsed s", cost.elapsed, is_fitted=False)


def _searching(url: str, org: str, clock: Clock) -> Iterator[Figure]:
    with KnowledgeBase.open(store__url=url, org=org) as kb:
        kb.warm()
        for name, mode in MODES.items():
            costs, degraded = _ask(kb, mode, clock)
            yield Figure(f"{name}, cpu ms", mean_cpu_ms(costs))
            yield Figure(f"{name}, p50 ms", elapsed_ms(costs), is_fitted=False)
            yield Figure(f"{name}, p95 ms", p95_ms(costs), is_fitted=False)
            yield Figure(f"{name}, searches a cpu s", 1000 / mean_cpu_ms(costs), is_fitted=False)
            yield Figure(f"{name}, answers without a strategy", degraded, is_fitted=False)


def _ask(kb: KnowledgeBase, mode: Mode, clock: Clock) -> tuple[list[Cost], int]:
    """Return what each search took, and how many answers had to do without one of their strategies."""
    answers: list[Answer] = []

    def ask(text: str) -> Cost:
        return cost_of(lambda: answers.append(kb.search(text, mode=mode, deadline_ms=UNHURRIED_MS)), clock)

    texts = questions(WARM_UP + QUERIES)
    for text in texts[:WARM_UP]:
        ask(text)
    await_codes()
    costs = [ask(text) for text in texts[WARM_UP:]]
    return costs, sum(bool(answer.degraded) for answer in answers[WARM_UP:])


def _print(backend: str, table: Table) -> None:
    if not table:
        return
    heads = [
        backend,
        *(f"{chunks:,}" for chunks in table),
        "line, and its worst miss",
        "power, and its worst",
    ]
    print(
        f"\nload {os.getloadavg()[0]:.1f}\n", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", sep="\n"
    )
    for figures in zip(*table.values(), strict=True):
        values = [f"{figure.value:,.4g}" for figure in figures]
        points = {chunks: figure.value for chunks, figure in zip(table, figures, strict=True)}
        models = _models(points) if figures[0].is_fitted and len(points) > 2 else ("", "")
        print(f"| {' | '.join([figures[0].what, *values, *models])} |", flush=True)


def _models(points: Mapping[int, float]) -> tuple[str, str]:
    line, power = fit_line(points), fit_power(points)
    return (
        f"{line.fixed:.3g} + {line.each * 1000:.3g} a thousand, {line.miss:.0%}",
        f"{power.factor:.3g} × chunks^{power.exponent:.2f}, {power.miss:.0%}",
    )


if __name__ == "__main__":
    main()
