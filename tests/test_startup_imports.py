"""What the quick commands load: nothing that takes long to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import concord
from support.engines import engines, plain_environment, wait_until

HEAVY = {"onnxruntime", "mcp", "numpy", "tokenizers", "sqlite_vec", "pypdfium2", "selectolax"}
RUN = """
import sys
from concord.cli.main import main
status = main(sys.argv[2:])
open(sys.argv[1], "w", encoding="utf-8").write("\\n".join(sys.modules))
sys.exit(status)
"""


def loaded_by(tmp_path: Path, *args: str, status: int = 0) -> set[str]:
    """Run `kb` in a process of its own and return the modules it ended with."""
    listing = tmp_path / "modules"
    environment = {
        **plain_environment(),
        "KB_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(Path(concord.__file__).parent.parent),
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(listing), *args],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == status, done.stderr
    return set(listing.read_text(encoding="utf-8").split())


def test_help_loads_neither_the_library_nor_anything_heavy(tmp_path: Path):
    loaded = loaded_by(tmp_path, "--help")
    assert not loaded & HEAVY
    ours = {name for name in loaded if name.startswith("concord.")}
    assert ours == {
        "concord.cli",
        "concord.cli.command",
        "concord.cli.main",
        "concord.cli.output",
        "concord.core",
        "concord.core.errors",
        "concord.text",
        "concord.text.visible",
    }


@pytest.mark.model  # its tokenizer
def test_a_search_by_words_loads_no_model_runtime(tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Git\n\nHow to install git.\n", encoding="utf-8")
    loaded_by(tmp_path, "add", "docs", "--no-embed")
    loaded = loaded_by(tmp_path, "search", "install git", "--fts-only")
    assert "apsw" in loaded
    assert not loaded & HEAVY
    assert not loaded & {
        "concord.index.sync",
        "asyncio",
        "importlib.metadata",
        "typing_extensions",
    }
    assert not loaded & {
        "pathlib",
        "concord.core.protocols",
    }


@pytest.mark.model  # its tokenizer
def test_a_command_that_an_engine_answers_loads_neither_a_store_nor_numpy(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Git\n\nHow to install git.\n", encoding="utf-8")
    loaded_by(tmp_path, "add", "docs", "--no-embed")
    with engines(tmp_path, idle_s=600):
        loaded_by(tmp_path, "search", "git")
        assert wait_until(lambda: "apsw" not in loaded_by(tmp_path, "search", "git"))
        for args in (("search", "git"), ("search", "git", "--json"), ("get", "docs/a.md"), ("stats",)):
            loaded = loaded_by(tmp_path, *args)
            assert not loaded & (
                HEAVY | {"apsw", "asyncio", "concord.knowledge", "concord.parts", "tempfile"}
            )
        loaded_by(tmp_path, "engine", "stop")


@pytest.mark.model  # its tokenizer
def test_indexing_words_loads_the_tokenizer_and_no_model_runtime(tmp_path: Path):
    (tmp_path / "a.md").write_text("# Git\n\nHow to install git.\n", encoding="utf-8")
    loaded = loaded_by(tmp_path, "add", "a.md", "--no-embed")
    assert "tokenizers" in loaded
    assert not loaded & {"numpy", "onnxruntime"}
