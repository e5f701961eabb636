"""A real PostgreSQL that is slow rather than down: a search keeps its deadline, and a sync waits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from concord.core.call_limit import limited_to
from concord.core.errors import BackendDown, KBError, StoreBusy
from concord.knowledge import KnowledgeBase
from contract.stored import put
from support.postgres_server import fresh_org, server_url
from support.recorders import write
from support.small_library import opened

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.connections import schema_of  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402

BOUND_S = 60.0
DEADLINE_MS = 300.0  # too short for nothing but a server that does not answer
TABLES = ("kb_meta", "kb_documents", "kb_chunks", "kb_postings")
OURS = "application_name = 'concord'"


@pytest.fixture
def org() -> str:
    return fresh_org()


@pytest.fixture
def kb(org: str, tmp_path: Path) -> Iterator[KnowledgeBase]:
    write(tmp_path / "docs" / "a.md", "Shared text about login.\n")
    with opened(server_url(), org=org) as made:
        made.add(tmp_path / "docs")
        assert made.search("login", deadline_ms=DEADLINE_MS * 100).degraded == ()
        yield made


@contextmanager
def locked(org: str, table: str) -> Iterator[Any]:
    """Keep a table from everybody, as VACUUM FULL does; lend the connection that holds it."""
    with closing(psycopg.connect(server_url())) as other:
        other.execute(f'LOCK TABLE "{schema_of(org)}".{table} IN ACCESS EXCLUSIVE MODE')
        yield other


def outcome(work: Callable[[], Any]) -> Any:
    """Return what a piece of work comes to, or what it raises; one that hangs is given up."""
    said: list[Any] = []

    def run() -> None:
        try:
            said.append(work())
        except KBError as fault:
            said.append(fault)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    thread.join(BOUND_S)
    assert said, "it hangs"
    return said[0]


def wait_until(connection: Any, condition: str) -> None:
    """Return when a condition about the server's sessions is true."""
    bound = f"SELECT clock_timestamp() > now() + interval '{BOUND_S} s'"
    while connection.execute(f"SELECT {condition} FROM (SELECT pg_sleep(0.01)) AS _").fetchone() != (True,):
        assert connection.execute(bound).fetchone() == (False,)


def nobody_waits(connection: Any) -> bool:
    wait_until(connection, "NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
    return True


@pytest.mark.promise("003.deadline", "000.degrade.lexical")
@pytest.mark.parametrize("mode", ["auto", "fts5"])
@pytest.mark.parametrize("table", TABLES)
def test_a_search_that_meets_a_locked_table_ends_with_an_error_and_so_do_its_statements(
    kb: KnowledgeBase, org: str, table: str, mode: str
):
    with locked(org, table) as other:
        # Of a word that was not searched before: postings are kept.
        refusal = outcome(lambda: kb.search("shared", mode=mode, deadline_ms=DEADLINE_MS))
        assert isinstance(refusal, StoreBusy | BackendDown)
        assert refusal.hint
        assert nobody_waits(other)
    answer = kb.search("login")
    assert answer.hits
    assert answer.degraded == ()


@contextmanager
def frozen(connection: Any) -> Iterator[None]:
    """Stop all processes of the server that work for us, as a disk that hangs does."""
    asked = f"SELECT pid FROM pg_stat_activity WHERE {OURS} AND pid <> pg_backend_pid()"
    pids = [pid for (pid,) in connection.execute(asked).fetchall()]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("allowed", [DEADLINE_MS, None])
def test_a_connection_that_answers_nothing_at_all_is_given_up(org: str, allowed: float | None):
    """Whatever its last user allowed."""
    with (
        closing(PostgresStore.open(server_url(), org)) as store,
        closing(psycopg.connect(server_url())) as other,
    ):
        put(store, "docs/a.md", "text")
        with limited_to(allowed):
            store.catalog.snapshot()
        with frozen(other), limited_to(DEADLINE_MS):
            refusal = outcome(lambda: store.catalog.snapshot().sources)
            assert isinstance(refusal, BackendDown)
            assert outcome(lambda: store.catalog.snapshot().sources)  # by a new one
