"""A real PostgreSQL that stops in the middle of things: a clear error, nothing lost, no restart of ours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from concord.cli.main import main
from concord.core.errors import BackendDown, EmbedderDown
from concord.embed.hashing import HashingEmbedder
from concord.index import documents
from concord.knowledge import KnowledgeBase
from concord.store.contract import Store
from concord.types import Vector, Word
from contract.stored import EVERYTHING, embed, put, unit, vectors_of
from support.postgres_server import Server, fresh_org, server_url, shared_server
from support.recorders import SyncBench, write

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")

from concord.store.postgres.store import PostgresStore  # noqa: E402

FILES = 90
BOUND_S = 30.0


@pytest.fixture
def server() -> Iterator[Server]:
    """The shared server, running again when the test is over."""
    server_url()
    yield shared_server()
    shared_server().ensure_running()


@pytest.fixture
def store(server: Server) -> Iterator[PostgresStore]:
    with closing(PostgresStore.open(server.url, fresh_org())) as made:
        yield made


def found(store: Store, word: str) -> list[int]:
    return [scored.chunk_id for scored in store.words.search(Word(word), EVERYTHING, 10)]


def is_refused(store: Store) -> bool:
    """Whether every part of a store says that the server is gone, and what to do."""
    for ask in (
        lambda: store.catalog.snapshot().sources,
        lambda: found(store, "text"),
        lambda: vectors_of(store).search(unit(1, 0, 0, 0), EVERYTHING, 3),
        lambda: put(store, "docs/b.md", "more"),
    ):
        with pytest.raises(BackendDown) as refusal:
            ask()
        assert "does not answer" in refusal.value.message
        assert refusal.value.hint
    return True


def test_a_stopped_server_is_named_and_the_same_store_works_when_it_is_back(
    server: Server, store: PostgresStore
):
    (a,) = put(store, "docs/a.md", "text")
    embed(store, [(a, unit(1, 0, 0, 0))])
    server.stop()
    assert is_refused(store)
    server.start()
    assert found(store, "text") == [a]
    assert vectors_of(store).fetch([a]) == {a: unit(1, 0, 0, 0)}
    (b,) = put(store, "docs/b.md", "more")
    assert b > a


def test_a_model_that_is_down_is_left_alone_although_the_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What words have found is fetched from the server before it is known that there is no vector for it."""
    pytest.importorskip("numpy")  # with which words are at hand
    asked: list[str] = []

    def fail(self: HashingEmbedder, text: str) -> Vector:
        asked.append(text)
        raise EmbedderDown("the model server does not answer")

    write(tmp_path / "docs" / "a.md", "Shared text about login, logout and sessions.\n")
    with KnowledgeBase.open(store__url=server_url(), org=fresh_org(), embed__provider="hashing") as kb:
        kb.add(tmp_path / "docs")
        assert kb.search("login").degraded == ()
        monkeypatch.setattr(HashingEmbedder, "embed_query", fail)
        reasons = [
            kb.search(f"login {word}").degraded[0].reason for word in ("text", "logout", "sessions", "shared")
        ]
    assert ["3 times in a row" in reason for reason in reasons] == [False, False, False, True]
    assert len(asked) == 3


@pytest.mark.promise("000.degrade.lexical")
def test_a_server_that_stops_in_the_middle_of_a_search_is_a_clear_error(server: Server, store: PostgresStore):
    (a,) = put(store, "docs/a.md", "text")
    said: list[BaseException | list[int]] = []

    def search() -> None:
        try:
            said.append(found(store, "text"))
        except BaseException as fault:
            said.append(fault)

    with closing(psycopg.connect(server.url)) as other:
        schema = store._connections.location.schema
        other.execute(f'LOCK TABLE "{schema}".kb_postings IN ACCESS EXCLUSIVE MODE')
        searching = threading.Thread(target=search)
        searching.start()
        wait_for_a_waiter(other)
        server.stop()
        searching.join(BOUND_S)
    (fault,) = said
    assert isinstance(fault, BackendDown)
    assert fault.hint
    server.start()
    assert found(store, "text") == [a]


def wait_for_a_waiter(connection: Any) -> None:
    """Return when somebody waits for what this connection has locked."""
    waiting = "SELECT pg_sleep(0.01) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
    bound = f"SELECT clock_timestamp() > now() + interval '{BOUND_S} s'"
    while not connection.execute(waiting).fetchall():
        assert connection.execute(bound).fetchone() == (False,)


def test_a_sync_cut_off_by_the_server_is_finished_by_the_next_one(
    server: Server, store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(documents, "GROUP_DOCUMENTS", 50)  # so that a server can go between two groups
    for n in range(FILES):
        write(tmp_path / "docs" / f"{n:03}.md", f"# Page {n}\n\nShared text of page{n}.\n")
    bench = SyncBench(store)

    def stop_halfway(stage: str, done: int, total: int | None) -> None:
        if (stage, done) == ("index", FILES * 8 // 10):
            server.stop()

    bench.progress = stop_halfway
    with pytest.raises(BackendDown):
        bench.add(tmp_path / "docs")
    server.start()
    kept = len(bench.paths())
    assert 0 < kept < FILES
    bench.progress = lambda stage, done, total: None
    report = bench.sync()
    assert (report.added, report.unchanged, report.pending) == (FILES - kept, kept, 0)
    counts = store.catalog.count()
    assert (counts.documents, counts.vectors) == (FILES, counts.chunks)
    assert len(store.words.search(Word("shared"), EVERYTHING, 999)) == FILES


def test_the_command_line_says_so_in_one_sentence(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("KB_HOME", str(tmp_path))
    server.stop()
    status = main(["--store", server.url, "search", "anything", "--fts-only"])
    said = capsys.readouterr().err
    assert status == 2
    assert "PostgreSQL" in said
    assert "Traceback" not in said
