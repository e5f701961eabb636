"""Vectors in Qdrant through our index, beside the bare client asked for the same.

The server is KB_TEST_QDRANT_URL, or the tests' shim: Qdrant's engine in this process behind HTTP. Both sides
pay for it alike, so the ratio is what the ledger and the check against the catalog cost.
"""

from __future__ import annotations

import random
import tempfile
from array import array
from collections.abc import Iterator
from itertools import count
from math import hypot

from benchmarks.measure import Row, absent, at_most, cost_of, cpu_ms, elapsed_ms, in_turn, milliseconds, sized
from benchmarks.qdrant_lab import server
from benchmarks.stored import keyed, vectors_of
from benchmarks.synthetic import DIMENSION, SEED
from concord.core.config import load_settings
from concord.parts import Parts
from concord.store.contract import Store
from concord.types import Document, Filter, Identity, Piece, Source, Vector

CHUNKS = sized(5_000, 200)
CHUNKS_A_DOCUMENT = 20
QUERIES = sized(100, 2)
CANDIDATES = 40
BATCH = 64  # chunks that ingest embeds and stores together
WRITES = sized(20, 2)
MOST_SEARCH = 1.5
MOST_WRITE = 1.5
IDENTITY = Identity("bench", "synthetic", DIMENSION)


def run() -> Iterator[Row]:
    """Fill a store, then ask and write both ways."""
    try:
        import qdrant_client  # noqa: F401
        import qdrant_edge  # noqa: F401
    except ModuleNotFoundError as fault:
        yield absent("search in Qdrant", f"{fault.name} is not installed")
        return
    with server() as url, tempfile.TemporaryDirectory() as folder:
        given = {"store.url": f"sqlite://{folder}", "vectors.url": url, "vectors.collection": "bench"}
        parts = Parts(load_settings(given, {"KB_HOME": folder}), "default")
        _fill(parts.store)
        yield from _search(parts.store, url)
        yield from _write(parts.store, url)
        parts.close()


def _fill(store: Store) -> None:
    store.catalog.put_source(Source("docs", "docs", None, "notes", "docs"))
    store.models.add(IDENTITY, {})
    chance = random.Random(SEED)
    for n in range(CHUNKS // CHUNKS_A_DOCUMENT):
        document = Document(f"d{n}", "docs", f"docs/{n}.md", "text", f"Page {n}")
        texts = [Piece(f"chunk {n} {at}", at, at + 1, at + 1, at + 1) for at in range(CHUNKS_A_DOCUMENT)]
        ids = store.catalog.put_documents([(document, texts)])[0]
        vectors_of(store).put(keyed((chunk_id, _vector(chance)) for chunk_id in ids))


def _vector(chance: random.Random) -> Vector:
    numbers = [chance.gauss(0, 1) for _ in range(DIMENSION)]
    length = hypot(*numbers)
    return array("f", [number / length for number in numbers]).tobytes()


def _search(store: Store, url: str) -> Iterator[Row]:
    from qdrant_client import QdrantClient

    from concord.store.qdrant.points import Owner

    condition = Owner("default", store.outbox.home().key, IDENTITY).condition(Filter(), None)
    client, chance, turns = QdrantClient(url=url, check_compatibility=False), random.Random(1), count()
    asked = [_vector(chance) for _ in range(QUERIES)]
    floats = [array("f", vector).tolist() for vector in asked]
    bare = count()
    costs = in_turn(
        QUERIES,
        {
            "ours": lambda: cost_of(
                lambda: vectors_of(store).search(asked[next(turns)], Filter(), CANDIDATES)
            ),
            "bare": lambda: cost_of(
                lambda: client.query_points(
                    "bench",
                    query=floats[next(bare)],
                    query_filter=condition,
                    limit=CANDIDATES,
                    with_payload=False,
                )
            ),
        },
    )
    what = f"nearest {CANDIDATES} of {CHUNKS:,} chunks in Qdrant"
    for clock, name in ((elapsed_ms, "p50"), (cpu_ms, "cpu")):
        ours, theirs = clock(costs["ours"]), clock(costs["bare"])
        row = at_most(f"{what}, {name}", milliseconds(ours), milliseconds(theirs), ours / theirs, MOST_SEARCH)
        yield row if clock is elapsed_ms else row._replace(target="", is_met=None)
    client.close()


def _write(store: Store, url: str) -> Iterator[Row]:
    """Send the same points again, ours with their payloads from the catalog and noted in the outbox."""
    from qdrant_client import QdrantClient, models

    from concord.store.qdrant.points import Owner

    client = QdrantClient(url=url, check_compatibility=False)
    ids = [chunk.id for n in range(BATCH // CHUNKS_A_DOCUMENT + 1) for chunk in store.catalog.chunks(f"d{n}")]
    batch = list(vectors_of(store).fetch(ids[:BATCH]).items())
    owner = Owner("default", store.outbox.home().key, IDENTITY)
    points = [
        models.PointStruct(
            id=owner.point_id(chunk_id),
            vector=array("f", vector).tolist(),
            payload=owner.payload(*store.catalog.read([chunk_id])[chunk_id]),
        )
        for chunk_id, vector in batch
    ]
    costs = in_turn(
        WRITES,
        {
            "ours": lambda: cost_of(lambda: vectors_of(store).put(keyed(batch))),
            "bare": lambda: cost_of(lambda: client.upsert("bench", points, wait=True)),
        },
    )
    ours, theirs = elapsed_ms(costs["ours"]), elapsed_ms(costs["bare"])
    what = f"{BATCH} vectors written to Qdrant, p50"
    yield at_most(what, milliseconds(ours), milliseconds(theirs), ours / theirs, MOST_WRITE)
    client.close()
