"""What PostgreSQL alone has to prove: walls between organisations, migrations, indexes, several writers."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord import KnowledgeBase
from concord import migrate as moving
from concord.backends.globs import glob_matches
from concord.backends.memory import MemoryStore
from concord.cli.main import main
from concord.config import load_settings
from concord.errors import (
    BackendDown,
    BadValue,
    CorruptStore,
    SchemaTooNew,
    StoreBusy,
    StoreError,
    VectorsElsewhere,
)
from concord.parts import Parts, silent
from concord.protocols import Store
from concord.types import AllOf, AnyOf, Feedback, Filter, Match, Phrase, Piece, Scored, Without, Word
from contract.stored import EVERYTHING, IDENTITY, document, embed, pieces, put, source, unit
from postgres_server import fresh_org, server_url
from recorders import write

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from psycopg_pool import PoolTimeout  # noqa: E402

from concord.backends.postgres import migrations, scope, upkeep, vectors  # noqa: E402
from concord.backends.postgres.connections import MOST_CONNECTIONS  # noqa: E402
from concord.backends.postgres.faults import is_lost  # noqa: E402
from concord.backends.postgres.filters import _pattern  # noqa: E402
from concord.backends.postgres.plain_words import ReadWords  # noqa: E402
from concord.backends.postgres.rows import array_of, loaded, stored  # noqa: E402
from concord.backends.postgres.store import PostgresStore  # noqa: E402
from concord.backends.postgres.vector_form import Embedding  # noqa: E402

DOCS = Path(__file__).parent.parent / "docs"
TABLES = (
    "kb_sources",
    "kb_documents",
    "kb_chunks",
    "kb_pending",
    "kb_spaces",
    "kb_cache_usage",
    "kb_gone",
    "kb_accesses",
    "kb_feedback",
    "kb_segments",
    "kb_postings",
    "kb_unsettled",
    "kb_embedding_cache",
    "kb_vectors_4",
)


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    with closing(PostgresStore.open(server_url(), fresh_org())) as made:
        yield made


@pytest.fixture
def administrator() -> Iterator[Any]:
    """A connection that no policy holds back."""
    with psycopg.connect(server_url(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def database(administrator: Any) -> Iterator[str]:
    """The URL of a database in which nothing has been made yet."""
    name = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE DATABASE {name}")
    yield server_url().replace("/postgres?", f"/{name}?")
    administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def guest() -> str:
    """The URL for a role that is no administrator: for such a one the policies are in force."""
    with closing(PostgresStore.open(server_url(), fresh_org())) as made:
        made.vectors.prepare(IDENTITY)
    with psycopg.connect(server_url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute(
            "GRANT ALL ON SCHEMA public TO guest; GRANT ALL ON ALL TABLES IN SCHEMA public TO guest"
        )
    return server_url().replace("postgres:@", "guest:@")


# No query crosses organisations.

CASES = 10_000
WORDS = ("alpha", "beta", "gamma", "delta", "ops", "web", "one", "two")
PATHS = tuple(f"{name}/{n}.md" for name in ("docs", "wiki") for n in range(4))
TAGS = ((), ("ops",), ("ops", "web"))
Case = Callable[[Store], object]


def some_match(chance: random.Random) -> Match:
    words = [Word(word, prefix=chance.random() < 0.2) for word in chance.sample(WORDS, 3)]
    some: list[Match] = [
        words[0],
        AnyOf(tuple(words)),
        AllOf(tuple(words[:2])),
        Without(AnyOf(tuple(words[:2])), words[2]),
        Phrase(f"{words[0].text} {words[1].text}"),
    ]
    return chance.choice(some)


def some_filter(chance: random.Random) -> Filter:
    return Filter(
        tags=chance.choice(TAGS),
        source_id=chance.choice([None, None, "docs"]),
        path=chance.choice([None, None, "docs/**", "*/1.md"]),
        include_superseded=chance.random() < 0.3,
    )


NORTH = unit(1, 0, 0, 0)


class Scores(dict[int, float]):
    """Scores by chunk, equal when they are so but for what floating-point numbers lose."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scores) and dict(self) == pytest.approx(dict(other), abs=1e-5)


def some_change(chance: random.Random) -> Case:
    path, texts = chance.choice(PATHS), [" ".join(chance.choices(WORDS, k=3)) for _ in range(2)]
    fields = {"tags": chance.choice(TAGS), "superseded_by": chance.choice([None, None, "docs/0.md"])}
    number, kind = chance.randint(1, 9), chance.random()
    if kind < 0.6:
        return lambda store: put(store, path, *texts, **fields)
    if kind < 0.8:
        return lambda store: embed(
            store,
            [(each.chunk_id, unit(each.chunk_id, number, 1, 0)) for each in store.vectors.pending(0, 5)],
        )
    if kind < 0.85:
        return lambda store: store.journal.record_access([path], number)
    if kind < 0.9:
        return lambda store: store.journal.record_feedback(Feedback(path, path, "good", texts[0], number))
    if kind < 0.92:
        return lambda store: store.catalog.put_memo("docs", texts[0])
    if kind < 0.97:
        return lambda store: store.catalog.delete_documents([path])
    return lambda store: store.catalog.remove_source(path.split("/")[0])


def scores(found: list[Scored]) -> Scores:
    return Scores((one.chunk_id, one.score) for one in found)


def some_question(chance: random.Random) -> Case:
    match, filter, path = some_match(chance), some_filter(chance), chance.choice(PATHS)
    vector, ids = unit(chance.random(), chance.random(), 1, 0), [chance.randint(1, 200) for _ in range(5)]
    cases: list[Case] = [
        lambda store: scores(store.lexical.search(match, filter, 500)),
        lambda store: scores(store.vectors.search(vector, filter, 500)),
        lambda store: store.lexical.frequencies(WORDS),
        lambda store: sorted(store.lexical.similar_words("alphas", 3)),
        lambda store: store.catalog.read(ids),
        lambda store: store.catalog.types_of(ids),
        lambda store: store.vectors.fetch(ids),
        lambda store: (store.catalog.document(path), store.catalog.chunks_of(path)),
        lambda store: store.catalog.documents_at(path.split("/")[1]),
        lambda store: (list(store.catalog.documents()), store.catalog.file_states("docs")),
        lambda store: (store.catalog.counts(), store.catalog.counts("docs")),
        lambda store: store.catalog.count_documents(filter),
        lambda store: store.vectors.pending(0, 5, "docs"),
        lambda store: ([known.id for known in store.catalog.sources()], store.catalog.memo("docs")),
        lambda store: (store.catalog.superseded("docs/0.md"), store.catalog.count_types()),
        lambda store: (store.journal.accesses(PATHS), store.journal.feedback()),
        lambda store: store.cache.get(IDENTITY, [bytes(range(n % 7, 32)) for n in ids]),
        lambda store: (store.cache.usage(), store.spaces.all(), store.vectors.waiting()),
        lambda store: (store.ledger.allowed(ids, filter), sorted(store.ledger.matching(filter, 8) or [])),
        lambda store: (store.ledger.is_empty(), store.ledger.home(), list(store.cache.entries())),
    ]
    return chance.choice(cases)


@pytest.mark.promise("design.organisations-apart")
def test_every_organisation_is_answered_as_if_it_were_alone(guest: str):
    """Each has a store of its own in memory, which knows of no other: both must say the same, always.

    Ids, paths, words and sources are the same in all of them. One is an administrator's, whom no policy
    stops: there the statements alone keep the others out.
    """
    chance = random.Random(5)
    urls = [server_url(), guest, guest]
    pairs = [(MemoryStore.open("memory://", ""), PostgresStore.open(url, fresh_org())) for url in urls]
    for number, pair in enumerate(pairs):
        for each in pair:
            each.cache.put(IDENTITY, {bytes(range(number, 32)): unit(number + 1, 0, 0, 1)})
    for number in range(CASES):
        alone, among = pairs[number % len(pairs)]
        case = some_change(chance) if chance.random() < 0.06 else some_question(chance)
        assert case(among) == case(alone)
    for _, among in pairs:
        among.close()


@pytest.mark.promise("design.organisations-apart")
def test_a_policy_hides_the_rows_of_others_from_statements_that_forget_to_ask(
    guest: str, store: PostgresStore
):
    (theirs,) = put(store, "docs/a.md", "secret text")
    embed(store, [(theirs, unit(1, 0, 0, 0))])
    store.cache.put(IDENTITY, {b"key": unit(1, 0, 0, 0)})
    store.ledger.move("http://elsewhere")
    put(store, "docs/a.md", "secret text", tags=("told",))
    assert store.ledger.unsettled(9)
    org = fresh_org()
    with (
        closing(PostgresStore.open(guest, org)) as own,
        psycopg.connect(guest, autocommit=True) as connection,
    ):
        put(own, "docs/a.md", "own text")
        for table in TABLES:
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
        connection.execute("SELECT set_config('concord.org', %s, false)", (org,))
        assert connection.execute("SELECT count(*) FROM kb_orgs").fetchone() == (1,)
        assert connection.execute("SELECT content FROM kb_chunks").fetchall() == [("own text",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO kb_pending SELECT max(org) + 1, 1, 1 FROM kb_chunks")


@pytest.mark.promise("design.organisations-apart")
def test_where_one_keeps_its_vectors_is_nothing_to_the_others(guest: str):
    with (
        closing(PostgresStore.open(guest, fresh_org())) as outside,
        closing(PostgresStore.open(guest, fresh_org())) as inside,
    ):
        for each in (outside, inside):
            (a,) = put(each, "docs/a.md", "text")
            embed(each, [(a, unit(1, 0, 0, 0))])
        outside.ledger.move("http://elsewhere")
        inside.catalog.delete_documents(["docs/a.md"])
        assert (inside.ledger.unsettled(9), outside.ledger.unsettled(9)) == ([], [])
        outside.catalog.delete_documents(["docs/a.md"])
        assert (inside.ledger.unsettled(9), [i for _, i in outside.ledger.unsettled(9)]) == ([], [a])
        assert inside.ledger.home().url == ""


def test_every_table_with_rows_of_an_organisation_has_a_policy(store: PostgresStore, administrator: Any):
    store.vectors.prepare(IDENTITY)
    unguarded = administrator.execute(
        "SELECT relname FROM pg_class WHERE relname LIKE 'kb\\_%' AND relkind = 'r'"
        " AND NOT (relrowsecurity AND relforcerowsecurity)"
    ).fetchall()
    assert unguarded == [("kb_schema",)]


# Opening and migrating.


def test_a_newer_schema_is_refused_with_what_to_do(database: str):
    PostgresStore.open(database, "default").close()
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE kb_schema SET version = version + 1")
    with pytest.raises(SchemaTooNew) as refusal:
        PostgresStore.open(database, "default")
    assert str(migrations.VERSION + 1) in refusal.value.message
    assert "upgrade" in (refusal.value.hint or "")


def test_tables_of_another_program_are_left_alone(database: str):
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE kb_chunks (whatever text)")
    with pytest.raises(CorruptStore):
        PostgresStore.open(database, "default")


def test_a_migration_that_fails_leaves_nothing_behind(database: str, monkeypatch: pytest.MonkeyPatch):
    def fails(connection: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, fails))
    monkeypatch.setattr(migrations, "VERSION", migrations.VERSION + 1)
    with pytest.raises(KeyboardInterrupt):
        PostgresStore.open(database, "default")
    monkeypatch.undo()
    with closing(PostgresStore.open(database, "default")) as made:
        assert put(made, "docs/a.md", "text") == [1]


def test_a_database_of_the_first_schema_is_brought_up_to_date_with_all_that_it_holds(
    database: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(migrations, "STEPS", migrations.STEPS[:1])
    monkeypatch.setattr(migrations, "VERSION", 1)
    with closing(PostgresStore.open(database, "default")) as old, psycopg.connect(database) as connection:
        connection.execute("ALTER TABLE kb_chunks ADD COLUMN last_page integer")
        connection.commit()
        (a,) = put(old, "docs/a.md", Piece("text", 0, 4, 1, 1, page=7))
        connection.execute("ALTER TABLE kb_chunks DROP COLUMN last_page")
    monkeypatch.undo()
    with closing(PostgresStore.open(database, "default")) as made:
        assert made.glance().types is None
        made.tend(silent)
        assert made.glance().types == {"markdown"}
        assert [chunk.pages for chunk in made.catalog.chunks_of("docs/a.md")] == [(7, 7)]
        made.ledger.move("http://elsewhere")
        made.catalog.delete_documents(["docs/a.md"])
        assert [chunk_id for _, chunk_id in made.ledger.unsettled(9)] == [a]


def test_a_type_is_noted_whoever_writes_the_document(database: str):
    """Also by a process of an older version that is still running, which knows nothing of it."""
    with closing(PostgresStore.open(database, "default")) as made, psycopg.connect(database) as connection:
        put(made, "docs/a.md", "text")
        connection.execute("""
            INSERT INTO kb_documents SELECT org, id || '2', source, path || '.py', 'code', title, tags,
                details, file_hash, content_hash, size, mtime_ns, NULL, indexed_at, fields
            FROM kb_documents""")
        connection.commit()
        assert made.glance().types == {"markdown", "code"}


def test_several_may_open_a_new_database_at_once(database: str):
    failures: list[BaseException] = []

    def work() -> None:
        try:
            PostgresStore.open(database, "default").close()
        except BaseException as fault:
            failures.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []


@pytest.mark.parametrize("url", ["postgresql://h/x?nonsense=1", "postgresql://[h/x"])
def test_a_url_that_means_nothing_is_refused(url: str):
    with pytest.raises(BadValue):
        PostgresStore.open(url, "default")


@pytest.mark.parametrize("org", ["", "a/b", "x" * 65, "a'b"])
def test_an_organisation_has_a_name_that_every_backend_can_keep(org: str):
    with pytest.raises(BadValue):
        PostgresStore.open(server_url(), org)


# Text.


@given(st.text(alphabet="a\0\x1be0é"))
def test_any_text_comes_back_as_it_was_stored(text: str):
    assert loaded(stored(text)) == text
    assert "\0" not in stored(text)


GLOBS = st.lists(
    st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", ".", "[", "\\", "+"]), max_size=7
).map("".join)


@given(st.lists(st.tuples(GLOBS, st.text(alphabet="ab/.[\\+", max_size=6)), min_size=20, max_size=40))
@settings(deadline=None, max_examples=20)
def test_a_glob_means_the_same_to_postgresql(cases: list[tuple[str, str]]):
    with psycopg.connect(server_url()) as connection:
        statement = "SELECT path ~ pattern FROM unnest(%s::text[], %s::text[]) AS given (path, pattern)"
        values = [path for _, path in cases], [_pattern(glob) for glob, _ in cases]
        found = [matched for (matched,) in connection.execute(statement, values)]
    assert found == [glob_matches(glob, path) for glob, path in cases]


# The vector index.

POINTS, DIMENSION = 2400, 24
RARE = 3  # 0.1 % and a little


@pytest.fixture(scope="module")
def many() -> Iterator[PostgresStore]:
    """More vectors than are compared one by one, some of them with a rare tag."""
    with closing(PostgresStore.open(server_url(), fresh_org())) as made:
        made.catalog.put_source(source("docs"))
        made.catalog.put_documents(
            (
                document(
                    f"docs/{n}.md", tags=("rare",) if n % (POINTS // RARE) == 7 else ("half",) * (n % 2)
                ),
                pieces(f"text {n}"),
            )
            for n in range(POINTS)
        )
        chance = random.Random(3)
        made.vectors.prepare(replace(IDENTITY, dimension=DIMENSION))
        made.vectors.put((each.chunk_id, point(chance)) for each in made.vectors.pending(0, POINTS))
        made.tend(silent)
        yield made


def test_the_server_builds_the_index_with_the_memory_that_is_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upkeep, "INDEX_FROM", 1)
    values = {"store.url": server_url(), "store.index_memory_mb": 1 << 40}  # more than any server takes
    store = Parts(load_settings(values, {}), fresh_org()).store
    (a,) = put(store, "docs/a.md", "text")
    store.vectors.prepare(replace(IDENTITY, dimension=3))  # of which there is no index yet
    store.vectors.put([(a, unit(1, 0, 0))])
    with pytest.raises(BadValue, match="maintenance_work_mem"):
        store.tend(silent)
    store.close()


def point(chance: random.Random) -> bytes:
    return unit(*(chance.gauss(0, 1) for _ in range(DIMENSION)))


def exactly(store: PostgresStore, vector: bytes, ids: set[int], limit: int) -> list[int]:
    known = store.vectors.fetch(sorted(ids))
    matrix = np.frombuffer(b"".join(known.values()), "<f4").reshape(len(known), -1)
    nearest = np.argsort(-(matrix @ np.frombuffer(vector, "<f4")), kind="stable")[:limit]
    return [list(known)[place] for place in nearest]


def plan(store: PostgresStore, filter: Filter) -> str:
    """Return how the server would walk the graph under a filter."""
    with store._connections.transaction() as connection:
        state = store.vectors._state(connection)
        assert state is not None
        allowed = store.vectors._scope(connection, filter, state)
        values = {
            "vector": Embedding(point(random.Random())),
            "org": store._connections.org,
            "space": 1,
            **allowed.values,
        }
        store.vectors._ask_state(connection, more=vectors._EFFORT, effort="64")
        statement = vectors._NEAREST.format(
            sent="NULL", table="kb_vectors_24", allowed=allowed.each, order=vectors._WALKED.format(limit=10)
        )
        return "\n".join(line for (line,) in connection.execute("EXPLAIN " + statement, values))


def test_what_was_last_seen_of_the_vectors_is_not_what_is_searched(many: PostgresStore):
    """State and vectors are asked for in one trip, of the space as it was: another may be active by now."""
    with closing(PostgresStore.open(server_url(), many._connections.location.org)) as other:
        small = replace(IDENTITY, model="other")
        many.vectors.search(point(random.Random(1)), EVERYTHING, 3)
        (first,) = many.vectors.fetch([1])
        was = many.vectors.identity()
        assert was is not None
        other.spaces.add(small, {})
        other.spaces.of(small).put([(1, unit(0, 0, 0, 1))])
        other.spaces.activate(small)
        try:
            assert many.vectors.fetch([1, 2]) == {first: unit(0, 0, 0, 1)}
            assert many.vectors.search(unit(0, 0, 0, 1), EVERYTHING, 3) == [Scored(1, 1.0)]
            with pytest.raises(BadValue):
                many.vectors.search(point(random.Random(1)), EVERYTHING, 3)
        finally:
            other.spaces.activate(was)
            other.spaces.drop(small)
        assert len(many.vectors.search(point(random.Random(1)), EVERYTHING, 3)) == 3


def test_vectors_are_put_where_they_belong_by_now_not_where_they_were_put_last(store: PostgresStore):
    """They are sent to the space as it was last seen, before its answer is there."""
    a, b = put(store, "docs/a.md", "one", "two")
    embed(store, [(a, unit(1, 0, 0, 0))])
    store.vectors.put([(a, unit(0, 1, 0, 0))])
    wider = replace(IDENTITY, model="wider", dimension=5)
    with closing(PostgresStore.open(server_url(), store._connections.location.org)) as other:
        other.spaces.add(wider, {})
        other.spaces.of(wider).put([(a, unit(0, 0, 0, 0, 1))])
        other.spaces.activate(wider)
        with pytest.raises(BadValue, match="4 dimensions where the index has 5"):
            store.vectors.put([(b, unit(1, 0, 0, 0))])
        assert store.vectors.put([(b, unit(1, 0, 0, 0, 0))]) == 1
        other.ledger.move("http://elsewhere")
        other.ledger.mark(wider, [a])
        with pytest.raises(VectorsElsewhere):
            store.vectors.put([(b, unit(0, 1, 0, 0, 0))])
        other.ledger.move("")
    assert store.vectors.put([(b, unit(0, 0, 1, 0, 0))]) == 1
    assert store.vectors.fetch([a, b]) == {b: unit(0, 0, 1, 0, 0)}
    assert store.check() == []


def indexes(connection: Any, dimension: int) -> list[Any]:
    named = "SELECT indexname FROM pg_indexes WHERE indexname = %s"
    return list(connection.execute(named, (f"kb_vectors_{dimension}_hnsw",)).fetchall())


@pytest.mark.promise("D.migrate.everything")
def test_a_store_that_was_migrated_has_its_vectors_indexed_and_its_segments_merged(
    store: PostgresStore, administrator: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upkeep, "INDEX_FROM", 3)
    monkeypatch.setattr(upkeep, "_MANY", 2)
    monkeypatch.setattr(moving, "GROUP_DOCUMENTS", 1)  # a segment each
    origin = MemoryStore.open("memory://", "")
    origin.vectors.prepare(replace(IDENTITY, dimension=6))  # of which there is no index yet
    for n in range(3):
        (a,) = put(origin, f"docs/{n}.md", f"text {n}")
        origin.vectors.put([(a, unit(1, n, 0, 0, 0, 0))])
    assert moving.migrate(origin, store, silent, lock_wait_s=1).counts.vectors == 3
    assert indexes(administrator, 6) != []
    segments = "SELECT count(*) FROM kb_segments WHERE org = %s"
    assert administrator.execute(segments, (store._connections.org,)).fetchone() == (1,)


def test_a_sync_leaves_many_vectors_indexed(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upkeep, "INDEX_FROM", 1)
    given = {"store.url": database, "embed.provider": "hashing"}
    write(tmp_path / "docs" / "a.md", "# Pumps\n\nThe pump is tested on Mondays.\n")
    with KnowledgeBase(load_settings(given, {"KB_HOME": str(tmp_path)})) as kb:
        kb.add(tmp_path / "docs")
        identity = kb.store.vectors.identity()
        assert identity is not None
    with psycopg.connect(database) as connection:
        assert indexes(connection, identity.dimension) != []


@pytest.mark.promise("002.hnsw")
@pytest.mark.parametrize("filter", [EVERYTHING, Filter(tags=("half",))], ids=str)
def test_many_vectors_are_indexed_when_a_sync_ends_and_the_index_answers(many: PostgresStore, filter: Filter):
    assert "kb_vectors_24_hnsw" in plan(many, filter)
    chance = random.Random(8)
    allowed = set(range(1, POINTS + 1)) if filter.is_open else set(range(2, POINTS + 1, 2))
    hits = 0
    for _ in range(10):
        vector = point(chance)
        found = [scored.chunk_id for scored in many.vectors.search(vector, filter, 10)]
        assert len(found) == 10
        assert set(found) <= allowed
        hits += len(set(found) & set(exactly(many, vector, allowed, 10)))
    assert hits >= 95


@pytest.mark.parametrize("filter", [EVERYTHING, Filter(tags=("half",)), Filter(tags=("rare",))], ids=str)
def test_vectors_that_come_along_are_those_of_the_chunks_that_are_found(many: PostgresStore, filter: Filter):
    vector = point(random.Random(5))
    found = many.vectors.search(vector, filter, 10)
    along = many.vectors.search(vector, filter, 10, with_vectors=True)
    assert [(one.chunk_id, one.score) for one in along] == [(one.chunk_id, one.score) for one in found]
    assert not any(one.vector for one in found)
    sent = {one.chunk_id: one.vector for one in along}
    assert sent == many.vectors.fetch([one.chunk_id for one in found])


@pytest.mark.parametrize("always_exact", [0, 1000])
def test_a_filter_that_was_asked_before_sees_what_others_have_changed_since(
    database: str, monkeypatch: pytest.MonkeyPatch, always_exact: int
):
    monkeypatch.setattr(upkeep, "INDEX_FROM", 1)
    monkeypatch.setattr(scope, "ALWAYS_EXACT", always_exact)
    filter = Filter(tags=("hot",))
    with (
        closing(PostgresStore.open(database, "default")) as store,
        closing(PostgresStore.open(database, "default")) as other,
    ):
        ids = [*put(store, "docs/a.md", "a", tags=("hot",)), *put(store, "docs/b.md", "b")]
        embed(store, [(chunk_id, NORTH) for chunk_id in ids])
        store.tend(silent)

        def found() -> list[int]:
            return [one.chunk_id for one in store.vectors.search(NORTH, filter, 9)]

        assert found() == found() == ids[:1]
        other.catalog.update_document(document("docs/b.md", tags=("hot",)))
        assert found() == ids
        (new,) = put(other, "docs/c.md", "c", tags=("hot",))
        assert found() == ids  # it has no vector yet
        embed(other, [(new, NORTH)])
        assert found() == [*ids, new]
        other.catalog.delete_documents(["docs/a.md"])
        assert found() == [ids[1], new]


def test_no_more_filters_are_remembered_than_a_process_has_room_for(many: PostgresStore):
    for number in range(200):
        assert many.vectors.search(point(random.Random(1)), Filter(tags=(f"none {number}",)), 3) == []
    assert len(many.vectors._scopes) < 100


@pytest.mark.promise("design.narrow-filters-are-exact")
def test_under_a_narrow_filter_nothing_is_lost(many: PostgresStore):
    rare = {n + 1 for n in range(POINTS) if n % (POINTS // RARE) == 7}
    chance = random.Random(9)
    for _ in range(10):
        vector = point(chance)
        scored = many.vectors.search(vector, Filter(tags=("rare",)), 10, ef_search=1)
        assert [each.chunk_id for each in scored] == exactly(many, vector, rare, 10)


def test_more_than_the_graph_would_show_is_found_all_the_same(many: PostgresStore):
    found = many.vectors.search(point(random.Random(1)), EVERYTHING, POINTS + 10, ef_search=1)
    assert {scored.chunk_id for scored in found} == set(range(1, POINTS + 1))


@pytest.mark.promise("002.ef-search")
def test_the_effort_is_that_of_one_search_alone(many: PostgresStore):
    def recall(ef_search: int) -> int:
        chance, hits = random.Random(4), 0
        for _ in range(20):
            vector = point(chance)
            found = {
                each.chunk_id for each in many.vectors.search(vector, EVERYTHING, 3, ef_search=ef_search)
            }
            hits += len(found & set(exactly(many, vector, set(range(1, POINTS + 1)), 3)))
        return hits

    assert recall(1) < recall(200)
    left = many._connections.read(lambda connection: connection.execute("SHOW hnsw.ef_search").fetchone())
    assert left == ("40",)


# Several writers, and what is done for searches to stay fast.


def test_two_processes_may_write_to_one_organisation():
    org = fresh_org()
    stores = [PostgresStore.open(server_url(), org) for _ in range(2)]
    stores[0].catalog.put_source(source("docs"))
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(12):
                put(stores[number], f"docs/{number}-{n}.md", f"shared word{n}", "tail", tags=(f"t{n}",))
                put(stores[number], f"docs/{number}-{n}.md", f"shared word{n}", tags=("ops",))
        except BaseException as fault:
            failures.append(fault)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert stores[0].lexical.frequencies(["shared", "word3", "tail", "ops"]) == (
        24,
        {"shared": 24, "word3": 2, "tail": 0, "ops": 24},
    )
    for each in stores:
        each.close()


def waiters(administrator: Any, wanted: int) -> None:
    """Return once so many wait for somebody's lock."""
    waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
    deadline = time.monotonic() + 30
    while administrator.execute(waiting).fetchone() != (wanted,):
        assert time.monotonic() < deadline, "nobody waits"


def test_the_chunks_of_vectors_are_looked_up_by_their_keys_before_the_planner_knows_how_many_there_are(
    database: str,
):
    with closing(PostgresStore.open(database, "first")) as store:
        ids = put(store, "docs/a.md", *(f"alpha {number}" for number in range(2000)))
        embed(store, [(ids[0], unit(1, 0, 0, 0))])
    statement = vectors._PUT.format(table="kb_vectors_4").replace("%(vectors)s", "NULL::vector[]")
    with psycopg.connect(database) as connection:
        values = {"org": 1, "space": 1, "ids": array_of(ids[:64])}
        rows = connection.execute(f"EXPLAIN {statement}", values)
        plan = [line.strip() for (line,) in rows]
    assert [line for line in plan if "kb_chunks_document" in line or "Seq Scan on kb_chunks" in line] == []
    assert any("kb_chunks_pkey" in line for line in plan)


def test_vectors_that_come_while_they_are_moved_are_forgotten_too(store: PostgresStore, administrator: Any):
    (a,) = put(store, "docs/a.md", "text")
    store.vectors.prepare(IDENTITY)
    work = [lambda: embed(store, [(a, unit(1, 0, 0, 0))]), lambda: store.ledger.move("http://elsewhere")]
    threads = [threading.Thread(target=each) for each in work]
    with administrator.transaction():  # the vector cannot be written yet, though its space is held
        own = (store._connections.org, a)
        administrator.execute("SELECT FROM kb_chunks WHERE org = %s AND id = %s FOR UPDATE", own)
        for number, thread in enumerate(threads, 1):
            thread.start()
            waiters(administrator, number)
    for thread in threads:
        thread.join(60)
    assert store.ledger.is_empty()
    assert [waiting.chunk_id for waiting in store.vectors.pending(0, 9)] == [a]
    store.ledger.move("")
    assert store.vectors.fetch([a]) == {}
    assert store.check() == []


def test_the_lock_of_a_sync_is_freed_when_its_holder_dies(store: PostgresStore, administrator: Any):
    other = PostgresStore.open(server_url(), store._connections.location.org)
    with closing(other), other.catalog.sync_lock("docs", wait_s=0):
        with pytest.raises(StoreBusy), store.catalog.sync_lock("docs", wait_s=0.05):
            pytest.fail("the lock was given twice")
        holders = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        administrator.execute(holders)
        with store.catalog.sync_lock("docs", wait_s=30):
            pass


def test_any_number_of_locks_may_be_held_at_once_and_each_is_let_go_by_itself(store: PostgresStore):
    names = [f"source {n}" for n in range(2 * MOST_CONNECTIONS)]
    with closing(PostgresStore.open(server_url(), store._connections.location.org)) as other:
        with ExitStack() as held:
            for name in names:
                held.enter_context(store.catalog.sync_lock(name, wait_s=0))
            put(store, "docs/a.md", "text")
            with store.catalog.sync_lock("one more", wait_s=0):
                pass
            with other.catalog.sync_lock("one more", wait_s=0):
                pass
            for name in names:
                with pytest.raises(StoreBusy), other.catalog.sync_lock(name, wait_s=0):
                    pytest.fail("the lock was given twice")
        for name in names:
            with other.catalog.sync_lock(name, wait_s=0):
                pass


def test_locks_that_were_lost_with_their_connection_can_be_taken_again(
    store: PostgresStore, administrator: Any
):
    holders = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    with store.catalog.sync_lock("docs", wait_s=0):
        administrator.execute(holders)
        with pytest.raises(BackendDown), store.catalog.sync_lock("wiki", wait_s=0):
            pytest.fail("the connection is gone")
        with store.catalog.sync_lock("wiki", wait_s=0):
            pass
    with store.catalog.sync_lock("docs", wait_s=0):
        pass


def test_who_waits_for_a_sync_keeps_no_index_from_being_built(
    store: PostgresStore, administrator: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upkeep, "INDEX_FROM", 1)
    (a,) = put(store, "docs/a.md", "text")
    store.vectors.prepare(replace(IDENTITY, dimension=5))  # of which there is no index yet
    store.vectors.put([(a, unit(1, 0, 0, 0, 0))])
    other, turns = PostgresStore.open(server_url(), store._connections.location.org), list[str]()

    def second() -> None:
        with other.catalog.sync_lock("docs", wait_s=20):
            turns.append("second")

    thread = threading.Thread(target=second)
    with closing(other):
        with store.catalog.sync_lock("docs", wait_s=0):
            thread.start()
            until_two_have_asked_for_a_lock(administrator)
            store.tend(silent)  # which waits for every snapshot that is older
            turns.append("first")
        thread.join(30)
    assert turns == ["first", "second"]


def until_two_have_asked_for_a_lock(administrator: Any) -> None:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg%advisory_lock(%'"
    deadline = time.monotonic() + 30
    while administrator.execute(asked).fetchone() != (2,):
        assert time.monotonic() < deadline, "nobody asks"


def test_many_small_writes_are_merged_and_found_as_before(store: PostgresStore, administrator: Any):
    def found() -> list[Any]:
        return [
            store.lexical.search(match, EVERYTHING, 99) for match in (Word("shared"), Word("w", prefix=True))
        ]

    def rows(table: str) -> int:
        statement = f"SELECT count(*) FROM {table} WHERE org = %s"
        return int(administrator.execute(statement, (store._connections.org,)).fetchone()[0])

    many = upkeep._MANY + 4
    for n in range(many):
        put(store, f"docs/{n}.md", f"shared w{n}", "more")
    before, segments, postings = found(), rows("kb_segments"), rows("kb_postings")
    store.tend(silent)
    assert found() == before
    assert (rows("kb_segments"), segments) == (1, many)
    assert rows("kb_postings") < postings / 2
    store.catalog.delete_documents([f"docs/{n}.md" for n in range(10)])
    left = found()
    store.tend(silent)
    assert found() == left
    assert store.lexical.frequencies(["w3", "w15", "shared"]) == (
        2 * many - 20,
        {"w3": 0, "w15": 1, "shared": many - 10},
    )
    stale = administrator.execute(
        "SELECT stale FROM kb_orgs WHERE key = %s", (store._connections.org,)
    ).fetchone()
    assert stale == (0,)
    assert rows("kb_gone") == 0


def test_a_folder_that_gets_and_loses_tags_has_its_postings_rewritten_once_not_for_every_file(
    tmp_path: Path, administrator: Any
):
    for n in range(8):
        write(tmp_path / "docs" / f"{n}.md", f"# Page {n}\n\nWhat there is to say about number {n}.\n")
    settings = load_settings(
        {"store.url": server_url(), "embed.provider": "none"}, {"KB_HOME": str(tmp_path)}
    )
    with KnowledgeBase(settings.replaced(org=fresh_org())) as kb:
        store = kb.store
        assert isinstance(store, PostgresStore)
        rewritten = "SELECT count(DISTINCT xmin::text) FROM kb_postings WHERE org = %s"

        def writes() -> int:
            return int(administrator.execute(rewritten, (store._connections.org,)).fetchone()[0])

        kb.add(tmp_path / "docs")
        assert writes() == 1
        kb.add(tmp_path / "docs", tags=["hot"])
        assert kb.store.lexical.frequencies(["hot", "number"]) == (8, {"hot": 8, "number": 8})
        assert writes() == 1  # nothing is left of the first: every chunk is indexed anew
        kb.add(tmp_path / "docs", tags=["cold"])
        assert kb.store.lexical.frequencies(["hot", "cold"]) == (8, {"hot": 0, "cold": 8})
        assert store.check() == []


def test_a_document_given_twice_is_as_it_was_given_last(store: PostgresStore):
    store.catalog.put_source(source("docs"))
    store.catalog.put_documents([(document(), pieces("first")), (document(), pieces("second", "third"))])
    assert [chunk.text for chunk in store.catalog.chunks_of("docs/a.md")] == ["second", "third"]
    assert store.lexical.frequencies(["first", "second"]) == (2, {"first": 0, "second": 1})


@pytest.mark.parametrize("most", [0, 5, 20_000])
def test_what_is_found_does_not_depend_on_which_postings_are_sent(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, most: int
):
    put(store, "docs/a.md", *(f"often {'rare' if n == 3 else 'filler'} w{n}" for n in range(12)))
    put(store, "docs/b.md", "often rare")
    store.catalog.delete_documents(["docs/b.md"])
    everything = AnyOf((Word("often"), Word("rare"))), AllOf((Word("often"), Word("rare"))), Word("often")
    known = store.lexical.frequencies(["often", "rare"], 1.0)[1]

    def found(known: dict[str, int]) -> list[list[tuple[int, float]]]:
        lists = (store.lexical.search(match, Filter(), 20, known) for match in everything)
        return [[(one.chunk_id, round(one.score, 9)) for one in some] for some in lists]

    expected = found(known)
    assert [len(some) for some in expected] == [12, 1, 12]
    monkeypatch.setattr("concord.backends.postgres.plain_words.RARE", 2)
    monkeypatch.setattr("concord.backends.postgres.plain_words.MOST_SENT", most)
    nowhere = AllOf((Word("often"), Word("rare"), Word("w5")))
    for share in (None, 0.2):
        known = store.lexical.frequencies(["often", "rare"], share)[1]
        assert known == {"often": 12, "rare": 1}
        assert found(known) == expected
        assert store.lexical.search(nowhere, Filter(), 20, known) == []


def sent(store: PostgresStore, *words: str) -> set[str]:
    """Return the tokens whose postings come with the counts of some words."""
    _, known = store.lexical.frequencies(words, 0.2)
    assert isinstance(known, ReadWords)
    return set(known.tokens.postings)


def test_no_more_postings_are_sent_than_a_query_may_have(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    put(store, "docs/a.md", *(f"often {'rare' if n < 2 else 'filler'}" for n in range(12)))
    assert sent(store, "often", "rare", "absent") == {"often", "rare"}
    monkeypatch.setattr("concord.backends.postgres.plain_words.MOST_SENT", 13)
    assert sent(store, "often", "rare") == {"rare"}  # together too many: a search for both begins there
    assert sent(store, "often") == {"often"}
    put(store, "docs/b.md", *("often" for _ in range(3)))
    store.catalog.delete_documents(["docs/b.md"])
    assert sent(store, "often") == set()  # what was deleted would be sent as well


@pytest.mark.parametrize(
    ("match", "filter", "is_at_hand"),
    [
        (Word("often"), Filter(), True),
        (AllOf((Word("often"), Word("absent"))), Filter(), True),
        (AllOf((Word("often"), Word("unheard"))), Filter(), False),  # nobody has counted it
        (Phrase("often filler"), Filter(), False),
        (Word("oft", prefix=True), Filter(), False),
        (Word("often"), Filter(type="markdown"), False),
        (Word("superseded"), Filter(), False),
        (Word("superseded"), Filter(include_superseded=True), True),
    ],
)
def test_what_is_at_hand_is_found_without_asking_and_the_rest_is_not(
    match: Match, filter: Filter, is_at_hand: bool
):
    with closing(PostgresStore.open(server_url(), fresh_org())) as store:
        put(store, "docs/a.md", "often filler", "filler")
        if match == Word("superseded"):
            put(store, "docs/old.md", "superseded", superseded_by="docs/a.md")
        _, known = store.lexical.frequencies(["often", "filler", "absent", "superseded"], 1.0)
        expected = store.lexical.search(match, filter, 9, known)
        assert store.lexical.is_at_hand(match, filter, known) == is_at_hand
    if is_at_hand:
        assert store.lexical.search(match, filter, 9, known) == expected
    else:
        with pytest.raises(BackendDown):
            store.lexical.search(match, filter, 9, known)


def test_postings_that_name_deleted_chunks_are_not_at_hand(store: PostgresStore):
    put(store, "docs/a.md", "often")
    put(store, "docs/b.md", "often")
    store.catalog.delete_documents(["docs/b.md"])
    _, known = store.lexical.frequencies(["often"], 1.0)
    assert not store.lexical.is_at_hand(Word("often"), Filter(), known)


SEARCHED = """
import sys, time
from concord.backends.postgres.store import PostgresStore
from concord.types import AllOf, AnyOf, Filter, Word
store = PostgresStore.open(sys.argv[1], sys.argv[2])
words = (Word("shared"), Word("second"))
def found():
    known = store.lexical.frequencies(["shared", "second"], 0.2)[1]
    lists = (store.lexical.search(kind(words), Filter(), 5, known) for kind in (AllOf, AnyOf))
    return [[(one.chunk_id, round(one.score, 9)) for one in some] for some in lists]
first = found()
print("numpy" in sys.modules, [len(some) for some in first])
ends = time.monotonic() + 60
while "numpy" not in sys.modules and time.monotonic() < ends:
    assert found() == first
print("numpy" in sys.modules, found() == first)
"""


def test_a_process_that_searches_once_loads_no_numpy_and_one_that_goes_on_does(store: PostgresStore):
    put(store, "docs/a.md", "the first shared text", "a second shared text", "nothing of the kind")
    asked = [sys.executable, "-c", SEARCHED, server_url(), store._connections.location.org]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout
    assert told.split("\n")[:2] == ["False [1, 2]", "True True"]


def test_many_deleted_chunks_leave_the_others_to_be_found(store: PostgresStore):
    put(store, "docs/kept.md", *(f"often and {'at length ' * 9} w{n}" for n in range(3)))
    for n in range(4):
        put(store, f"docs/{n}.md", *("often" for _ in range(60)))
    store.catalog.delete_documents([f"docs/{n}.md" for n in range(4)])
    kept = [chunk.id for chunk in store.catalog.chunks_of("docs/kept.md")]
    assert [one.chunk_id for one in store.lexical.search(Word("often"), Filter(), 2)] == kept[:2]
    assert [one.chunk_id for one in store.lexical.search(Word("often"), Filter(), 9)] == kept


def test_who_waited_for_a_connection_in_vain_does_not_wait_again():
    """Where a connection is lost, the question is asked once more; for a pool in use one would wait twice."""
    assert not is_lost(PoolTimeout("couldn't get a connection after 10.00 sec"))
    assert is_lost(psycopg.OperationalError("the connection is closed"))


def test_a_password_is_in_no_message():
    with pytest.raises(BackendDown) as refusal:
        PostgresStore.open("postgresql://someone:hunter2@localhost:1/base", "default")
    assert "localhost:1" in refusal.value.message
    assert refusal.value.hint
    assert "hunter2" not in f"{refusal.value.message} {refusal.value.hint}"


def test_a_pgvector_that_is_too_old_is_refused(database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(migrations, "OLDEST_PGVECTOR", (99, 0))
    with pytest.raises(StoreError) as refusal:
        PostgresStore.open(database, "default")
    assert "99.0" in refusal.value.message
    assert "ALTER EXTENSION" in (refusal.value.hint or "")


def test_the_commands_of_the_manual_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database: str
):
    monkeypatch.chdir(tmp_path)
    for name, value in (
        ("HOME", str(tmp_path / "home")),
        ("EMBED_PROVIDER", "hashing"),
        ("STORE_URL", database),
    ):
        monkeypatch.setenv(f"KB_{name}", value)
    write(tmp_path / "docs" / "login.md", "# Login\n\nHow login works: by password.\n")
    page = (DOCS / "postgresql.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ kb (.*)$", page, re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        assert main(shlex.split(command)) == 0, capsys.readouterr().err
    assert "docs/login.md" in capsys.readouterr().out
