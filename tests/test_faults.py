"""Nothing is lost, and the next sync completes the work: signals, full disks, damage, two at once."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from concord.errors import BackendDown
from faulty_disk import FaultyDisk, disk_full, io_error
from kb_process import BOUND_S, assert_sound, database, environment, finish, run, start, state
from pdf_samples import make_pdf
from recorders import write
from scratch import RAM
from small_library import opened

pytestmark = pytest.mark.slow

FILES = 160


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home in memory where there is such a place: waiting for a disk is no part of these promises."""
    folder = (RAM if RAM.is_dir() else tmp_path) / f"kb-test-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def env(home: Path, compiled: Path) -> dict[str, str]:
    return environment(home, compiled)


class Reference(NamedTuple):
    """A folder, what an undisturbed run makes of it, and how long that takes once the store is there."""

    folder: Path
    state: dict[str, Any]
    took_s: float


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Reference:
    folder = tmp_path_factory.mktemp("reference") / "docs"
    for n in range(FILES):
        parts = "\n\n".join(
            f"## Part {p}\n\n" + f"Words{n} about thing{p} number {n}. " * 12 for p in range(3)
        )
        write(folder / f"d{n % 7}" / f"page{n:03}.md", f"# Page {n}\n\n{parts}\n")
    home = folder.parent / "home"
    env = environment(home, compiled)
    assert run("list", env=env)[0] == 0  # compiles what is imported
    process = start("add", folder, env=env)
    wait_for_store(process, database(home))
    began = time.monotonic()
    status, _, err = finish(process)
    took_s = time.monotonic() - began
    assert status == 0, err
    return Reference(folder, state(database(home)), took_s)


def wait_for_store(process: subprocess.Popen[str], path: Path, *, and_s: float = 0.0) -> None:
    """Wait until a run has begun to store things, and some time longer, or until it has ended."""
    while not path.exists() and process.poll() is None:
        wait(process, 0.002)
    wait(process, and_s)


def wait(process: subprocess.Popen[str], most_s: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=most_s)


def said_in_one_line(err: str) -> bool:
    """Whether a failure was told in a sentence and a hint, without a traceback."""
    error, *rest = [line for line in err.splitlines() if not line.startswith(("embedding", "indexing"))]
    return error.startswith("error: ") and len(rest) == 1 and rest[0].startswith("hint: ")


# Ended in the middle.


def completes(reference: Reference, home: Path) -> None:
    """Assert that what is left is sound and that the next sync makes it whole."""
    with opened(f"sqlite://{home}/data") as kb:
        is_known = bool(kb.sources())  # opening also finishes a store that was killed while it was made
        assert_sound(database(home))
        reports = kb.sync() if is_known else [kb.add(reference.folder)]
        assert [report.failed for report in reports] == [()]
    assert_sound(database(home))
    assert state(database(home)) == reference.state


@pytest.mark.promise("A.faults.kill-at-any-moment")
@pytest.mark.parametrize("moment", [0.05, 0.25, 0.4, 0.55, 0.7])
def test_a_run_that_is_killed_at_any_moment_is_completed_by_the_next(
    reference: Reference, home: Path, env: dict[str, str], moment: float
):
    process = start("add", reference.folder, env=env)
    wait_for_store(process, database(home), and_s=reference.took_s * moment)
    process.kill()
    finish(process)
    completes(reference, home)


@pytest.mark.promise("A.faults.kill-at-any-moment")
def test_a_run_that_is_killed_over_and_over_gets_there_in_the_end(
    reference: Reference, home: Path, env: dict[str, str]
):
    for n in range(4):
        process = start("add", reference.folder, env=env)
        wait_for_store(process, database(home), and_s=reference.took_s * (0.3 + 0.15 * n))
        process.kill()
        finish(process)
    for _ in range(2):
        assert run("add", reference.folder, env=env)[0] == 0
        assert state(database(home)) == reference.state


KILLED_AT = """
import os, signal, sys
from concord.knowledge import KnowledgeBase

def killer(stage, done, total):
    if [stage, done >= int(sys.argv[3])] == [sys.argv[2], True]:
        os.kill(os.getpid(), getattr(signal, sys.argv[4]))

signal.signal(signal.SIGINT, signal.default_int_handler)
with KnowledgeBase.open() as kb:
    kb.add(sys.argv[1], progress=killer)
"""


@pytest.mark.promise("A.faults.kill-at-any-moment")
@pytest.mark.parametrize("stage", ["index", "embed"])
@pytest.mark.parametrize(("at", "how"), [(1, "SIGKILL"), (100, "SIGTERM"), (150, "SIGKILL")])
def test_a_run_that_is_killed_at_a_known_file_has_kept_what_came_before(
    reference: Reference, home: Path, env: dict[str, str], stage: str, at: int, how: str
):
    command = [sys.executable, "-c", KILLED_AT, str(reference.folder), stage, str(at), how]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=BOUND_S)
    assert done.returncode == -getattr(signal, how), done.stderr
    assert_sound(database(home))
    kept = state(database(home))
    assert len(kept) >= (at - 64 if stage == "index" else FILES)
    assert all(kept[path][:5] == whole[:5] for path, whole in reference.state.items() if path in kept)
    completes(reference, home)


@pytest.mark.promise("A.faults.kill-at-any-moment")
@pytest.mark.parametrize("moment", [0.1, 0.4, 0.6])
def test_ctrl_c_at_any_moment_is_one_line_and_the_next_run_completes_the_work(
    reference: Reference, home: Path, env: dict[str, str], moment: float
):
    process = start("add", reference.folder, env=env)
    wait_for_store(process, database(home), and_s=reference.took_s * moment)
    process.send_signal(signal.SIGINT)
    status, out, err = finish(process)
    assert "Traceback" not in err
    if status != 0:  # it may have been faster than the signal
        assert status == 130
        assert err.splitlines()[-1].startswith("interrupted; what was stored stays")
    completes(reference, home)


# Two at once.


@pytest.mark.promise("A.faults.two-syncs")
@pytest.mark.parametrize("command", ["sync", "add", "search"])
def test_two_runs_at_once_both_succeed_and_nothing_is_doubled(
    reference: Reference, home: Path, env: dict[str, str], command: str
):
    folder = reference.folder
    args: dict[str, tuple[str | Path, ...]] = {
        "sync": ("sync", "--json"),
        "add": ("add", folder, "--json"),
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


def test_a_search_during_a_sync_answers_and_does_not_wait_for_it(reference: Reference, env: dict[str, str]):
    with opened(f"sqlite://{env['KB_HOME']}/data") as kb:
        answers: list[int] = []

        def search(stage: str, done: int, total: int | None) -> None:
            if done % 70 == 0:
                status, out, err = run("search", "page", "--fts-only", "--json", env=env)
                assert status in (0, 1), err
                answers.append(status)

        kb.add(reference.folder, progress=search)
        assert answers[-1] == 0


def test_removing_a_source_waits_for_its_sync(reference: Reference, home: Path, env: dict[str, str]):
    with opened(f"sqlite://{home}/data") as kb:
        waiting: list[subprocess.Popen[str]] = []

        def remove(stage: str, done: int, total: int | None) -> None:
            if not waiting:
                waiting.append(start("remove", reference.folder, env=env))

        kb.add(reference.folder, progress=remove)
        status, out, err = finish(waiting[0])
        assert (status, f"{FILES} documents" in out) == (0, True), err
    assert state(database(home)) == {}


# Disks.


@pytest.mark.promise("A.faults.full-or-failing-disk")
@pytest.mark.parametrize("fault", [disk_full, io_error])
@pytest.mark.parametrize("at", [0, 3, 10, 25])
def test_a_disk_that_fails_is_an_error_and_the_next_run_completes_the_work(
    reference: Reference, home: Path, fault: Any, at: int
):
    disk = FaultyDisk(f"faulty{at}")
    try:
        url = f"sqlite://{home}/data?vfs=faulty{at}"
        with opened(url) as kb:
            kb.sources()
            disk.fails(fault, at)
            degraded = ""
            try:
                degraded = kb.add(reference.folder).degraded or ""
            except BackendDown as failure:
                degraded = failure.hint or ""
            assert degraded
        disk.fails(None)
        with opened(url) as kb:
            kb.add(reference.folder)
    finally:
        disk.unregister()
    assert_sound(database(home))
    assert state(database(home)) == reference.state


@pytest.mark.promise("A.faults.full-or-failing-disk")
@pytest.mark.parametrize("limit", [20_000, 400_000])
def test_a_disk_without_room_is_said_in_one_line_and_the_next_run_completes_the_work(
    reference: Reference, home: Path, env: dict[str, str], limit: int
):
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    env = env | {"PYTHONDONTWRITEBYTECODE": "1"}
    status, out, err = run("add", reference.folder, env=env, before=no_room)
    assert status == 2
    assert said_in_one_line(err), err
    completes(reference, home)


AS_NOBODY = """
import os, sys
from concord.cli.main import main

home, warm, *args = sys.argv[1:]
os.environ["KB_HOME"] = warm
main(["add", args[1]])  # imports everything while it may
main(["search", "apples"])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
os.environ["KB_HOME"] = home
print("---", flush=True)
print("---", file=sys.stderr, flush=True)
sys.exit(main(args))
"""


@pytest.mark.promise("A.faults.read-only-disk", "A.faults.one-line")
def test_a_home_that_may_not_be_written_is_said_in_one_line(home: Path, env: dict[str, str]):
    home.chmod(0o755)
    write(home / "docs" / "a.md", "# A\n\nApples.\n")
    shut = home / "shut"
    shut.mkdir(mode=0o555)
    command = [sys.executable, "-c", AS_NOBODY, str(shut), str(home / "warm"), "add", str(home / "docs")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=BOUND_S)
    assert done.returncode == 2
    assert said_in_one_line(done.stderr.partition("---\n")[2])
    assert list(shut.iterdir()) == []


FROM_A_READ_ONLY_STORE = """
import os, sys
from pathlib import Path
from concord.cli.main import main

home, docs, free = map(Path, sys.argv[1:])
os.environ["KB_HOME"] = str(home)
main(["add", str(docs)])
main(["search", "apples", "--in", str(docs)])  # imports everything while it may
main(["migrate", "--to", f"{os.environ['SCHEME']}://{free}/warm"])
os.environ["KB_STORE_URL"] = f"{os.environ['SCHEME']}://{home}/store"
main(["add", str(docs)])
(home / "store").chmod(0o555)
(home / "data").chmod(0o555)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print("---", flush=True)
print("migrate", main(["migrate", "--to", f"sqlite://{free}/copy"]), flush=True)
print("search", main(["search", "apples", "--fts-only", "--in", str(docs)]), flush=True)
print("sync", main(["sync"]), flush=True)
(docs / "a.md").write_text("# A\\n\\nOther pears.\\n", encoding="utf-8")
print("search", main(["search", "apples", "--fts-only", "--in", str(docs)]), flush=True)
"""


@pytest.mark.promise("A.faults.read-only-disk")
@pytest.mark.parametrize("scheme", ["sqlite", "json"])
def test_from_a_store_that_may_not_be_written_all_is_read_and_migrated(
    home: Path, env: dict[str, str], scheme: str
):
    home.chmod(0o755)
    for name in ("docs", "free"):
        (home / name).mkdir()
        (home / name).chmod(0o777)
    write(home / "docs" / "a.md", "# A\n\nApples.\n").chmod(0o666)
    folders = map(str, (home, home / "docs", home / "free"))
    command = [sys.executable, "-c", FROM_A_READ_ONLY_STORE, *folders]
    variables = env | {"SCHEME": scheme}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=BOUND_S)
    (home / "store").chmod(0o755)
    (home / "data").chmod(0o755)
    assert done.returncode == 0, done.stderr
    said = done.stdout.partition("---\n")[2]
    assert re.findall("^(?:migrate|search|sync) .*$", said, re.MULTILINE) == [
        "migrate 0",
        "search 0",
        "sync 2",
        "search 2",
    ]
    assert done.stderr.count("is read-only") == 2


# Damage.


@pytest.fixture
def indexed(home: Path, env: dict[str, str]) -> Path:
    for n in range(40):
        write(home / "docs" / f"{n}.md", f"# Page {n}\n\n" + f"Apples {n} and pears. " * 30)
    assert run("add", home / "docs", env=env)[0] == 0
    return database(home)


COMMANDS = [("search", "apples"), ("add", "DOCS"), ("sync",), ("stats",), ("list",), ("note", "text")]


@pytest.mark.promise("A.faults.corrupt-database")
@pytest.mark.parametrize("damage", ["not a database", "another program's"])
def test_a_store_that_is_none_is_refused_and_left_as_it_is(
    home: Path, env: dict[str, str], damage: str, compiled: Path
):
    path = database(home)
    path.parent.mkdir(parents=True)
    if damage == "not a database":
        path.write_bytes(b"This is a text, not a database. " * 300)
    else:
        connection = apsw.Connection(str(path))
        connection.execute("CREATE TABLE theirs (x)")
        connection.close()
    before = path.read_bytes()
    write(home / "docs" / "a.md", "# A\n\nApples.\n")
    for command in COMMANDS[:3]:
        args = [home / "docs" if arg == "DOCS" else arg for arg in command]
        status, out, err = run(*args, env=env)
        assert (status, out) == (2, "")
        assert said_in_one_line(err), err
    assert path.read_bytes() == before


@pytest.mark.promise("A.faults.corrupt-database")
def test_a_damaged_store_is_said_in_one_line(indexed: Path, env: dict[str, str]):
    whole = bytearray(indexed.read_bytes())
    for start_of in range(8192, len(whole), 4096):
        whole[start_of : start_of + 2048] = bytes(range(256)) * 8
    indexed.write_bytes(whole)
    for command in (("search", "apples", "--fts-only"), ("sync",), ("stats",)):
        status, _, err = run(*command, env=env)
        assert status == 2, err
        assert said_in_one_line(err), err


@pytest.mark.promise("A.sqlite.newer-schema")
def test_a_store_of_a_newer_program_is_refused_and_left_as_it_is(indexed: Path, env: dict[str, str]):
    connection = apsw.Connection(str(indexed))
    connection.pragma("user_version", 999)
    connection.close()
    before = indexed.read_bytes()
    for command in (("search", "apples"), ("sync",), ("note", "text")):
        status, out, err = run(*command, env=env)
        assert (status, out) == (2, "")
        assert "schema 999" in err
        assert said_in_one_line(err), err
    assert indexed.read_bytes() == before


# Files, as the command line tells of them.


@pytest.mark.promise("A.faults.one-line")
def test_a_path_that_is_not_there_is_said_in_one_line(home: Path, env: dict[str, str]):
    for args in (("add", home / "nowhere"), ("search", "x", "--in", home / "nowhere")):
        status, out, err = run(*args, env=env)
        assert (status, out) == (2, "")
        assert said_in_one_line(err), err


@pytest.mark.promise("A.sync.one-bad-file")
def test_bad_files_are_named_the_rest_is_found_and_the_status_is_3(home: Path, env: dict[str, str]):
    folder = home / "docs"
    write(folder / "a.md", "# A\n\nApples.\n")
    write(folder / "locked.pdf", make_pdf([["a secret"]], password="sesame"))
    write(folder / "cut.pdf", make_pdf([["some text"]])[:300])
    write(folder / "zero.md", b"")
    write(folder / "latin.txt", "Grüße aus Köln, schöne Straße\n".encode("latin-1"))
    os.truncate(write(folder / "big.log", "x"), 100_000_000)
    status, out, err = run("add", folder, env=env)
    assert status == 3
    assert "Traceback" not in err
    assert "2 added" in out
    assert "docs/locked.pdf: " in out
    assert "docs/cut.pdf: " in out
    assert "1 empty" in out
    assert "1 too large" in out
    assert run("search", "apples", env=env)[0] == 0
