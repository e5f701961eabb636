"""A process ends well whatever its threads are doing: what would abort it is waited for, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import concord
from concord.embed.bundled import BundledEmbedder
from support.folders import cached_in

MODEL = """
import sys, threading
from concord.core.config import Paths
from concord.embed.bundled import BundledEmbedder

embedder = BundledEmbedder({"embed.precision": "exact"}, Paths("", sys.argv[1], ""))
embedded = threading.Event()

def embed_for_ever():
    while True:
        embedder.embed_query("a text that takes the model a moment " * 10)
        embedded.set()

threading.Thread(target=embed_for_ever, daemon=True).start()
embedded.wait()
print("done")
"""

HUNG = """
import threading
from concord.embed import runtime
from concord.search import deadline

begun = threading.Event()

def hang():
    with runtime.native_code():
        pass
    begun.set()
    threading.Event().wait()

runtime.LONGEST_WAIT_S = threading.TIMEOUT_MAX
deadline.Task(hang)
begun.wait()
print("done")
"""


def run(script: str, *args: Path) -> tuple[int, str, str]:
    """Run a script to its end; the time limit is for one that has none."""
    environment = {**os.environ, "PYTHONPATH": str(Path(concord.__file__).parents[1])}
    command = [sys.executable, "-c", script, *map(str, args)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cache")
    BundledEmbedder({"embed.precision": "exact"}, cached_in(made)).warm()
    return made


@pytest.mark.model
def test_a_script_ends_well_while_a_thread_runs_the_model(cache: Path):
    assert run(MODEL, cache) == (0, "done\n", "")


def test_a_script_does_not_wait_for_a_thread_that_hangs_elsewhere():
    assert run(HUNG) == (0, "done\n", "")
