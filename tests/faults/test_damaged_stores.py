"""Stores that are damaged, of a newer program, or none at all."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from faults.disturbed import said_in_one_line
from support.kb_process import database, run
from support.recorders import write

pytestmark = pytest.mark.slow


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
