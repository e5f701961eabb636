"""What a SQLite store does when the disk, the file or another process does not do what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from concord.core.errors import CorruptStore, StoreBusy
from concord.store.sqlite.store import SQLiteStore
from concord.types import Counts, Filter, Word
from contract.stored import EVERYTHING, embed, file_of, put, source, unit
from support.faulty_disk import FaultyDisk

TESTS = Path(__file__).parent


def opened(folder: Path, options: str = "") -> SQLiteStore:
    return SQLiteStore.open(f"sqlite://{folder}{options}", "default")


def texts(store: SQLiteStore, path: str = "docs/a.md") -> list[str]:
    return [chunk.text for chunk in store.catalog.chunks(path)]


def found(store: SQLiteStore, word: str) -> int:
    return len(store.words.search(Word(word), EVERYTHING, 100))


def python(*arguments: str | Path, code: str) -> subprocess.Popen[str]:
    """Start a process that knows our tests and our package."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Return what a process printed; fail with its traceback when it failed."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.strip()


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    made = FaultyDisk("faulty")
    yield made
    made.unregister()


DIES_AT_EVERY_WRITE = """
import os, signal, sys
from pathlib import Path
from contract.stored import put
from support.faulty_disk import FaultyDisk
from test_sqlite_faults import found, opened, texts

folder = Path(sys.argv[1])
versions = {1: ["old text"], 2: ["new text " * 300, "and more " * 300]}
store = opened(folder)
put(store, "docs/a.md", *versions[1])
store.close()
deaths = 0
for at in range(100):
    child = os.fork()
    if not child:
        disk = FaultyDisk("deadly")
        store = opened(folder, "?vfs=deadly")
        store.catalog.snapshot()
        disk.fails(lambda: os.kill(os.getpid(), signal.SIGKILL), at)
        put(store, "docs/a.md", *versions[2])
        os._exit(0)
    died = os.waitpid(child, 0)[1] != 0
    store = opened(folder)
    now = texts(store)
    assert now in versions.values(), now
    assert (found(store, "old"), found(store, "new")) == ((1, 0) if now == versions[1] else (0, 1))
    put(store, "docs/a.md", *versions[1])
    store.close()
    deaths += died
    if not died:
        break
print(deaths)
"""


@pytest.mark.promise("A.faults.kill-at-any-moment")
def test_a_process_killed_at_any_write_leaves_the_old_or_the_new_version(tmp_path: Path):
    assert int(finish(python(tmp_path, code=DIES_AT_EVERY_WRITE))) > 3


WAITS_INSIDE = """
import sys
from pathlib import Path
from contract.stored import document, pieces
from test_sqlite_faults import opened

class Slow(list):
    walks = 0
    def __iter__(self):
        Slow.walks += 1
        if Slow.walks == 2:  # the old chunks are gone from the tables by now
            print("inside", flush=True)
            sys.stdin.read()
        return super().__iter__()

opened(Path(sys.argv[1])).catalog.put_documents([(document("docs/a.md"), Slow(pieces("new text")))])[0]
"""


def test_a_writer_that_does_not_let_go_is_reported_and_readers_do_not_wait_for_it(tmp_path: Path):
    store = opened(tmp_path, "?busy_timeout_ms=20")
    put(store, "docs/a.md", "text")
    writer = python(tmp_path, code=WAITS_INSIDE)
    assert writer.stdout
    assert writer.stdout.readline() == "inside\n"
    with pytest.raises(StoreBusy) as failure:
        store.catalog.put_source(source("wiki"))
    assert failure.value.hint
    assert found(store, "text") == 1
    finish(writer)  # its standard input ends, and so does its wait
    store.catalog.put_source(source("wiki"))
    assert texts(store) == ["new text"]
    store.close()


WRITES_MANY = """
import sys
from pathlib import Path
from contract.stored import put
from test_sqlite_faults import opened

store = opened(Path(sys.argv[1]))
for n in range(30):
    put(store, f"{sys.argv[2]}/{n}.md", f"shared text {n}", "tail")
store.close()
"""


@pytest.mark.promise("A.faults.two-writers")
def test_processes_that_make_and_fill_a_store_at_once_lose_nothing(tmp_path: Path):
    names = ["docs", "wiki", "blog", "code"]
    for process in [python(tmp_path / "new", name, code=WRITES_MANY) for name in names]:
        finish(process)
    store = opened(tmp_path / "new")
    assert store.catalog.count() == Counts(4, 120, 240, 0)
    assert store.words.frequencies(["shared"]) == (240, {"shared": 120})
    store.close()


def damaged(folder: Path, change: Callable[[bytes], bytes]) -> None:
    """Write a store of some size, then damage its file."""
    store = opened(folder)
    put(store, "docs/a.md", *(f"text {n} " * 50 for n in range(100)))
    store.close()
    Path(file_of(store)).write_bytes(change(Path(file_of(store)).read_bytes()))


def use_everything(folder: Path) -> None:
    store = opened(folder)
    try:
        for chunk in store.catalog.chunks("docs/a.md"):
            store.catalog.read([chunk.id])
        store.words.search(Word("text"), Filter(type="markdown"), 10)
        list(store.catalog.documents())
        put(store, "docs/b.md", "more text")
        store.catalog.remove_source("docs")
    finally:
        store.close()


@pytest.mark.promise("A.faults.corrupt-database")
@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"this is not a database, it is a letter " * 200,
        lambda data: os.urandom(len(data)),
        lambda data: data[: len(data) // 2],
        lambda data: data[:5000],
        lambda data: data[:4096] + b"\xff" * (len(data) - 4096),
        lambda data: data[: len(data) // 3] + bytes(len(data) - len(data) // 3),
    ],
    ids=["text", "noise", "half", "cut in a page", "overwritten", "zeroed"],
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, change: Callable[[bytes], bytes]):
    damaged(tmp_path, change)
    with pytest.raises(CorruptStore) as failure:
        use_everything(tmp_path)
    assert str(tmp_path) in failure.value.message
    assert failure.value.hint


AS_NOBODY = """
import os, sys
from pathlib import Path
import numpy  # which nobody may read where the tests are root's
from contract.stored import EVERYTHING, put, unit, vectors_of
from test_sqlite_faults import found, opened
from concord.core.errors import KBError
from concord.types import Word

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    store = opened(Path(sys.argv[1]))
    near = vectors_of(store).search(unit(1, 0, 0, 0), EVERYTHING, 5)
    print("found", found(store, "text"), len(near), flush=True)
    put(store, "docs/b.md", "more text")
    print("written")
except KBError as error:
    print(type(error).__name__, "hint" if error.hint else "no hint")
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder with a store, in a folder that others may enter (pytest's own are closed to them)."""
    with TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        folder = Path(made) / "shared"
        store = opened(folder)
        embed(store, [(put(store, "docs/a.md", "text")[0], unit(1, 0, 0, 0))])
        store.close()
        yield folder
        folder.chmod(0o777)


@pytest.mark.promise("A.faults.read-only-disk")
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "says"),
    [
        (0o555, 0o444, ["found 1 1", "ReadOnlyStore hint"]),
        (0o555, 0o666, ["found 1 1", "ReadOnlyStore hint"]),
        (0o777, 0o666, ["found 1 1", "written"]),
    ],
)
def test_what_may_not_be_written_can_still_be_searched(
    shared: Path, folder_mode: int, file_mode: int, says: list[str]
):
    (shared / "default.db").chmod(file_mode)
    shared.chmod(folder_mode)
    assert finish(python(shared, code=AS_NOBODY)).splitlines() == says


def test_a_read_only_store_with_an_unfinished_log_is_not_searched_as_if_it_had_none(shared: Path):
    store = opened(shared)
    put(store, "docs/b.md", "newer text")
    log = shared / "default.db-wal"
    kept = log.read_bytes()
    store.close()
    log.write_bytes(kept)
    shared.chmod(0o555)
    assert finish(python(shared, code=AS_NOBODY)).splitlines() == ["BackendDown hint"]
