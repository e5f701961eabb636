"""A PostgreSQL that answers, and does not let us in: what is wrong is told, and not that it is down."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from concord.core.call_limit import limited_to
from concord.core.errors import BackendDown, BadValue, KBError, StoreBusy, StoreError
from concord.knowledge import KnowledgeBase
from support.postgres_server import fresh_org, server_url, shared_server
from support.recorders import write

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.errors import translated  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402

BOUND_S = 30.0


def refusal(user: str = "postgres:", database: str = "postgres") -> KBError:
    """What a user is told who opens a store like this."""
    url = server_url().replace("postgres:@/postgres?", f"{user}@/{database}?")
    with pytest.raises(KBError) as refused:
        PostgresStore.open(url, "default")
    told = f"{refused.value.message} {refused.value.hint}"
    assert "does not answer" not in told
    assert "network" not in told
    assert "hunter2" not in told
    return refused.value


@pytest.fixture
def role(administrator: Any) -> Iterator[str]:
    """A role with a password, which the server asks for."""
    name = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'right'")
    with shared_server().asking_for_passwords(name):
        wait_until_asked(name)
        yield name
    administrator.execute(f"DROP ROLE {name}")


def wait_until_asked(name: str) -> None:
    """Return when the server has read its rules."""
    ends = time.monotonic() + BOUND_S
    while time.monotonic() < ends:
        try:
            psycopg.connect(server_url().replace("postgres:@", f"{name}:@")).close()
        except psycopg.OperationalError:
            return
    raise AssertionError("the server lets everybody in")


@pytest.mark.parametrize("password", ["hunter2", ""])
def test_a_wrong_password_and_none_are_told_as_such(role: str, password: str):
    error = refusal(f"{role}:{password}")
    assert type(error) is StoreError
    assert "does not let us in" in error.message
    assert "password" in error.message
    assert "store.url" in (error.hint or "")


@pytest.mark.parametrize(
    "option", ["sslmode=bad", "port=70000", "port=x", "target_session_attrs=any-of", "connect_timeout=x"]
)
def test_a_url_that_libpq_does_not_take_is_not_called_a_server_that_is_down(option: str):
    with pytest.raises(BadValue, match="URL") as refused:
        PostgresStore.open(f"{server_url()}&{option}", "default")
    assert refused.value.hint


def test_a_role_that_may_not_log_in_is_told_so(administrator: Any):
    name = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE ROLE {name} NOLOGIN")
    assert "log in" in refusal(f"{name}:").message


def test_a_database_that_does_not_exist_is_named():
    error = refusal(database="nowhere")
    assert type(error) is StoreError
    assert 'database "nowhere" does not exist' in error.message
    assert "docs/postgresql.md" in (error.hint or "")


def test_too_many_connections_are_no_reason_to_start_anything_again(administrator: Any):
    name = fresh_org().replace("-", "_")
    administrator.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 1")
    with closing(psycopg.connect(server_url().replace("postgres:@", f"{name}:@"))):
        error = refusal(f"{name}:")
    assert type(error) is StoreBusy
    assert "in use" in error.message
    assert "wait" in (error.hint or "")


def test_a_lost_connection_is_done_without_where_no_other_is_to_be_had(owned: str, administrator: Any):
    name = psycopg.conninfo.conninfo_to_dict(owned)["user"]
    with closing(PostgresStore.open(owned, "default")) as store:
        assert store.catalog.snapshot().sources == []
        with ExitStack() as all_at_once:
            lent = [all_at_once.enter_context(store._connections.session()) for _ in range(3)]
            first = lent[0].info.backend_pid
        administrator.execute(f"ALTER ROLE {name} CONNECTION LIMIT 3")
        assert administrator.execute("SELECT pg_terminate_backend(%s, 30000)", (first,)).fetchone() == (True,)
        with closing(psycopg.connect(owned)):  # somebody else takes the place
            assert [store.catalog.snapshot().sources for _ in range(9)] == [[]] * 9


def test_a_role_that_is_allowed_two_connections_searches_by_words_and_by_meaning(
    owned: str, administrator: Any, tmp_path: Path
):
    name = psycopg.conninfo.conninfo_to_dict(owned)["user"]
    administrator.execute(f"ALTER ROLE {name} CONNECTION LIMIT 2")
    write(tmp_path / "docs" / "a.md", "Shared text about login, logout and sessions.\n")
    with KnowledgeBase.open(store__url=owned, embed__provider="hashing") as kb:
        kb.add(tmp_path / "docs")
        answers = [kb.search(f"{word} login text") for word in ("logout", "sessions", "shared")]
    lost = {each.strategy for answer in answers for each in answer.degraded}
    assert not lost & {"fts_exact", "fts_relaxed", "semantic"}


def test_many_locks_at_once_need_one_connection(owned: str, administrator: Any):
    name = psycopg.conninfo.conninfo_to_dict(owned)["user"]
    count = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
    with closing(PostgresStore.open(owned, "default")) as store:
        with ExitStack() as held:
            for n in range(9):
                held.enter_context(store.lock(f"source{n}", "syncing", wait_s=0))
            assert store.catalog.snapshot().sources == []
            assert administrator.execute(count, (name,)).fetchone() == (2,)
        with ThreadPoolExecutor() as pool, store.lock("source1", "syncing", wait_s=0):
            again = pool.submit(lambda: store.lock("source1", "syncing", wait_s=0).__enter__())
            assert isinstance(again.exception(), StoreBusy)


def test_a_server_that_has_gone_without_a_word_is_waited_for_once(owned: str):
    with closing(PostgresStore.open(owned, "default")) as store:
        with ExitStack() as all_at_once:
            lent = [all_at_once.enter_context(store._connections.session()) for _ in range(3)]
            servers = [connection.info.backend_pid for connection in lent]
        for pid in servers:
            os.kill(pid, signal.SIGSTOP)
        try:
            with limited_to(100):
                with pytest.raises(BackendDown):
                    store.catalog.snapshot()
                assert store.catalog.snapshot().sources == []
        finally:
            for pid in servers:
                os.kill(pid, signal.SIGCONT)


def meaning(fault: Exception, server: str) -> KBError:
    """Return what a user is told of an error of psycopg."""
    with pytest.raises(KBError) as error, translated(server):
        raise fault
    return error.value


def test_a_server_that_is_starting_is_not_ready_yet():
    fault = psycopg.OperationalError(
        'connection failed: connection to server at "h" failed: FATAL:  the database system is starting up'
    )
    error = meaning(fault, "h:5432/kb")
    assert type(error) is BackendDown
    assert "wait" in (error.hint or "")


def test_a_refusal_in_another_language_is_quoted():
    fault = psycopg.OperationalError(
        "connection failed: FATAL:  Passwort-Authentifizierung für Benutzer »kb« fehlgeschlagen"
    )
    error = meaning(fault, "h:5432/kb")
    assert type(error) is StoreError
    assert "»kb«" in error.message
    assert "password" in (error.hint or "")
