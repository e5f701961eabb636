"""A PostgreSQL that answers, and does not let us in: what is wrong is told, and not that it is down."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

from concord.core.call_limit import limited_to
from concord.core.errors import BackendDown, KBError, StoreBusy
from support.postgres_server import fresh_org, server_url, shared_server

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.store import PostgresStore  # noqa: E402

BOUND_S = 30.0


def refusal(user: str = "postgres:", database: str = "postgres") -> KBError:
    """What a user is told who opens a store like this."""
    url = server_url().replace("postgres:@/postgres?", f"{user}@/{database}?")
    with pytest.raises(KBError) as refused:
        PostgresStore.open(url, "default")
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"
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
    assert "does not let us in" in error.message
    assert "password" in error.message
    assert "store.url" in (error.hint or "")


@pytest.mark.parametrize("option", ["sslmode=bad", "port=70000", "port=x", "connect_timeout=x"])
def test_what_is_wrong_in_a_url_is_quoted(option: str):
    with pytest.raises(KBError, match=r"URL|invalid") as refused:
        PostgresStore.open(f"{server_url()}&{option}", "default")
    assert (
        "store.url" in f"{refused.value.message} {refused.value.hint}" or "write" in f"{refused.value.hint}"
    )


def test_a_database_that_does_not_exist_is_named():
    error = refusal(database="nowhere")
    assert 'database "nowhere" does not exist' in error.message
    assert "docs/postgresql.md" in (error.hint or "")


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
