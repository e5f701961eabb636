"""Files that are missing or bad, as the command line tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.disturbed import said_in_one_line
from support.kb_process import run

pytestmark = pytest.mark.slow


@pytest.mark.promise("A.faults.one-line")
def test_a_path_that_is_not_there_is_said_in_one_line(home: Path, env: dict[str, str]):
    for args in (("add", home / "nowhere"), ("search", "x", "--in", home / "nowhere")):
        status, out, err = run(*args, env=env)
        assert (status, out) == (2, "")
        assert said_in_one_line(err), err
