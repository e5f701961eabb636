"""The README's commands do what it says they do."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONSOLE = re.findall(r"^\$ (.+)$", README, re.MULTILINE)
KB = [command for command in CONSOLE if command.startswith("kb ")]
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    return tmp_path


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    home = str(folder / "home")
    environment = {**os.environ, "KB_HOME": home, "HOME": home, "KB_EMBED_PROVIDER": "hashing"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=120
    )


def kb(command: str) -> list[str]:
    return [sys.executable, "-c", "from concord.cli.main import main; main()", *shlex.split(command)[1:]]


def test_the_commands_of_the_readme_run_in_the_order_in_which_it_gives_them(folder: Path):
    (folder / "home").mkdir()
    assert KB[0].endswith("--in ./docs")
    for command in KB:
        done = run(kb(command), folder)
        assert done.returncode == 0, (command, done.stderr)


def test_the_one_command_of_the_readme_finds_cited_passages(folder: Path):
    done = run(kb(KB[0]), folder)
    assert re.search(r"docs/[\w.-]+:\d+-\d+", done.stdout)


def test_the_python_example_of_the_readme_runs(folder: Path):
    assert len(PYTHON) == 1
    done = run([sys.executable, "-c", PYTHON[0]], folder)
    assert done.returncode == 0, done.stderr
    assert "docs/" in done.stdout


@pytest.mark.parametrize("target", [c.split()[1] for c in CONSOLE if c.startswith("make ")])
def test_what_the_readme_makes_can_be_made(target: str):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_page_that_the_readme_links_to_exists():
    pages = re.findall(r"\]\(([^)#:]+)\)", README)
    assert [page for page in pages if not (ROOT / page).exists()] == []
