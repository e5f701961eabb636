"""Two runs at once: neither loses or doubles anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import apsw
import pytest

from concord.core.errors import NotFound
from concord.index import documents, lock
from faults.disturbed import FILES, Reference
from support.kb_process import assert_sound, database, finish, run, start, state
from support.small_library import opened

pytestmark = pytest.mark.slow


@pytest.mark.promise("A.faults.two-syncs")
@pytest.mark.parametrize("command", ["sync", "search"])
def test_two_runs_at_once_both_succeed_and_nothing_is_doubled(
    reference: Reference, home: Path, env: dict[str, str], command: str
):
    folder = reference.folder
    args: dict[str, tuple[str | Path, ...]] = {
        "sync": ("sync", "--json"),
        "search": ("search", "page", "--in", folder, "--json"),
    }
    if command == "sync":
        assert run("add", folder, "--pattern", "page00*", "--no-embed", env=env)[0] == 0
        connection = apsw.Connection(str(database(home)))
        connection.execute("UPDATE kb_sources SET patterns = '[]'")
        connection.close()
    ended = [finish(process) for process in [start(*args[command], env=env) for _ in range(3)]]
    for status, _, err in ended:
        assert status == 0, err
    assert_sound(database(home))
    assert state(database(home)) == reference.state


def test_a_search_during_a_sync_answers_and_does_not_wait_for_it(
    reference: Reference, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(documents, "GROUP_DOCUMENTS", 64)  # so that some are stored while others are read
    with opened(f"sqlite://{env['KB_HOME']}/data") as kb:
        answers: list[int] = []

        def search(stage: str, done: int, total: int | None) -> None:
            if done % 70 == 0:
                status, out, err = run("search", "page", "--fts-only", "--json", env=env)
                assert status in (0, 1), err
                answers.append(status)

        kb.add(reference.folder, progress=search)
        assert answers[-1] == 0


@pytest.mark.promise("G.remove.stops-sync")
def test_removing_a_source_stops_its_sync(
    reference: Reference, home: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(lock, "_LOOKED_EVERY_S", 0)
    with opened(f"sqlite://{home}/data") as kb:
        removing: list[subprocess.Popen[str]] = []
        read: list[int] = []

        def remove(stage: str, done: int, total: int | None) -> None:
            read.append(done)
            if not removing:
                removing.append(start("remove", reference.folder, env=env))
                (source,) = kb.store.catalog.snapshot().sources
                while "removed" not in kb.store.catalog.sync_state(source.id):
                    assert removing[0].poll() is None

        with pytest.raises(NotFound, match="removed meanwhile"):
            kb.add(reference.folder, progress=remove)
        assert max(read) < FILES
        status, _, err = finish(removing[0])
        assert status == 0, err
    assert state(database(home)) == {}
