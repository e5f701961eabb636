"""What holds for every test."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.cli.main import main
from kb_command import Kb, Run
from recorders import Desk, opened

# A shell starts what runs in the background with Ctrl-C ignored, and every child inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kb:
    """Run `kb` with a home and a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")

    def run(*args: str | Path) -> Run:
        capsys.readouterr()
        return Run(main([str(arg) for arg in args]), *capsys.readouterr())

    return run


@pytest.fixture(params=["memory", "sqlite"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    """Give what a sync works with, over each of two stores."""
    store = opened("memory://" if request.param == "memory" else f"sqlite://{tmp_path}/store")
    made = Desk(store)
    yield made
    made.reader.close()
    store.close()
