"""A home for each run, and what an undisturbed one comes to."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.disturbed import FILES, Reference, wait_for_store
from support.kb_process import database, environment, finish, run, start, state
from support.recorders import write
from support.scratch import RAM


@pytest.fixture(scope="package")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home in memory where there is such a place: waiting for a disk is no part of these promises."""
    folder = (RAM if RAM.is_dir() else tmp_path) / f"kb-test-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def env(home: Path, compiled: Path) -> dict[str, str]:
    return environment(home, compiled)


@pytest.fixture(scope="package")
def reference(tmp_path_factory: pytest.TempPathFactory, compiled: Path) -> Reference:
    folder = tmp_path_factory.mktemp("reference") / "docs"
    for n in range(FILES):
        parts = "\n\n".join(
            f"## Part {p}\n\n" + f"Words{n} about thing{p} number {n}. " * 12 for p in range(3)
        )
        write(folder / f"d{n % 7}" / f"page{n:03}.md", f"# Page {n}\n\n{parts}\n")
    home = folder.parent / "home"
    env = environment(home, compiled)
    assert run("list", env=env)[0] == 0  # compiles what is imported
    process = start("add", folder, env=env)
    wait_for_store(process, database(home))
    began = time.monotonic()
    status, _, err = finish(process)
    took_s = time.monotonic() - began
    assert status == 0, err
    return Reference(folder, state(database(home)), took_s)
