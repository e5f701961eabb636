"""Files that are no stores."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from faults.disturbed import said_in_one_line
from support.kb_process import database, run
from support.recorders import write

pytestmark = pytest.mark.slow


@pytest.mark.promise("A.faults.corrupt-database")
@pytest.mark.parametrize("damage", ["not a database", "another program's"])
def test_a_store_that_is_none_is_refused_and_left_as_it_is(home: Path, env: dict[str, str], damage: str):
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
    for command in (("search", "apples"), ("add", home / "docs")):
        status, out, err = run(*command, env=env)
        assert (status, out) == (2, "")
        assert said_in_one_line(err), err
    assert path.read_bytes() == before
