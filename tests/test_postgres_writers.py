"""Several writers on PostgreSQL: turns and locks, and what is left when a holder dies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from concord.core.errors import StoreBusy
from contract.stored import IDENTITY, document, embed, faults, keyed, put, source, unit, vectors_of
from support.postgres_server import fresh_org, server_url
from support.stores import postgres_store

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.store import PostgresStore

store = pytest.fixture(postgres_store)


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
    assert stores[0].words.frequencies(["shared", "word3", "tail", "ops"]) == (
        24,
        {"shared": 24, "word3": 2, "tail": 0, "ops": 24},
    )
    for each in stores:
        each.close()


def writers_lock(store: PostgresStore) -> str:
    """Return the statement that keeps writers waiting."""
    schema = store._connections.location.schema
    return f"SELECT FROM \"{schema}\".kb_meta WHERE key = 'generation' FOR UPDATE"


def waiters(administrator: Any, wanted: int) -> None:
    """Return once so many wait for somebody's lock."""
    waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted"
    deadline = time.monotonic() + 30
    while administrator.execute(waiting).fetchone() != (wanted,):
        assert time.monotonic() < deadline, "nobody waits"


def test_vectors_that_come_while_they_are_moved_are_forgotten_too(store: PostgresStore, administrator: Any):
    (a,) = put(store, "docs/a.md", "text")
    store.models.add(IDENTITY, {})
    made = [*keyed([(a, unit(1, 0, 0, 0))])]
    work = [lambda: vectors_of(store).put(made), lambda: store.outbox.move("http://elsewhere")]
    threads = [threading.Thread(target=each) for each in work]
    with administrator.transaction():
        administrator.execute(writers_lock(store))
        for number, thread in enumerate(threads, 1):
            thread.start()
            waiters(administrator, number)
    for thread in threads:
        thread.join(60)
    assert store.outbox.is_empty()
    assert [waiting.chunk_id for waiting in vectors_of(store).pending(0, 9)] == [a]
    store.outbox.move("")
    assert vectors_of(store).fetch([a]) == {}
    assert faults(store) == []


@pytest.mark.parametrize("is_deleted_first", [False, True])
def test_chunks_that_are_deleted_while_their_vectors_come_have_none(
    store: PostgresStore, administrator: Any, is_deleted_first: bool
):
    a, b = put(store, "docs/a.md", "first", "second")
    embed(store, [(b, unit(1, 0, 0, 0))])  # one waits for its first vector, one gets another
    failures: list[BaseException] = []

    def tried(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as fault:
            failures.append(fault)

    works = [
        lambda: vectors_of(store).put(keyed([(a, unit(0, 1, 0, 0)), (b, unit(0, 0, 1, 0))])),
        lambda: store.catalog.delete_documents([document("docs/a.md").id]),
    ]
    ordered = works[::-1] if is_deleted_first else works
    threads = [threading.Thread(target=tried, args=(work,)) for work in ordered]
    with administrator.transaction():
        administrator.execute(writers_lock(store))
        for number, thread in enumerate(threads, 1):
            thread.start()
            waiters(administrator, number)
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert vectors_of(store).fetch([a, b]) == {}
    assert faults(store) == []


def test_the_lock_of_a_sync_is_freed_when_its_holder_dies(store: PostgresStore, administrator: Any):
    other = PostgresStore.open(server_url(), store._connections.location.org)
    with closing(other), other.lock("docs", "syncing this source", wait_s=0):
        with pytest.raises(StoreBusy), store.lock("docs", "syncing this source", wait_s=0.05):
            pytest.fail("the lock was given twice")
        holders = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        administrator.execute(holders)
        with store.lock("docs", "syncing this source", wait_s=30):
            pass
