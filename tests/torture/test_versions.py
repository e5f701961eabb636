"""An older version and this one on one store at once; the older is in the history of git."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from support.kb_process import BOUND_S, assert_sound, database, environment, run
from support.recorders import write
from support.scratch import scratch
from support.small_library import UNHURRIED, secluded

ROOT = Path(__file__).parents[2]
OLDER = (
    "9482f1c",
    "9bd04f29",
    "03bb415",
)  # with schemas 4, 6 and 4: tests/golden/stores has stores of theirs
NOTES = 8
WORK = """
import sys
from concord import KnowledgeBase, Note
with KnowledgeBase.open() as kb:
    for n in range(int(sys.argv[2])):
        kb.note(Note(f"{sys.argv[1]} number {n}"))
        print(f"{sys.argv[1]} number {n}", flush=True)
        kb.search("heron")
"""


@pytest.fixture(scope="module")
def older() -> Iterator[dict[str, Path]]:
    """The sources of older versions, as far as the history has them."""
    with scratch() as name:
        found = {}
        for commit in OLDER:
            archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True)
            if archive.returncode == 0:
                found[commit] = Path(name) / commit
                found[commit].mkdir()
                subprocess.run(["tar", "-x", "-C", str(found[commit])], input=archive.stdout, check=True)
        yield found


def start(name: str, env: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORK, name, str(NOTES)]
    return subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


@pytest.mark.promise("torture.versions")
@pytest.mark.campaign(whole=30, part=0)
def test_two_versions_on_one_store_corrupt_nothing(seed: int, older: dict[str, Path], home: Path):
    commit = OLDER[seed % len(OLDER)]
    if commit not in older:
        pytest.skip(f"the history does not reach back to {commit}")
    now = environment(home)
    then = {**now, "PYTHONPATH": os.fspath(older[commit] / "src")}
    write(home / "docs" / "heron.md", "# Heron\n\nThe heron waits.\n")
    assert run("add", home / "docs", env=then)[0] == 0
    pairs = [start("old", then), start("new", now), start("old again", then)]
    kept = [line for process in pairs for line in process.communicate(timeout=BOUND_S)[0].splitlines()]
    assert sum(line.startswith("new") for line in kept) == NOTES
    assert_sound(database(home))
    with secluded(home, f"sqlite://{home}/data", **UNHURRIED) as kb:
        assert {each.note.content for each in kb.notes()} >= set(kept)
        kb.sync()
        # What the older version kept or changed is not in the copies of notes, which it does not know.
        assert {each.fault for each in kb.doctor().findings} <= {"notes", "disk"}
        assert {each.fault for each in kb.doctor(fix=True).findings} <= {"disk"}
        assert {each.note.content for each in kb.notes()} >= set(kept)
        assert kb.search("heron", mode="fts5").hits


@pytest.mark.promise("torture.versions", "A.sqlite.newer-schema")
@pytest.mark.campaign(whole=20, part=1)
def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(seed: int, home: Path):
    write(home / "docs" / "heron.md", "# Heron\n\nThe heron waits.\n")
    with secluded(home, f"sqlite://{home}/data", **UNHURRIED) as kb:
        kb.add(home / "docs")
    connection = apsw.Connection(str(database(home)))
    connection.pragma("user_version", 100 + seed)
    connection.close()
    before = database(home).read_bytes()
    for command in (("search", "heron"), ("note", "text"), ("doctor", "--fix"), ("recover",)):
        status, out, err = run(*command, env=environment(home))
        assert status != 0, command
        assert f"schema {100 + seed}" in out + err, command
    assert database(home).read_bytes() == before
