"""Codes in memory answer like the vectors themselves, whatever happens to a store and whoever changes it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.store.contract import document_by_id
from concord.store.sqlite import in_memory
from concord.store.sqlite.store import SQLiteStore
from concord.types import Filter, Identity, Scored
from contract.stored import EVERYTHING, document, file_of, keyed, pieces, source, unit, vectors_of
from support.scratch import scratch

DIMENSION = 8
EIGHT = Identity("test", "eight", DIMENSION)
TYPES = ("markdown", "code")
ALWAYS = {"vectors.index": "auto", "vectors.index_from": 1}
NEVER = {"vectors.index": "off"}


@pytest.fixture(params=["whole", "rounded"], autouse=True)
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a store of each size keeps beside the codes, on small ones."""
    if request.param == "rounded":
        monkeypatch.setattr(in_memory, "MOST_WHOLE", 0)
    return str(request.param)


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
    """The same file, every vector compared."""
    made = opened(tmp_path, NEVER)
    yield made
    made.close()


def fill(store: SQLiteStore, vectors: int, seed: int = 0, prefix: str = "docs") -> list[int]:
    """Store clustered vectors in documents of ten, every other of them code; return the chunk ids."""
    chance = random.Random(seed)
    centres = [[chance.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(12)]
    store.catalog.put_source(source(prefix))
    store.models.add(EIGHT, {})
    store.catalog.put_documents(
        (
            document(f"{prefix}/{seed}-{n}.md", type=TYPES[n // 10 % 2], tags=("rare",) if n == 0 else ()),
            pieces(*(f"{prefix} {seed} {number}" for number in range(n, min(n + 10, vectors)))),
        )
        for n in range(0, vectors, 10)
    )
    ids = [waiting.chunk_id for waiting in vectors_of(store).pending(0, 10 * vectors)]
    near = ([x + chance.gauss(0, 0.5) for x in chance.choice(centres)] for _ in ids)
    vectors_of(store).put(keyed((chunk_id, unit(*row)) for chunk_id, row in zip(ids, near, strict=True)))
    return ids


def queries(number: int = 20, seed: int = 99) -> list[bytes]:
    chance = random.Random(seed)
    return [unit(*(chance.gauss(0, 1) for _ in range(DIMENSION))) for _ in range(number)]


def has_codes(store: SQLiteStore) -> bool:
    """Whether the last search had codes to ask."""
    memory = store._tables._memory
    kept = memory._kept[1] if memory and memory._kept else None
    return kept is not None and kept.codes is not None


def asked(store: SQLiteStore, query: bytes, filter: Filter = EVERYTHING, limit: int = 10) -> list[Scored]:
    """Search as often as it takes until vectors are kept, and once more."""
    for _ in range(in_memory.WORTH_KEEPING + 1):
        vectors_of(store).search(query, filter, limit)
    await_codes(store)
    return vectors_of(store).search(query, filter, limit)


def await_codes(store: SQLiteStore) -> None:
    """Wait for codes that are being made."""
    memory = store._tables._memory
    if memory and memory._making:
        memory._making.join()


def assert_like_exact(store: SQLiteStore, exact: SQLiteStore, filter: Filter = EVERYTHING) -> None:
    """Assert that all answers are those of the vectors."""
    for query in queries():
        assert_alike(asked(store, query, filter), vectors_of(exact).search(query, filter, 10))


def assert_alike(scored: list[Scored], right: list[Scored]) -> None:
    """Assert that answers are the same, but for who comes first of two whose scores differ by rounding."""
    assert [hit.score for hit in scored] == pytest.approx([hit.score for hit in right], abs=1e-6)
    last = right[-1].score + 1e-5 if right else 0.0
    assert {hit.chunk_id for hit in scored if hit.score > last} == {
        hit.chunk_id for hit in right if hit.score > last
    }


@pytest.mark.promise("scale.exact-rescoring")
def test_a_store_with_codes_answers_like_one_without(store: SQLiteStore, exact: SQLiteStore):
    fill(store, 600)
    assert_like_exact(store, exact)
    assert has_codes(store)
    assert not has_codes(exact)


@pytest.mark.promise("scale.derived-vector-index")
def test_nearly_all_of_the_nearest_are_found_among_many(store: SQLiteStore, exact: SQLiteStore):
    fill(store, 6000)
    same = 0
    for query in queries(50):
        right = {hit.chunk_id for hit in vectors_of(exact).search(query, EVERYTHING, 10)}
        same += len(right & {hit.chunk_id for hit in asked(store, query)})
    assert has_codes(store)
    assert same / 500 >= 0.99


STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 30)),
    st.tuples(st.just("change"), st.integers(0, 10**6)),
    st.tuples(st.just("unembed"), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0, 10**6)),
    st.tuples(st.just("supersede"), st.integers(0, 10**6)),
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
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, max_size=14), st.integers(0, 99))
def test_any_sequence_of_changes_is_seen_at_once(steps: list[tuple[str, int]], seed: int):
    place = scratch()
    store, exact = opened(Path(place.name)), opened(Path(place.name), NEVER)
    fill(store, 40)
    numbers, chance = count(1), random.Random(seed)
    acts: dict[str, Callable[[int], object]] = {
        "add": lambda size: fill(store, size, next(numbers)),
        "change": lambda at: vectors_of(store).put(keyed([(chosen(store, at), queries(1, at)[0])])),
        "unembed": lambda _: vectors_of(store).delete_source("docs"),
        "delete": lambda at: store.catalog.delete_documents([path_of(store, at)]),
        "supersede": lambda at: supersede(store, at),
        "search": lambda limit: compared(store, exact, chance, limit),
    }
    for act, value in [("search", 3), *steps, ("search", 5)]:
        if act in ("add", "search") or store.catalog.count().documents:
            acts[act](value)
    store.close()
    exact.close()
    place.cleanup()


def chosen(store: SQLiteStore, at: int) -> int:
    chunks = store.catalog.chunks(path_of(store, at))
    return chunks[at % len(chunks)].id


def path_of(store: SQLiteStore, at: int) -> str:
    known = [document.id for document in store.catalog.documents()]
    return known[at % len(known)]


def supersede(store: SQLiteStore, at: int) -> None:
    old, new = (document_by_id(store.catalog, path_of(store, n)) for n in (at, at + 1))
    assert old is not None
    assert new is not None
    if old != new and new.superseded_by is None:
        store.catalog.update_documents([replace(old, superseded_by=new.id)])


def compared(store: SQLiteStore, exact: SQLiteStore, chance: random.Random, limit: int) -> None:
    query = queries(1, chance.randrange(1000))[0]
    for filter in FILTERS:
        assert_alike(asked(store, query, filter, limit), vectors_of(exact).search(query, filter, limit))


@pytest.mark.promise("design.narrow-filters-are-exact")
@pytest.mark.parametrize("filter", FILTERS, ids=str)
@pytest.mark.parametrize("codes_from", [1, 601], ids=["codes", "compared"])
def test_filters_lose_nothing(tmp_path: Path, exact: SQLiteStore, filter: Filter, codes_from: int):
    store = opened(tmp_path, {"vectors.index_from": codes_from})
    fill(store, 1200)
    assert_like_exact(store, exact, filter)
    assert has_codes(store)
    store.close()


def test_what_other_processes_change_is_seen_by_an_open_store(store: SQLiteStore, exact: SQLiteStore):
    ids = fill(store, 300)
    assert_like_exact(store, exact)
    other = opened(folder_of(store))
    vectors_of(other).put(
        keyed((chunk_id, query) for chunk_id, query in zip(ids[:20], queries(), strict=True))
    )
    assert_like_exact(store, exact)
    fill(other, 1200, seed=5)
    other.close()
    assert_like_exact(store, exact)
    assert has_codes(store)


def test_a_damaged_vector_takes_nobody_elses_place(store: SQLiteStore, exact: SQLiteStore):
    ids = fill(store, 300)
    right = [vectors_of(exact).search(query, EVERYTHING, 10) for query in queries()]
    vectors_of(store).put(keyed([(ids[0], unit(*[1] * DIMENSION))]))
    with store._file.transaction() as connection:
        connection.load_vec0()
        id = connection.value("SELECT embedding FROM kb_chunk_vectors WHERE chunk = :id", {"id": ids[0]})
        connection.execute("DELETE FROM kb_vectors_1 WHERE rowid = ?", (id,))
        broken = bytes.fromhex("0000c07f" * DIMENSION)  # not a number
        connection.execute("INSERT INTO kb_vectors_1 (rowid, embedding) VALUES (?, ?)", (id, broken))
    for query, hits in zip(queries(), right, strict=True):
        left = [hit for hit in hits if hit.chunk_id != ids[0]]
        assert_alike(asked(store, query)[: len(left)], left)


def folder_of(store: SQLiteStore) -> Path:
    return Path(file_of(store)).parent
