"""A real PostgreSQL that is slow rather than down: a search keeps its deadline, and a sync waits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from concord.core.call_limit import limit_ms, limited_to, with_callers_limit
from concord.core.errors import BackendDown, KBError, StoreBusy
from concord.knowledge import KnowledgeBase
from concord.search.deadline import run_within
from contract.stored import put
from support.postgres_server import fresh_org, server_url
from support.recorders import write
from support.small_library import opened

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.connections import Bounded, schema_of  # noqa: E402
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

    thread = threading.Thread(target=with_callers_limit(run), daemon=True)
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
        refusal = outcome(lambda: kb.search("login", mode=mode, deadline_ms=DEADLINE_MS))
        assert isinstance(refusal, StoreBusy | BackendDown)
        assert refusal.hint
        assert nobody_waits(other)
    answer = kb.search("login")
    assert answer.hits
    assert answer.degraded == ()


def test_sources_that_cannot_be_read_are_an_error_too(kb: KnowledgeBase, org: str):
    """By words, which asks for them every time; and with a store that has not read them yet."""
    with opened(server_url(), org=org) as another, locked(org, "kb_sources") as other:
        for asked in (
            lambda: kb.search("login", mode="fts5", deadline_ms=DEADLINE_MS),
            lambda: another.search("login", deadline_ms=DEADLINE_MS),
        ):
            assert isinstance(outcome(asked), StoreBusy)
        assert nobody_waits(other)


def test_locked_vectors_leave_the_answer_to_words_and_no_statement_behind(kb: KnowledgeBase, org: str):
    with locked(org, "kb_vectors_1") as other:
        answer = outcome(lambda: kb.search("login", deadline_ms=DEADLINE_MS))
        assert answer.hits
        assert [one.strategy for one in answer.degraded] == ["semantic"]
        assert nobody_waits(other)


def test_a_store_that_cannot_even_be_looked_up_is_busy(kb: KnowledgeBase, org: str):
    with locked(org, "kb_meta") as other, opened(server_url(), org=org) as another:
        refusal = outcome(lambda: another.search("login", deadline_ms=DEADLINE_MS))
        assert isinstance(refusal, StoreBusy)
        assert "broke off" in refusal.message
        assert nobody_waits(other)


def test_the_setting_bounds_a_search_that_names_no_deadline(kb: KnowledgeBase, org: str):
    hasty = opened(server_url(), org=org, search__deadline_ms=DEADLINE_MS)
    with hasty, locked(org, "kb_postings"):
        assert isinstance(outcome(lambda: hasty.search("login")), StoreBusy)


def test_a_write_waits_for_a_lock_for_longer_than_a_search_would(kb: KnowledgeBase, org: str, tmp_path: Path):
    write(tmp_path / "docs" / "b.md", "More text.\n")
    kb.search("login", deadline_ms=DEADLINE_MS)  # leaves its bound on connections that the sync is lent
    with locked(org, "kb_documents") as other:
        done: list[Any] = []
        writing = threading.Thread(target=lambda: done.append(kb.sync()), daemon=True)
        writing.start()
        wait_until(
            other,
            "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            f" AND clock_timestamp() - query_start > interval '{2 * DEADLINE_MS} ms')",
        )
        assert not done
        other.rollback()
        writing.join(BOUND_S)
    ((report,),) = done
    assert report.added == 1


def test_a_write_that_the_servers_own_limit_breaks_off_is_not_told_to_allow_a_search_more(
    kb: KnowledgeBase, org: str, tmp_path: Path
):
    write(tmp_path / "docs" / "b.md", "More text.\n")
    url = f"{server_url()}&options=-c%20statement_timeout%3D{DEADLINE_MS:.0f}"
    with opened(url, org=org) as hasty:
        hasty.search("login")
        with locked(org, "kb_documents"):
            refusal = outcome(hasty.sync)
        assert isinstance(refusal, StoreBusy)
        assert "statement_timeout" in (refusal.hint or "")
        assert "deadline" not in (refusal.hint or "")
        with locked(org, "kb_postings"):
            refusal = outcome(lambda: hasty.search("login", deadline_ms=DEADLINE_MS))
        assert "deadline" in (refusal.hint or "")


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


def test_whoever_works_for_a_search_is_as_patient_as_the_search():
    with limited_to(250):
        assert run_within(limit_ms, BOUND_S * 1000) == 250
    assert limit_ms() is None
    assert run_within(lambda: (limit_ms(),), BOUND_S * 1000) == (None,)


def test_a_connection_is_told_how_long_only_when_that_changes(tmp_path: Path):
    with (
        closing(Bounded.connect(server_url(), autocommit=True)) as connection,
        (tmp_path / "trace").open("w+b") as file,
    ):
        connection.pgconn.trace(file.fileno())
        for allowed in (5000, 5000.0, None, None, 250, 250):
            connection.bind(allowed)
        connection.pgconn.untrace()
        told = (tmp_path / "trace").read_bytes().splitlines()
    assert len([line for line in told if b"ReadyForQuery" in line]) == 3
