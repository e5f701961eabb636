"""Files that are missing or bad, as the command line tells of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults.disturbed import said_in_one_line
from support.kb_process import run
from support.pdf_samples import make_pdf
from support.recorders import write

pytestmark = pytest.mark.slow


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
