"""Which files of a source are indexed, which are not, and what is said of them."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from concord.core.errors import BadValue, NotFound, Unreadable, UsageError
from concord.files.walk import Found, Skipped, walk
from support.failing_folder import fail_listing
from support.walked import found, plant


def skipped(root: Path, *, max_bytes: int = 1000) -> dict[str, str]:
    return {s.relative: s.reason for s in walk(root, max_bytes=max_bytes) if isinstance(s, Skipped)}


def test_files_come_sorted_with_their_size_and_time(tmp_path: Path):
    plant(tmp_path, "b.md", "a.md", "sub/c.md", "sub/deep/d.md", "another/e.md")
    os.utime(tmp_path / "a.md", ns=(1, 1_700_000_000_123_456_789))
    entries = list(walk(tmp_path, max_bytes=1000))
    assert [e.relative for e in entries] == ["a.md", "b.md", "another/e.md", "sub/c.md", "sub/deep/d.md"]
    first = entries[0]
    assert isinstance(first, Found)
    assert (first.path, first.size, first.mtime_ns) == (tmp_path / "a.md", 5, 1_700_000_000_123_456_789)


def test_a_file_can_be_the_root_and_no_rule_ignores_it(tmp_path: Path):
    plant(tmp_path, "notes.log")
    plant(tmp_path, ".gitignore", text="*.log\n")
    (entry,) = walk(tmp_path / "notes.log", max_bytes=1000)
    assert isinstance(entry, Found)
    assert (entry.relative, entry.path) == ("notes.log", tmp_path / "notes.log")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["*.md"], ["a.md", "src/b.md"]),
        (["src"], ["src/b.md", "src/lib/c.py"]),
        (["src/**/*.py"], ["src/lib/c.py"]),
        (["/*.md"], ["a.md"]),
        (["nothing"], []),
    ],
)
def test_patterns_choose_files_with_the_syntax_of_git(
    tmp_path: Path, patterns: list[str], expected: list[str]
):
    plant(tmp_path, "a.md", "src/b.md", "src/lib/c.py", "other/d.txt")
    assert found(tmp_path, patterns) == expected


@pytest.mark.parametrize("pattern", ["", "#", "[a", "/", "x\\"])
def test_what_is_no_pattern_is_refused_at_once(tmp_path: Path, pattern: str):
    with pytest.raises(BadValue):
        walk(tmp_path, [pattern], max_bytes=1000)


def test_files_without_text_and_over_the_size_are_skipped_by_reason(tmp_path: Path):
    plant(tmp_path, "a.ICO", "b.zip", "c.woff2", "d.md", "ls.1.gz", "png")
    plant(tmp_path, "big.log", text="x" * 1001)
    plant(tmp_path, "none.md", text="")
    assert found(tmp_path) == ["d.md", "png"]
    assert skipped(tmp_path) == {
        "a.ICO": "binary",
        "b.zip": "binary",
        "c.woff2": "binary",
        "ls.1.gz": "binary",
        "big.log": "too large",
        "none.md": "empty",
    }


SECRETS = """
.env .env.local server.PEM id_rsa id_ed25519.bak a.key .netrc .npmrc vault.kdbx aws/credentials
.git-credentials .htpasswd .ssh/config .aws/notes.md .kube/config .docker/config.json
"""


@pytest.mark.parametrize("secret", SECRETS.split())
def test_keys_and_passwords_are_never_read(tmp_path: Path, secret: str):
    plant(tmp_path, secret, "a.md", ".env.example", "docs/credentials/how.md")
    plant(tmp_path, ".kbignore", text=f"!{secret}\n!*.key\n!.ssh/\n")
    assert found(tmp_path) == [".env.example", "a.md", "docs/credentials/how.md"]
    assert set(skipped(tmp_path).values()) == {"secret"}


@pytest.mark.parametrize("root", [".ssh", ".ssh/sub", ".gnupg", ".env", "id_rsa", "keys/server.key"])
def test_a_root_that_is_a_secret_is_refused_with_a_hint(tmp_path: Path, root: str):
    path = tmp_path / root
    if root.startswith((".ssh", ".gnupg")):
        path.mkdir(parents=True)
    else:
        plant(tmp_path, root)
    with pytest.raises(UsageError) as refused:
        walk(path, max_bytes=1000)
    assert refused.value.hint


def test_links_are_not_followed_and_a_loop_ends(tmp_path: Path):
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    plant(outside, "private.md")
    plant(root, "real/a.md")
    (root / "loop").symlink_to(root)
    (root / "real" / "up").symlink_to("..")
    (root / "again.md").symlink_to("real/a.md")
    (root / "out").symlink_to(outside)
    (root / "out.md").symlink_to(outside / "private.md")
    (root / "gone.md").symlink_to("nowhere")
    (root / "self").symlink_to("self")
    assert found(root) == ["real/a.md"]
    assert skipped(root) == {
        "loop": "link",
        "real/up": "link",
        "again.md": "link",
        "out": "link",
        "out.md": "link",
        "gone.md": "link",
        "self": "link",
    }


def test_pipes_and_sockets_are_never_opened(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s.md"))
        assert skipped(tmp_path) == {"pipe.md": "special file", "s.md": "special file"}
    with pytest.raises(UsageError):
        walk(tmp_path / "pipe.md", max_bytes=1000)


def test_a_root_that_is_not_there_is_an_error_before_anything_is_compared(tmp_path: Path):
    with pytest.raises(NotFound):
        walk(tmp_path / "nowhere", max_bytes=1000)


@pytest.mark.parametrize("others", [("sub/b.md",), ("b.md", "c.md")], ids=["deep", "flat"])
@pytest.mark.parametrize("is_unmounted", [False, True])
def test_a_tree_that_goes_away_during_the_walk_is_not_taken_for_deleted(
    tmp_path: Path, others: tuple[str, ...], is_unmounted: bool
):
    root = tmp_path / "mount"
    plant(root, "a.md", *others)
    entries = walk(root, max_bytes=1000)
    assert next(entries).relative == "a.md"
    root.rename(tmp_path / "disk")
    if is_unmounted:  # an empty folder is left
        root.mkdir()
    with pytest.raises(Unreadable, match="went away"):
        list(entries)


@pytest.mark.parametrize("listed", [0, 1, 2])
def test_a_root_that_a_failing_disk_does_not_list_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: int
):
    plant(tmp_path, "a.md", "b.md", "c.md")
    fail_listing(tmp_path, monkeypatch, after=listed)
    with pytest.raises(Unreadable, match="input/output error") as failure:
        list(walk(tmp_path, max_bytes=1000))
    assert "kept" in (failure.value.hint or "")


def test_a_forbidden_folder_is_reported_and_the_rest_is_found(shared_folder: Path):
    plant(shared_folder, "a.md", "closed/b.md", "open/c.md")
    os.chmod(shared_folder / "closed", 0)
    try:
        assert _walked_by_nobody(shared_folder) == [
            "a.md||",
            "closed|permission denied|True",
            "open/c.md||",
        ]
    finally:
        os.chmod(shared_folder / "closed", stat.S_IRWXU)


# Tests often run as root, whom nothing is forbidden.
WALK_AS_NOBODY = """
import os, sys
from pathlib import Path
from concord.core.errors import Unreadable
from concord.files.walk import walk
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    for entry in walk(Path(sys.argv[1]), max_bytes=1000):
        print(entry.relative, getattr(entry, "reason", ""), getattr(entry, "failed", ""), sep="|")
except Unreadable as fault:
    print("Unreadable:", fault.message.rpartition(": ")[2])
"""


def _walked_by_nobody(root: Path) -> list[str]:
    source = str(Path(__file__).parent.parent / "src")
    command = [sys.executable, "-c", WALK_AS_NOBODY, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
