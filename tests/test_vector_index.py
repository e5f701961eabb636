"""An index beside a SQLite store answers like the vectors themselves, whatever happens to either of them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.backends.sqlite import graph_upkeep
from concord.backends.sqlite.graph_table import GraphRow, graph_row
from concord.backends.sqlite.store import SQLiteStore
from concord.backends.sqlite.vec_table import find_space
from concord.core.reports import VectorIndexState
from concord.knowledge import KnowledgeBase
from concord.types import Filter, Identity, Scored, silent
from contract.stored import EVERYTHING, IDENTITY, document, pieces, source, unit
from support.recorders import write
from support.scratch import scratch

pytest.importorskip("usearch", reason="pip install 'concord-kb[index]'")

DIMENSION = 8
EIGHT = Identity("test", "eight", DIMENSION)
TYPES = ("markdown", "code")
ALWAYS = {"vectors.index": "auto", "vectors.index_from": 1}
NEVER = {"vectors.index": "off"}
# With as much effort as there are vectors a graph proposes them all: these tests are about which of them
# count. How many it finds with little effort has a test of its own.
UTMOST = 4096


@pytest.fixture
def tmp_path(folder: Path) -> Path:
    """A folder in memory: these tests write many small transactions."""
    return folder


def opened(place: Path, options: Mapping[str, Any] = ALWAYS) -> SQLiteStore:
    return SQLiteStore.open(f"sqlite://{place}", "default", options)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    made = opened(tmp_path)
    yield made
    made.close()


@pytest.fixture
def exact(tmp_path: Path) -> Iterator[SQLiteStore]:
    """The same file, searched without the index."""
    made = opened(tmp_path, NEVER)
    yield made
    made.close()


def fill(store: SQLiteStore, vectors: int, seed: int = 0, prefix: str = "docs") -> list[int]:
    """Store clustered vectors in documents of ten, every other of them code; return the chunk ids."""
    chance = random.Random(seed)
    centres = [[chance.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(12)]
    store.catalog.put_source(source(prefix))
    store.vectors.prepare(EIGHT)
    store.catalog.put_documents(
        (
            document(f"{prefix}/{seed}-{n}.md", type=TYPES[n // 10 % 2], tags=("rare",) if n == 0 else ()),
            pieces(*map(str, range(min(10, vectors - n)))),
        )
        for n in range(0, vectors, 10)
    )
    ids = [one.chunk_id for one in store.vectors.pending(0, 10 * vectors)]
    near = ([x + chance.gauss(0, 0.5) for x in chance.choice(centres)] for _ in ids)
    store.vectors.put((chunk_id, unit(*row)) for chunk_id, row in zip(ids, near, strict=True))
    return ids


def queries(number: int = 20, seed: int = 99) -> list[bytes]:
    chance = random.Random(seed)
    return [unit(*(chance.gauss(0, 1) for _ in range(DIMENSION))) for _ in range(number)]


def row_of(store: SQLiteStore) -> GraphRow | None:
    with store._readers.connection() as connection:
        space = find_space(connection, None)
        return graph_row(connection, space.key) if space else None


def file_of(store: SQLiteStore) -> Path:
    row = row_of(store)
    assert row is not None
    return folder_of(store) / row.file


def graphs(store: SQLiteStore) -> list[Path]:
    return [path for path in folder_of(store).iterdir() if "-graph-" in path.name]


def folder_of(store: SQLiteStore) -> Path:
    return Path(store.path).parent


def uses_index(store: SQLiteStore) -> bool:
    """Whether the last search had a graph to ask."""
    return store.vectors._graph_search._graph is not None


def assert_like_exact(store: SQLiteStore, exact: SQLiteStore, filter: Filter = EVERYTHING) -> None:
    """Assert that all answers are those of the vectors, scores and order included."""
    for query in queries():
        assert asked(store, query, filter, 10) == asked(exact, query, filter, 10)


def asked(
    store: SQLiteStore, query: bytes, filter: Filter, limit: int, effort: int | None = UTMOST
) -> list[Scored]:
    """Search without what a process keeps in memory after a few searches: numpy rounds otherwise."""
    store.vectors._resident = type(store.vectors._resident)()
    return store.vectors.search(query, filter, limit, ef_search=effort)


@pytest.mark.promise("scale.exact-rescoring")
def test_a_store_with_an_index_answers_like_one_without(store: SQLiteStore, exact: SQLiteStore):
    fill(store, 600)
    store.tend(silent)
    assert_like_exact(store, exact)
    assert uses_index(store)
    assert not uses_index(exact)


@pytest.mark.promise("scale.derived-vector-index")
def test_most_of_the_nearest_are_found_among_many(store: SQLiteStore, exact: SQLiteStore):
    fill(store, 6000)
    store.tend(silent)
    found = expected = 0
    for query in queries(50):
        right = set(asked(exact, query, EVERYTHING, 10))
        found += len(right & set(asked(store, query, EVERYTHING, 10, effort=None)))
        expected += len(right)
    assert uses_index(store)
    assert found / expected >= 0.95


STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 30)),
    st.tuples(st.just("change"), st.integers(0, 10**6)),
    st.tuples(st.just("unembed"), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0, 10**6)),
    st.tuples(st.just("supersede"), st.integers(0, 10**6)),
    st.tuples(st.just("index"), st.just(0)),
    st.tuples(st.just("search"), st.integers(1, 8)),
)
FILTERS = (
    EVERYTHING,
    Filter(include_superseded=True),
    Filter(type="code"),
    Filter(tags=("rare",)),
    Filter(path="docs/*-1?.md"),
)


@pytest.mark.promise("scale.exact-rescoring")
@settings(max_examples=40)
@given(st.lists(STEP, max_size=14), st.integers(0, 99))
def test_any_sequence_of_changes_is_seen_at_once(steps: list[tuple[str, int]], seed: int):
    place = scratch()
    store, exact = opened(Path(place.name)), opened(Path(place.name), NEVER)
    fill(store, 40)
    store.tend(silent)
    numbers, chance = count(1), random.Random(seed)
    acts: dict[str, Callable[[int], object]] = {
        "add": lambda size: fill(store, size, next(numbers)),
        "change": lambda at: store.vectors.put([(chosen(store, at), queries(1, at)[0])]),
        "unembed": lambda _: store.vectors.delete_source("docs"),
        "delete": lambda at: store.catalog.delete_documents([path_of(store, at)]),
        "supersede": lambda at: supersede(store, at),
        "index": lambda _: rebuilt(store),
        "search": lambda limit: compared(store, exact, chance, limit),
    }
    for act, value in [*steps, ("search", 5)]:
        if act in ("add", "index", "search") or store.catalog.counts().documents:
            acts[act](value)
    store.close()
    exact.close()
    place.cleanup()


def chosen(store: SQLiteStore, at: int) -> int:
    chunks = store.catalog.chunks_of(path_of(store, at))
    return chunks[at % len(chunks)].id


def path_of(store: SQLiteStore, at: int) -> str:
    known = [one.id for one in store.catalog.documents()]
    return known[at % len(known)]


def supersede(store: SQLiteStore, at: int) -> None:
    one, other = (store.catalog.document(path_of(store, n)) for n in (at, at + 1))
    assert one is not None
    assert other is not None
    if one != other and other.superseded_by is None:
        store.catalog.update_document(replace(one, superseded_by=other.id))


def rebuilt(store: SQLiteStore) -> None:
    """Bring the index up to date now, though so few changes would not call for it."""
    graph_upkeep._MOST_UNINDEXED, usual = 0, graph_upkeep._MOST_UNINDEXED
    try:
        store.tend(silent)
    finally:
        graph_upkeep._MOST_UNINDEXED = usual


def compared(store: SQLiteStore, exact: SQLiteStore, chance: random.Random, limit: int) -> None:
    query = queries(1, chance.randrange(1000))[0]
    for filter in FILTERS:
        assert asked(store, query, filter, limit) == asked(exact, query, filter, limit)


@pytest.mark.promise("design.narrow-filters-are-exact")
@pytest.mark.parametrize("filter", FILTERS, ids=str)
def test_filters_lose_nothing(store: SQLiteStore, exact: SQLiteStore, filter: Filter):
    fill(store, 1200)
    store.tend(silent)
    assert_like_exact(store, exact, filter)


def test_equals_come_in_order_of_id_also_where_the_list_ends(store: SQLiteStore):
    ids = fill(store, 400)
    query = queries(1)[0]
    store.vectors.put((chunk_id, query) for chunk_id in ids[100:300])
    rebuilt(store)
    assert [hit.chunk_id for hit in store.vectors.search(query, EVERYTHING, 7)] == ids[100:107]


def test_few_changes_wait_and_many_are_taken_into_the_index(store: SQLiteStore, exact: SQLiteStore):
    fill(store, 100)
    store.tend(silent)
    first = file_of(store)
    fill(store, 50, seed=1)
    store.tend(silent)
    assert file_of(store) == first
    assert store.index_state() == VectorIndexState(100, first.stat().st_size)
    fill(store, 1000, seed=2)
    store.tend(silent)
    assert file_of(store) != first
    assert graphs(store) == [file_of(store)]
    assert store.index_state().covered == 1150
    assert_like_exact(store, exact)


def test_an_index_of_mostly_deleted_vectors_is_built_anew(store: SQLiteStore, exact: SQLiteStore):
    fill(store, 1500)
    fill(store, 200, prefix="wiki")
    store.tend(silent)
    store.catalog.remove_source("docs")
    assert_like_exact(store, exact)
    store.tend(silent)
    row = row_of(store)
    assert row is not None
    assert row.vectors == 200
    assert_like_exact(store, exact)


def test_what_is_dead_in_an_index_that_has_grown_is_no_reason_to_write_it_again(store: SQLiteStore):
    ids = fill(store, 6000)
    store.tend(silent)
    store.vectors.put(list(store.vectors.fetch(ids[:1100]).items()))
    store.tend(silent)
    row = row_of(store)
    assert row is not None
    assert (row.vectors, row.alive) == (7100, 6000)
    store.tend(silent)
    assert row_of(store) == row


def test_below_the_threshold_there_is_none_and_one_that_was_there_goes(tmp_path: Path):
    with_index, without = opened(tmp_path), opened(tmp_path, {"vectors.index_from": 101})
    fill(with_index, 100)
    without.tend(silent)
    assert not graphs(without)
    assert without.index_state().absent == "from 101 vectors on"
    with_index.tend(silent)
    assert graphs(with_index)
    without.tend(silent)
    assert not graphs(without)
    assert row_of(without) is None
    fill(without, 10, seed=1)  # of which nobody takes note now
    with without._readers.connection() as connection:
        assert not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'kb_unindexed'").get
    with_index.close()
    without.close()


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _garbled(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def _noise(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


HARM = {"deleted": Path.unlink, "cut": _cut, "emptied": _emptied, "garbled": _garbled, "noise": _noise}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
@pytest.mark.parametrize("is_open", [True, False], ids=["while it is open", "before it is opened"])
def test_a_damaged_index_is_not_asked_and_the_next_sync_builds_it(
    store: SQLiteStore, exact: SQLiteStore, harm: Callable[[Path], None], is_open: bool
):
    fill(store, 300)
    store.tend(silent)
    if is_open:
        assert_like_exact(store, exact)
    harm(file_of(store))
    assert_like_exact(store, exact)
    assert not uses_index(store)
    assert "sync builds it" in str(store.index_state().absent)
    (finding,) = store.check()
    assert (finding.fault, finding.is_repairable) == ("vector-index", True)
    store.tend(silent)
    assert store.check() == []
    assert_like_exact(store, exact)
    assert uses_index(store)


def test_damage_that_does_not_show_is_found_by_the_doctor(store: SQLiteStore):
    fill(store, 300)
    store.tend(silent)
    path = file_of(store)
    before = path.stat()
    _garbled(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    (finding,) = store.check()
    assert "missing or damaged" in finding.message
    generation = store.catalog.generation()
    store.repair([finding])
    store.tend(silent)
    assert store.check() == []
    assert store.catalog.generation() == generation  # nothing that can be searched has changed


def test_a_copied_store_keeps_its_index(store: SQLiteStore, exact: SQLiteStore, tmp_path_factory):
    fill(store, 300)
    store.tend(silent)
    store.close()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for path in folder_of(store).iterdir():
        shutil.copyfile(path, elsewhere / path.name)
    copy = opened(elsewhere)
    assert_like_exact(copy, exact)
    assert uses_index(copy)
    copy.close()


def test_an_index_of_a_later_moment_is_not_taken_for_one_of_now(store: SQLiteStore, tmp_path: Path):
    """A database that came back from a backup, beside the index of what was lost, which has since grown."""
    ids = fill(store, 100)
    store.tend(silent)
    store.close()
    backup = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    store = opened(tmp_path)
    store.vectors.put([(ids[0], queries(1)[0])])
    rebuilt(store)
    store.close()
    Path(store.path).write_bytes(backup[Path(store.path).name])
    store, exact = opened(tmp_path), opened(tmp_path, NEVER)
    fill(store, 100, seed=1)
    fill(store, 100, seed=2)
    assert_like_exact(store, exact)
    assert not uses_index(store)
    store.tend(silent)
    assert graphs(store) == [file_of(store)]
    store.close()
    exact.close()


def test_another_model_never_meets_this_ones_index(store: SQLiteStore):
    ids = fill(store, 200)
    store.tend(silent)
    store.vectors.delete_source("docs")
    store.vectors.prepare(IDENTITY)
    store.vectors.put((chunk_id, unit(1, n, 0, 1)) for n, chunk_id in enumerate(ids))
    query = unit(1, 7, 0, 1)
    assert store.vectors.search(query, EVERYTHING, 1)[0].chunk_id == ids[7]
    assert not uses_index(store)
    store.tend(silent)
    assert store.vectors.search(query, EVERYTHING, 1)[0].chunk_id == ids[7]
    assert uses_index(store)
    assert len(graphs(store)) == 1


def test_each_model_has_an_index_of_its_own(store: SQLiteStore):
    ids = fill(store, 200)
    store.spaces.add(IDENTITY, {})
    store.spaces.of(IDENTITY).put((chunk_id, unit(1, n, 0, 1)) for n, chunk_id in enumerate(ids))
    store.tend(silent)
    assert len(graphs(store)) == 2
    assert store.spaces.of(IDENTITY).search(unit(1, 7, 0, 1), EVERYTHING, 1)[0].chunk_id == ids[7]
    store.spaces.drop(IDENTITY)
    store.tend(silent)
    assert graphs(store) == [file_of(store)]


def test_what_other_processes_change_is_seen_by_an_open_store(store: SQLiteStore, exact: SQLiteStore):
    ids = fill(store, 300)
    store.tend(silent)
    assert_like_exact(store, exact)
    other = opened(folder_of(store))
    other.vectors.put((chunk_id, query) for chunk_id, query in zip(ids[:20], queries(), strict=True))
    assert_like_exact(store, exact)
    fill(other, 1200, seed=5)
    other.tend(silent)
    other.close()
    assert_like_exact(store, exact)
    assert uses_index(store)


KILLED = """
import os, signal, sys
from concord.core import plugins
from concord.backends.sqlite import graph_upkeep
from concord.backends.sqlite.store import SQLiteStore
from concord.types import silent

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(graph_upkeep, sys.argv[2], die)
SQLiteStore.open(sys.argv[1], "default", {"vectors.index_from": 1}).tend(silent)
"""


@pytest.mark.parametrize("moment", ["new_file", "seal", "put_graph"])
def test_a_process_that_is_killed_while_it_builds_leaves_exact_answers(
    store: SQLiteStore, exact: SQLiteStore, moment: str
):
    fill(store, 300)
    command = [sys.executable, "-c", KILLED, f"sqlite://{folder_of(store)}", moment]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert_like_exact(store, exact)
    assert not uses_index(store)
    store.tend(silent)
    assert_like_exact(store, exact)
    assert uses_index(store)
    assert graphs(store) == [file_of(store)]


TENDED = """
import sys
from concord.backends.sqlite.store import SQLiteStore
from concord.types import silent

store = SQLiteStore.open(sys.argv[1], "default", {"vectors.index_from": 1})
for _ in range(5):
    store.tend(silent)
"""


def test_processes_that_tend_one_store_at_once_leave_one_index(store: SQLiteStore, exact: SQLiteStore):
    fill(store, 2000)
    command = [sys.executable, "-c", TENDED, f"sqlite://{folder_of(store)}"]
    crowd = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    fill(store, 1500, seed=3)
    assert [(one.communicate(timeout=60)[1], one.returncode) for one in crowd] == [(b"", 0)] * 3
    store.tend(silent)
    assert graphs(store) == [file_of(store)]
    assert store.check() == []
    for query in queries(5):
        assert asked(store, query, EVERYTHING, 1) == asked(exact, query, EVERYTHING, 1)


def test_vectors_put_while_an_index_is_built_are_not_missed(store: SQLiteStore, exact: SQLiteStore):
    ids = fill(store, 300)
    late = queries()

    def put_some(stage: str, done: int, total: int | None) -> None:
        store.vectors.put(zip(ids[:20], late, strict=True))

    store.tend(put_some)
    row = row_of(store)
    assert row is not None
    assert row.vectors == 300
    for chunk_id, query in zip(ids, late, strict=False):
        assert store.vectors.search(query, EVERYTHING, 1)[0].chunk_id == chunk_id
    assert uses_index(store)
    assert_like_exact(store, exact)


def test_an_index_that_cannot_be_written_is_no_reason_to_fail(
    store: SQLiteStore, exact: SQLiteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    fill(store, 100)
    full = folder_of(store) / "no such folder" / "file"
    monkeypatch.setattr(graph_upkeep, "new_file", lambda *_: str(full))
    store.tend(silent)
    assert "no vector index could be built" in caplog.text
    assert_like_exact(store, exact)
    assert row_of(store) is None


def test_without_the_library_every_vector_is_compared(
    store: SQLiteStore, exact: SQLiteStore, monkeypatch: pytest.MonkeyPatch
):
    fill(store, 100)
    store.tend(silent)
    for name in ("usearch", "usearch.index"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "concord.backends.sqlite.graph")
    assert_like_exact(store, exact)
    assert not uses_index(store)
    assert "concord-kb[index]" in str(store.index_state().absent)
    (finding,) = store.check()
    assert (finding.hint, finding.is_repairable) == ("pip install 'concord-kb[index]'", False)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    for n in range(30):
        write(tmp_path / "docs" / f"{n}.md", f"# Page {n}\n\nThe heron number {n} waits.\n")
    with opened_kb(tmp_path) as knowledge:
        knowledge.add(tmp_path / "docs")
        yield knowledge


def opened_kb(place: Path, **options: object) -> KnowledgeBase:
    usual = {"store__url": f"sqlite://{place}/store", "embed__provider": "hashing", "vectors__index_from": 10}
    return KnowledgeBase.open(**usual | options)


def index_of(kb: KnowledgeBase) -> VectorIndexState:
    state = kb.stats().index
    assert state is not None
    return state


def test_files_of_other_organisations_are_left_alone(store: SQLiteStore, tmp_path: Path):
    fill(store, 50)
    others = ["default.db-graph-1.db", "other.db-graph-1-0123456789abcdef", "default.db-graph-1-x"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / "default.db-graph-1-0123456789abcdef").touch()
    store.tend(silent)
    assert {path.name for path in graphs(store)} == {*others, file_of(store).name}
