"""Disks that fail, are full, or may not be written."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from concord.core.errors import BackendDown
from faults.disturbed import Reference, completes, said_in_one_line
from support.faulty_disk import FaultyDisk, disk_full, io_error
from support.kb_process import BOUND_S, assert_sound, database, run, state
from support.recorders import write
from support.small_library import opened

pytestmark = pytest.mark.slow


@pytest.mark.promise("A.faults.full-or-failing-disk")
@pytest.mark.parametrize("fault", [disk_full, io_error])
@pytest.mark.parametrize("at", [0, 10])
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


@pytest.mark.promise("A.faults.full-or-failing-disk")
def test_a_store_on_a_full_disk_is_searched_and_writing_says_that_it_is_full(
    reference: Reference, home: Path, env: dict[str, str]
):
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    env = env | {"PYTHONDONTWRITEBYTECODE": "1"}
    assert run("add", reference.folder, env=env)[0] == 0
    status, out, err = run("search", "thing1", "--fts-only", env=env, before=no_room)
    assert (status, ".md" in out) == (0, True), err
    status, _, err = run("note", "remember this", env=env, before=no_room)
    assert (status, "the disk is full" in err) == (2, True), err


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
        "search 0",
    ]
    assert "the file was changed since it was indexed" in said.rpartition("sync 2")[2]
    assert done.stderr.count("is read-only") == 3
