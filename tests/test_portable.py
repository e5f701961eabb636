"""Nothing needs Linux: what only some systems have is taken away, and everything still works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

POORER = """
import os, sys
for name in ("fcntl", "resource", "watchfiles"):
    sys.modules[name] = None  # importing it fails
for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "O_PATH", "fork", "fchmod"):
    delattr(os, name)
os.supports_dir_fd = set()
"""
COMMAND = f"{POORER}\nfrom concord.cli.main import main\nmain()"
HELD = f"""{POORER}
from concord.store.files import file_lock
with file_lock(sys.argv[1], "source", "syncing", 0.1):
    print("held")
"""


def run(program: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KB_HOME": str(home), "KB_EMBED_PROVIDER": "hashing"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_a_base_is_kept_searched_and_copied_without_what_only_unix_has(tmp_path: Path):
    docs = tmp_path / "docs" / "deep"
    docs.mkdir(parents=True)
    (docs / "a.md").write_text("# Tokens\n\nTokens expire after an hour.\n", encoding="utf-8")
    (tmp_path / "secret.md").write_text("outside", encoding="utf-8")
    (docs / "link.md").symlink_to(tmp_path / "secret.md")
    home = tmp_path / "home"
    for arguments in (["add", str(tmp_path / "docs")], ["sync"], ["backup", str(tmp_path / "copy.db")]):
        done = run(COMMAND, home, *arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments
    assert (tmp_path / "copy.db").stat().st_size
    found = run(COMMAND, home, "search", "when do tokens expire")
    assert "docs/deep/a.md:" in found.stdout
    assert "link.md" not in run(COMMAND, home, "search", "outside").stdout
    assert run(COMMAND, home, "remove", "docs").returncode == 0


def test_a_folder_that_became_a_link_is_not_read_where_folders_cannot_be_held_open(tmp_path: Path):
    docs, other = tmp_path / "docs", tmp_path / "other"
    for folder, text in ((docs / "part", "mine"), (other, "foreign")):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(f"{text} text", encoding="utf-8")
    home = tmp_path / "home"
    assert run(COMMAND, home, "add", str(docs)).returncode == 0
    (docs / "part" / "a.md").unlink()
    (docs / "part").rmdir()
    (docs / "part").symlink_to(other)
    run(COMMAND, home, "sync")
    assert "foreign text" not in run(COMMAND, home, "search", "foreign text").stdout


def test_a_lock_keeps_others_out_and_ends_with_its_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from concord.store import files

    store = str(tmp_path / "store.db")
    monkeypatch.setattr(files, "HAS_LOCKS", False)
    with files.file_lock(store, "source", "syncing", 0.1):
        assert "syncing" in run(HELD, tmp_path, store).stderr
    assert run(HELD, tmp_path, store).stdout == "held\n"
