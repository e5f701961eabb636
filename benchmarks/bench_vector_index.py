"""Searching vectors of a SQLite store by their codes, beside comparing every one of them.

    KB_BENCH_SIZES=100000,1000000 python -m benchmarks vector_index

Vectors are made up, seeded and clustered: topics hold subjects, subjects hold some forty chunks. Questions
are further such vectors. A store is filled once and kept. What was embedded for the collections of
`python -m benchmarks quality`, if that has run here, is searched as well: real vectors, each of the questions
one that was left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from itertools import count
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.measure import (
    Cost,
    Row,
    absent,
    at_least,
    at_most,
    await_codes,
    cost_of,
    cpu_ms,
    elapsed_ms,
    in_turn,
    milliseconds,
    quick_environment,
    sized,
)
from benchmarks.stored import active_model, keyed, vectors_of
from benchmarks.synthetic import DIMENSION, SEED, Floats, cache_folder, unit_rows
from concord.core.errors import KBError
from concord.embed.bundled import BundledEmbedder
from concord.store.sqlite.in_memory import MOST_WHOLE, WORTH_KEEPING
from concord.store.sqlite.store import SQLiteStore
from concord.store.sqlite.vectors import CODES_FROM
from concord.types import ChunkId, Document, DocumentType, Filter, Piece, Source

SIZES = sized("100000", "400")
QUERIES = sized(60, 4)
WARM_UP = WORTH_KEEPING + 2
CANDIDATES = 40  # as a search asks for
TOP = 10
LEAST_RECALL = {TOP: 0.99, CANDIDATES: 0.98}
MOST_SHARE = 0.25  # of the processor time of comparing every vector
BATCH = 5000
CHUNKS_A_DOCUMENT = 10
CHUNKS_A_TOPIC, CHUNKS_A_SUBJECT = 2000, 40
SUBJECT_SPREAD, CHUNK_SPREAD = 0.9, 0.7
TYPES: tuple[DocumentType, ...] = ("markdown", "code")
FILTERS = {
    "every second document": Filter(type="code"),
    "a hundredth of the documents": Filter(tags=("rare",)),
    "five documents": Filter(tags=("rarest",)),
}
ON, OFF = {"vectors.index_from": sized(CODES_FROM, 1)}, {"vectors.index": "off"}

_SEARCHING = """
import sys
from concord.store.sqlite.store import SQLiteStore
from concord.types import Filter
store = SQLiteStore.open(sys.argv[1], "default")
vectors = store.models.index(store.catalog.snapshot().active.identity)
for line in sys.stdin:
    vectors.search(bytes.fromhex(line), Filter(), 40)
for line in open("/proc/self/status", encoding="ascii"):
    if line.startswith(("VmRSS", "RssAnon")):
        print(line.split()[1])
"""


def run() -> Iterator[Row]:
    """Compare at each size, then on real vectors."""
    for size in os.environ.get("KB_BENCH_SIZES", SIZES).split(","):
        yield from _at(int(size))
    yield from _real()


def _at(size: int) -> Iterator[Row]:
    folder = _filled(size)
    queries = [row.tobytes() for row in _clustered(size, QUERIES + WARM_UP, seed=-1)]
    with closing(_opened(folder, ON)) as ours, closing(_opened(folder, OFF)) as exact:
        yield from _searching(ours, exact, queries, Filter(), f"{size:,} vectors")
        for name, filter in FILTERS.items():
            yield from _searching(ours, exact, queries, filter, f"{size:,} vectors, {name}")
        yield _memory(folder, queries, f"{size:,} vectors")
    yield _making(folder, queries, f"{size:,} vectors")


def _searching(
    ours: SQLiteStore, exact: SQLiteStore, queries: Sequence[bytes], filter: Filter, what: str
) -> Iterator[Row]:
    stores = {"ours": ours, "exact": exact}
    for query in queries[QUERIES:]:
        for store in stores.values():
            vectors_of(store).search(query, filter, CANDIDATES)
    await_codes()
    found: dict[str, list[list[ChunkId]]] = {name: [] for name in stores}

    def ask(name: str, number: int) -> None:
        hits = vectors_of(stores[name]).search(queries[number], filter, CANDIDATES)
        found[name].append([hit.chunk_id for hit in hits])

    costs = _in_turn(ask)
    work, bare = cpu_ms(costs["ours"]), cpu_ms(costs["exact"])
    row = at_most(f"{what}: search, cpu", milliseconds(work), milliseconds(bare), work / bare, MOST_SHARE)
    is_held = filter == Filter() and ours.catalog.count().vectors > MOST_WHOLE
    yield row if is_held else row._replace(target="", is_met=None)
    waited, bare = elapsed_ms(costs["ours"]), elapsed_ms(costs["exact"])
    yield Row(f"{what}: search, p50", milliseconds(waited), milliseconds(bare), waited / bare)
    for top in (TOP, CANDIDATES):
        recall = _recall(found["ours"], found["exact"], top)
        all_found = "1: all compared"
        yield at_least(f"{what}: recall@{top}", f"{recall:.3f}", all_found, recall, LEAST_RECALL[top])


def _in_turn(ask: Callable[[str, int], object]) -> dict[str, list[Cost]]:
    """Ask every question of both, and return what that took each."""
    numbers = {name: count() for name in ("ours", "exact")}

    def once(name: str) -> Cost:
        number = next(numbers[name])
        return cost_of(lambda: ask(name, number))

    return in_turn(QUERIES, {name: partial(once, name) for name in numbers})


def _recall(found: Sequence[Sequence[ChunkId]], right: Sequence[Sequence[ChunkId]], top: int) -> float:
    pairs = zip(found, right, strict=True)
    return mean(len({*ours[:top]} & {*best[:top]}) / max(1, len(best[:top])) for ours, best in pairs)


def _making(folder: Path, queries: Sequence[bytes], what: str) -> Row:
    """Make codes, as a thread does after so many searches."""
    with closing(_opened(folder, ON)) as store:
        for query in queries[: WORTH_KEEPING + 1]:
            vectors_of(store).search(query, Filter(), CANDIDATES)
        cost = cost_of(await_codes)
    return Row(f"{what}: making codes beside searches, cpu", milliseconds(cpu_ms([cost])))


def _memory(folder: Path, queries: Sequence[bytes], what: str) -> Row:
    """Return what a process takes that has searched; its own is what no other shares with it."""
    command = [sys.executable, "-c", _SEARCHING, f"sqlite://{folder}"]
    asked = "\n".join(query.hex() for query in queries)
    done = subprocess.run(
        command, check=True, capture_output=True, input=asked, encoding="ascii", env=quick_environment()
    )
    in_all, own = (int(line) / 1024 for line in done.stdout.split())
    return Row(f"{what}: memory after {len(queries)} searches", f"{in_all:.0f} MB", f"{own:.0f} MB its own")


def _opened(folder: Path, settings: Mapping[str, object]) -> SQLiteStore:
    return SQLiteStore.open(f"sqlite://{folder}", "default", settings)


def _filled(size: int) -> Path:
    """Return the folder of a store of so many vectors, filled now or by an earlier run."""
    folder = cache_folder() / f"vectors-of-texts-{size}-{SEED}"
    if not folder.is_dir():
        print(f"  filling a store with {size:,} vectors, once", flush=True)
        making = folder.with_name(folder.name + ".making")
        shutil.rmtree(making, ignore_errors=True)
        batches = (_clustered(size, min(BATCH, size - start), seed=start) for start in range(0, size, BATCH))
        with closing(_opened(making, OFF)) as store:
            _fill(store, batches)
        making.rename(folder)
    return folder


def _fill(store: SQLiteStore, batches: Iterator[Floats]) -> None:
    source = Source("synthetic", "synthetic", None, "notes", "synthetic")
    store.catalog.put_source(source)
    store.models.add(BundledEmbedder.identity, {})
    numbers = count()
    for rows in batches:
        sizes = [len(part) for part in np.array_split(rows, max(1, len(rows) // CHUNKS_A_DOCUMENT))]
        store.catalog.put_documents((_document(source, next(numbers)), _pieces(size)) for size in sizes)
        ids = [waiting.chunk_id for waiting in vectors_of(store).pending(0, len(rows))]
        vectors_of(store).put(
            keyed((chunk_id, row.tobytes()) for chunk_id, row in zip(ids, rows, strict=True))
        )


def _document(source: Source, number: int) -> Document:
    tags = ("rare",) * (number % 100 == 0) + ("rarest",) * (number < 5)
    path = f"synthetic/{number}.md"
    return Document(path, source.id, path, TYPES[number % 2], f"Page {number}", tags=tags)


def _pieces(size: int) -> list[Piece]:
    return [Piece(f"text {at}", 0, 6, at + 1, at + 1) for at in range(size)]


@cache
def _subjects(size: int) -> Floats:
    chance = np.random.default_rng([SEED, size])
    topics = unit_rows(chance.standard_normal((max(8, size // CHUNKS_A_TOPIC), DIMENSION)))
    subjects = max(32, size // CHUNKS_A_SUBJECT)
    around = unit_rows(chance.standard_normal((subjects, DIMENSION)))
    return unit_rows(topics[chance.integers(len(topics), size=subjects)] + SUBJECT_SPREAD * around)


def _clustered(size: int, number: int, seed: int) -> Floats:
    subjects, chance = _subjects(size), np.random.default_rng([SEED, size, seed + 1])
    around = unit_rows(chance.standard_normal((number, DIMENSION)))
    return unit_rows(subjects[chance.integers(len(subjects), size=number)] + CHUNK_SPREAD * around)


def _real() -> Iterator[Row]:
    known = _embedded()
    if len(known) <= QUERIES + WARM_UP:
        yield absent("real vectors", "`python -m benchmarks quality` has not run here")
        return
    order = np.random.default_rng(SEED).permutation(len(known))
    asked, kept = known[order[: QUERIES + WARM_UP]], known[order[QUERIES + WARM_UP :]]
    what = f"{len(kept):,} real vectors"
    with TemporaryDirectory() as scratch:
        with closing(_opened(Path(scratch), OFF)) as store:
            _fill(store, (kept[at : at + BATCH] for at in range(0, len(kept), BATCH)))
        with closing(_opened(Path(scratch), ON)) as ours, closing(_opened(Path(scratch), OFF)) as exact:
            yield from _searching(ours, exact, [row.tobytes() for row in asked], Filter(), what)


def _embedded() -> Floats:
    """Return the vectors of all collections that were embedded here; copies of their stores are read."""
    rows: list[Floats] = []
    for path in sorted((cache_folder() / "home" / "cache" / "collections").glob("*/default.db")):
        with TemporaryDirectory() as scratch, suppress(KBError):
            for file in path.parent.glob("default.db*"):
                shutil.copy(file, scratch)
            with closing(_opened(Path(scratch), OFF)) as store:
                if active_model(store) == BundledEmbedder.identity:
                    found = vectors_of(store).fetch(list(range(1, 10 * store.catalog.count().chunks)))
                    rows += [np.frombuffer(vector, dtype="<f4") for vector in found.values()]
    return np.array(rows, dtype="<f4")
