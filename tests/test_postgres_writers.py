"""Several writers on PostgreSQL: turns and locks, and what is left when a holder dies."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from concord.core.errors import StoreBusy
from contract.stored import put, source
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


def test_the_lock_of_a_sync_is_freed_when_its_holder_dies(store: PostgresStore, administrator: Any):
    other = PostgresStore.open(server_url(), store._connections.location.org)
    with closing(other), other.lock("docs", "syncing this source", wait_s=0):
        with pytest.raises(StoreBusy), store.lock("docs", "syncing this source", wait_s=0.05):
            pytest.fail("the lock was given twice")
        holders = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        administrator.execute(holders)
        with store.lock("docs", "syncing this source", wait_s=30):
            pass
