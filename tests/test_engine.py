"""The engine: one process behind all clients of one user and configuration, as real processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from concord.core.arguments import Sync
from concord.core.config import fingerprint, load_settings
from concord.core.errors import Unavailable
from concord.core.settings import SETTINGS, Setting
from concord.engine import client, place
from concord.operations import OPERATIONS
from support.engines import NO_ENGINE, engines, running, wait_until
from support.kb_process import KB, environment

pytestmark = pytest.mark.slow

Kb = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder whose name is short enough for a socket in it."""
    with tempfile.TemporaryDirectory() as short:
        yield Path(short)


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kb]:
    """Run `kb` as a process, in a folder with documents that are indexed; it may start engines."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "auth.md").write_text("# Login\n\nA token lives for an hour.\n", encoding="utf-8")
    (tmp_path / "docs" / "otter.md").write_text("# Otters\n\nOtters hold hands.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")

    def run(*args: str, **variables: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [*KB, *args],
            env={**environment(tmp_path / "home"), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    assert run("add", "docs")[0] == 0
    with engines(tmp_path, idle_s=600):
        yield run
        run("engine", "stop")


def begun(below: Path) -> int:
    """Start an engine with the settings of this process, and return its process id."""
    assert client.start(load_settings(), wait_s=30)
    (process,) = running(below)
    return process


@pytest.mark.promise("I.engine.one")
def test_a_search_starts_an_engine_which_answers_the_next_one(kb: Kb, tmp_path: Path):
    assert kb("engine", "status")[0] == 1
    first = kb("search", "otters", "--json")
    assert wait_until(lambda: kb("engine", "status")[0] == 0)
    (process,) = running(tmp_path)
    again = kb("search", "otters", "--json")
    assert [result["path"] for result in json.loads(again[1])["results"]] == [
        result["path"] for result in json.loads(first[1])["results"]
    ]
    assert running(tmp_path) == [process]
    assert re.search(rf"^pid +{process}$", kb("engine")[1], re.MULTILINE)
    assert json.loads(kb("engine", "stop", "--json")[1])["pid"] == process
    assert wait_until(lambda: not running(tmp_path))


@pytest.mark.promise("I.engine.one")
def test_of_many_who_start_an_engine_at_once_one_does(kb: Kb, tmp_path: Path):
    with ThreadPoolExecutor(6) as starters:
        assert all(starters.map(lambda _: client.start(load_settings(), wait_s=30), range(6)))
    assert len(running(tmp_path)) == 1


LINES = (
    ("search", "token", "--json"),
    ("search", "otters", "--explain", "--top", "100"),
    ("search", "xyzzy", "--fts-only"),
    ("search", "token", "--since", "yesterday"),
    ("search", "half \udc80 a character"),
    ("search", "hands", "--in", "docs", "--json"),
    ("get", "./docs/otter.md"),
    ("explain", "token", "docs/auth.md", "--json"),
    ("stats", "--json"),
    ("sync", "nowhere", "--json"),
    ("--org", "../e", "search", "token"),
)
VARIES = re.compile(
    r'\d+(\.\d+)?(?= ms| s\b)|T[\d:]+Z|"timings_ms":{[^}]*}'
    r'|"(search_time_ms|took_s|at|size_bytes|generation)":[^,}]+'
)


@pytest.mark.promise("I.engine.same")
def test_commands_say_the_same_with_and_without_an_engine(kb: Kb, tmp_path: Path):
    def said(line: tuple[str, ...], start: str) -> list[object]:
        return [VARIES.sub("", str(part)) for part in kb(*line, **{NO_ENGINE: start})]

    kb("feedback", "docs/auth.md", "good", "--query", "token", **{NO_ENGINE: "never"})  # so that one counts
    alone = [said(line, "never") for line in LINES]
    process = begun(tmp_path)
    for line, wanted in zip(LINES, alone, strict=True):
        assert said(line, "search") == wanted
    assert running(tmp_path) == [process]


@pytest.mark.promise("I.engine.apart")
def test_settings_and_versions_that_differ_never_meet(
    kb: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    one = begun(tmp_path)
    top = {"KB_SEARCH_DEFAULT_TOP": "1"}
    assert kb("engine", "status", **top)[0] == 1
    assert json.loads(kb("search", "token otters", "--json", **top)[1])["returned"] == 1
    assert wait_until(lambda: kb("engine", "status", **top)[0] == 0)
    assert len(running(tmp_path)) == 2
    monkeypatch.setattr(place, "__version__", "99.0")
    assert client.ask(load_settings(), "status") is None
    monkeypatch.undo()
    kb("engine", "stop", **top)
    assert wait_until(lambda: running(tmp_path) == [one])


@pytest.mark.promise("I.engine.apart")
def test_every_setting_is_in_the_name_but_those_that_come_with_a_call(tmp_path: Path):
    home = {"KB_HOME": str(tmp_path)}
    usual = fingerprint(load_settings({}, home), home)

    def changed(setting: Setting) -> str:
        kept, value = setting.default, "other"
        if setting.choices:
            value = next(choice for choice in setting.choices if choice != kept)
        elif isinstance(kept, bool):
            value = str(not kept)
        elif not isinstance(kept, str):
            value = str(type(kept)(kept / 2 if setting.maximum else kept + 1))
        return fingerprint(load_settings({setting.key: value}, home), home)

    same = {setting.key for setting in SETTINGS if changed(setting) == usual}
    assert same == {"org", "mcp.roots", "engine.start"}
    assert fingerprint(load_settings({}, home), {**home, "PGUSER": "other"}) != usual


@pytest.mark.promise("I.engine.private")
def test_nobody_else_can_reach_an_engine(kb: Kb, tmp_path: Path):
    begun(tmp_path)
    state = json.loads(kb("engine", "status", "--json")[1])
    path = Path(state["socket"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.parent.chmod(0o755)
    assert kb("engine", "status")[0] == 1  # others could have put it there
    path.parent.chmod(0o700)
    assert kb("engine", "status")[0] == 0


ASKS_AS_NOBODY = """
import os, socket, sys
os.chdir(sys.argv[1])
os.setgroups([])
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as asking:
    asking.settimeout(10)
    asking.connect(sys.argv[2])
    try:
        asking.sendall(b'{"service":"status","org":"default","cwd":"/","mark":"x"}\\n')
        print(asking.recv(1000))
    except OSError:
        print(b"")
"""


@pytest.mark.promise("I.engine.private")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_another_user_who_gets_as_far_as_the_socket_is_hung_up_on(kb: Kb, tmp_path: Path):
    begun(tmp_path)
    path = Path(json.loads(kb("engine", "status", "--json")[1])["socket"])
    path.chmod(0o666)
    path.parent.chmod(0o711)
    line = [sys.executable, "-c", ASKS_AS_NOBODY, str(path.parent), path.name]  # entered before it is nobody
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "b''"
    path.parent.chmod(0o700)
    assert kb("engine", "status")[0] == 0


def test_a_home_with_a_long_name_has_its_engine_elsewhere(kb: Kb, tmp_path: Path):
    long = tmp_path / ("long " * 20)
    shutil.copytree(tmp_path / "home", long / "home")
    variables = {"KB_HOME": str(long / "home")}
    assert kb("search", "otters", **variables)[0] == 0
    assert wait_until(lambda: kb("engine", "status", **variables)[0] == 0)
    path = Path(json.loads(kb("engine", "status", "--json", **variables)[1])["socket"])
    assert len(str(path)) <= place.LONGEST
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert kb("engine", "stop", **variables)[0] == 0
    for left in path.parent.glob(f"{path.stem}.*"):
        left.unlink()


@pytest.mark.promise("I.engine.idle")
def test_an_engine_ends_when_nobody_needs_it_or_can_reach_it(kb: Kb, tmp_path: Path):
    assert client.start(load_settings({"engine.idle_s": 1}), wait_s=30)
    assert wait_until(lambda: not running(tmp_path))
    begun(tmp_path)
    assert not wait_until(lambda: not running(tmp_path), patience_s=3)
    meeting = place.place_of(load_settings())
    assert meeting
    os.unlink(meeting.address)
    assert wait_until(lambda: not running(tmp_path))


@pytest.mark.promise("I.engine.fallback")
def test_an_engine_that_hangs_or_was_killed_keeps_nobody_from_an_answer(kb: Kb, tmp_path: Path):
    process = begun(tmp_path)
    os.kill(process, signal.SIGSTOP)
    assert kb("search", "otters")[0] == 0
    os.kill(process, signal.SIGKILL)
    assert wait_until(lambda: not running(tmp_path))
    assert kb("search", "otters")[0] == 0  # beside the socket that nobody listens at
    assert wait_until(lambda: kb("engine", "status")[0] == 0)
    assert running(tmp_path) != [process]


@pytest.mark.promise("I.engine.fallback")
def test_a_store_that_is_deleted_under_an_engine_is_a_new_one_for_its_clients(kb: Kb, tmp_path: Path):
    process = begun(tmp_path)
    assert kb("search", "otters")[0] == 0
    shutil.rmtree(tmp_path / "home" / "data")
    assert "the knowledge base is empty" in kb("search", "otters")[2]
    assert kb("add", "docs")[0] == 0
    assert kb("search", "otters")[0] == 0
    assert running(tmp_path) == [process]


def many(tmp_path: Path, count: int = 400) -> None:
    for number in range(count):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Page {number}\n\nStep {number}.\n" * 20)


@pytest.mark.promise("I.engine.dies")
def test_an_engine_that_dies_while_it_writes_is_an_error_and_what_it_stored_stays(kb: Kb, tmp_path: Path):
    many(tmp_path)
    process = begun(tmp_path)

    def kill(stage: str, done: int, total: int | None) -> None:
        if done > 20:
            os.kill(process, signal.SIGKILL)

    with pytest.raises(Unavailable, match="ended before it had answered"):
        client.call(load_settings(), OPERATIONS["sync"], Sync(), kill, must_exist=True)
    assert json.loads(kb("sync", "--json")[1])["failed"] == []
    assert json.loads(kb("stats", "--json")[1])["documents"] == 402
    assert kb("doctor")[0] == 0


@pytest.mark.promise("I.engine.cancel")
def test_a_client_that_hangs_up_cancels_what_it_asked_for(kb: Kb, tmp_path: Path):
    many(tmp_path)
    process = begun(tmp_path)

    def leave(stage: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.call(load_settings(), OPERATIONS["sync"], Sync(), leave, must_exist=True)

    def clients() -> int:
        return int((client.ask(load_settings(), "status") or {"clients": -1})["clients"])

    assert wait_until(lambda: clients() == 0)
    assert json.loads(kb("stats", "--json", **{NO_ENGINE: "never"})[1])["documents"] < 402
    assert running(tmp_path) == [process]


@pytest.mark.promise("I.engine.watch")
def test_an_engine_that_watches_keeps_sources_current_and_stays(kb: Kb, tmp_path: Path):
    watching = {"KB_ENGINE_WATCH": "true"}
    assert kb("search", "otters", **watching)[0] == 0
    assert wait_until(lambda: kb("engine", "status", **watching)[0] == 0)
    (tmp_path / "docs" / "new.md").write_text("# Walrus\n\nThe walrus sleeps on ice.\n", encoding="utf-8")
    assert wait_until(lambda: "walrus" in kb("search", "walrus", "--fts-only", **watching)[1].lower())
    (job,) = json.loads(kb("engine", "status", "--json", **watching)[1])["jobs"]
    assert job["label"] == "watching default"
    assert len(running(tmp_path)) == 1
    assert kb("engine", "stop", **watching)[0] == 0


@pytest.mark.promise("I.engine.never")
@pytest.mark.parametrize("url", ["memory://", "never"])
def test_where_there_may_be_no_engine_none_is_started(kb: Kb, tmp_path: Path, url: str):
    variables = {NO_ENGINE: "never"} if url == "never" else {"KB_STORE_URL": url}
    kb("search", "otters", "--in", "docs", **variables)
    assert not client.start(load_settings({"store.url": "memory://"}))
    assert running(tmp_path) == []
