"""`python -m benchmarks.sizing`: what 10 million, 100 million and a billion chunks take. Arithmetic only.

Nothing is measured here. The constants are what other benchmarks measured on small stores, or what the makers
of an engine say; docs/scaling.md tells which, and where they end.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from benchmarks.fitted import Power

SIZES = (10_000_000, 100_000_000, 1_000_000_000)
ORG_CHUNKS = 100_000  # of the organisation that is searched: its size decides what a search costs

# `python -m benchmarks scaling`, PostgreSQL: bytes a chunk of 90 words, seconds of processor time a chunk.
PG_TEXT, PG_WORDS, PG_VECTORS = 2240, 2890, 3720
PG_GRAPH = (
    2050  # of PG_VECTORS: four elements to a page of 8 kB; the rest is the table, which searches hardly read
)
PG_WRITE_S = 0.00032
PG_GRAPH_S = Power(2.45e-4, 1.15, 0.07)  # of one graph, with the postings that are merged before it
PG_SEARCH_MS, PG_SEARCH_MS_A_CHUNK = 16.7, 0.000206
# The same, Qdrant's engine; its memory is the formula of Qdrant's own capacity planning.
QD_DISK = 7120  # with the text in the payload, and the log
QD_GRAPH_S = Power(6.91e-5, 1.27, 0.13)
QD_MEMORY = 384 * 4 * 1.5
EMBED_S = 1 / 13.9  # `python -m benchmarks embedding`: the bundled model on one core

SERVER_BYTES = 192e9  # of 256 GB: what is left for the hot part of an index
NODE_BYTES = 48e9  # of 64 GB
SHARD_POINTS = 10_000_000  # so many build their graph in a day of one core
PARTITION_CHUNKS = 1_000_000  # so many build their graph within 2 GB of memory
MAJORITY = 3  # nodes: of two, none is left with a majority when the other is lost
COPIES = 2  # a primary and a replica, or two replicas of a shard
CORES = 16


def main() -> None:
    """Print the table."""
    print("|", *(f"| {size:,}" for size in SIZES), "|\n|---" + "|---" * len(SIZES) + "|")
    for what, figure in ROWS.items():
        print(f"| {what} |", " | ".join(figure(size) for size in SIZES), "|")


def _servers(chunks: int, hot_bytes: float, each: float = SERVER_BYTES) -> int:
    return ceil(chunks * hot_bytes / each)


def _bytes(size: float) -> str:
    return f"{size / 1e9:,.0f} GB" if size < 1e12 else f"{size / 1e12:,.1f} TB"


def _core_hours(seconds: float) -> str:
    return f"{seconds / 3600:,.0f} core hours"


def _graphs(chunks: int, each: int, cost: Power) -> str:
    """Return what it takes to build graphs of a size, as many as it needs."""
    return _core_hours(chunks / each * cost.at(each))


def _searches_a_second(servers: int) -> str:
    cpu_ms = PG_SEARCH_MS + PG_SEARCH_MS_A_CHUNK * ORG_CHUNKS
    return f"{servers * COPIES * CORES * 1000 / cpu_ms:,.0f}"


_HOT = PG_WORDS + PG_GRAPH
ROWS: dict[str, Callable[[int], str]] = {
    "embedding, bundled model": lambda n: _core_hours(n * EMBED_S),
    "**PostgreSQL alone**: disk, one copy": lambda n: _bytes(n * (PG_TEXT + PG_WORDS + PG_VECTORS)),
    "memory for words and graph, one copy": lambda n: _bytes(n * _HOT),
    "writing": lambda n: _core_hours(n * PG_WRITE_S),
    "building graphs, one a partition": lambda n: _graphs(n, PARTITION_CHUNKS, PG_GRAPH_S),
    "partitions by organisation": lambda n: f"{ceil(n / PARTITION_CHUNKS):,}",
    "primaries of 256 GB": lambda n: f"{_servers(n, _HOT)}",
    f"servers with {COPIES - 1} replica each": lambda n: f"{_servers(n, _HOT) * COPIES}",
    f"searches a second, {CORES} cores each, organisations of {ORG_CHUNKS:,}": lambda n: _searches_a_second(
        _servers(n, _HOT)
    ),
    "**With Qdrant**: PostgreSQL's disk, one copy": lambda n: _bytes(n * (PG_TEXT + PG_WORDS)),
    "PostgreSQL primaries of 256 GB": lambda n: f"{_servers(n, PG_WORDS)}",
    "Qdrant's memory, one copy": lambda n: _bytes(n * QD_MEMORY),
    "Qdrant's disk, one copy": lambda n: _bytes(n * QD_DISK),
    "building Qdrant's graphs, one a shard": lambda n: _graphs(n, SHARD_POINTS, QD_GRAPH_S),
    "`vectors.shards`": lambda n: f"{max(MAJORITY, ceil(n / SHARD_POINTS))}",
    f"Qdrant nodes of 64 GB, `vectors.replicas` {COPIES}": lambda n: (
        f"{max(MAJORITY, _servers(n * COPIES, QD_MEMORY, NODE_BYTES))}"
    ),
}


if __name__ == "__main__":
    main()
