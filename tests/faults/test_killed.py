"""Runs that are ended in the middle: by a signal, at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from faults.disturbed import FILES, Reference, completes, wait_for_store
from support.kb_process import BOUND_S, assert_sound, database, finish, start, state

pytestmark = pytest.mark.slow


@pytest.mark.promise("A.faults.kill-at-any-moment")
@pytest.mark.parametrize("moment", [0.25, 0.6])
def test_a_run_that_is_killed_at_any_moment_is_completed_by_the_next(
    reference: Reference, home: Path, env: dict[str, str], moment: float
):
    process = start("add", reference.folder, env=env)
    wait_for_store(process, database(home), and_s=reference.took_s * moment)
    process.kill()
    finish(process)
    completes(reference, home)


KILLED_AT = """
import os, signal, sys
from concord.index import documents
from concord.knowledge import KnowledgeBase

documents.GROUP_DOCUMENTS = 64  # so that what came before is in other groups

def killer(stage, done, total):
    if [stage, done >= int(sys.argv[3])] == [sys.argv[2], True]:
        os.kill(os.getpid(), getattr(signal, sys.argv[4]))

signal.signal(signal.SIGINT, signal.default_int_handler)
with KnowledgeBase.open() as kb:
    kb.add(sys.argv[1], progress=killer)
"""


@pytest.mark.promise("A.faults.kill-at-any-moment")
@pytest.mark.parametrize("stage", ["index", "embed"])
@pytest.mark.parametrize(("at", "how"), [(1, "SIGKILL"), (100, "SIGTERM")])
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
@pytest.mark.parametrize("moment", [0.4])
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
