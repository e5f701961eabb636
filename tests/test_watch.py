"""`kb sync --watch`: saves, renames, mass changes and vanishing folders, on a real file system."""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from concord.core.reports import SyncReport
from concord.files import watch
from concord.files.ignore import IGNORE_FILES
from concord.knowledge import KnowledgeBase
from support import kb_process
from support.recorders import write

pytestmark = pytest.mark.slow

BOUND_S = 60.0


class Watching:
    """A knowledge base that is watched in a thread, and what the syncs reported."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self.reports: queue.Queue[SyncReport] = queue.Queue()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        for report in self.kb.watch(stop=self.stop):
            self.reports.put(report)

    def next(self, wanted: Callable[[SyncReport], bool] = lambda report: True) -> SyncReport:
        """Return the next report that is wanted."""
        while True:
            report = self.reports.get(timeout=BOUND_S)
            if wanted(report):
                return report

    def until(self, paths: set[str]) -> None:
        """Wait until the index holds exactly these documents, looking after each sync."""
        while {document.path for document in self.kb.documents()} != paths:
            self.next()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    write(tmp_path / "docs" / "a.md", "# A\n\nfirst\n")
    write(tmp_path / "docs" / "sub" / "b.md", "# B\n\nsecond\n")
    return tmp_path / "docs"


@pytest.fixture
def watching(docs: Path) -> Iterator[Watching]:
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.add(docs)
        running = Watching(kb)
        running.thread.start()
        assert running.next().unchanged == 2  # the first look at everything
        yield running
        running.stop.set()
        running.thread.join(BOUND_S)
        assert not running.thread.is_alive()


@pytest.mark.promise("freshness.watch")
def test_a_save_a_new_file_and_a_removal_reach_the_index(watching: Watching, docs: Path):
    write(docs / "a.md", "# A\n\nkingfisher\n", days_old=0)
    watching.next(lambda report: report.changed == 1)
    assert [hit.document.path for hit in watching.kb.search("kingfisher", mode="fts5").hits] == ["docs/a.md"]
    write(docs / "new" / "c.md", "# C\n\nthird\n", days_old=0)
    watching.until({"docs/a.md", "docs/sub/b.md", "docs/new/c.md"})
    (docs / "a.md").unlink()
    watching.until({"docs/sub/b.md", "docs/new/c.md"})
    assert watching.kb.stats().pending == 0


@pytest.mark.promise("freshness.watch")
def test_an_editor_that_saves_by_renaming_is_followed(watching: Watching, docs: Path):
    for word in ("one", "two", "three"):
        write(docs / "a.md.tmp~", f"# A\n\nkingfisher {word}\n", days_old=0)
        os.replace(docs / "a.md.tmp~", docs / "a.md")
        watching.next(lambda report: report.changed == 1)
        assert len(watching.kb.search(f"kingfisher {word}", mode="fts5").hits) == 1


@pytest.mark.promise("freshness.watch")
def test_a_folder_that_is_removed_and_made_anew_is_followed(watching: Watching, docs: Path):
    shutil.rmtree(docs / "sub")
    watching.until({"docs/a.md"})
    write(docs / "sub" / "deep" / "d.md", "# D\n\nagain\n", days_old=0)
    watching.until({"docs/a.md", "docs/sub/deep/d.md"})
    write(docs / "sub" / "deep" / "e.md", "# E\n\nand more\n", days_old=0)
    watching.until({"docs/a.md", "docs/sub/deep/d.md", "docs/sub/deep/e.md"})


@pytest.mark.promise("freshness.watch")
def test_a_folder_that_is_moved_out_of_the_source_is_followed(watching: Watching, docs: Path, tmp_path: Path):
    (docs / "sub").rename(tmp_path / "elsewhere")
    watching.until({"docs/a.md"})


@pytest.mark.promise("freshness.watch")
@pytest.mark.parametrize("name", IGNORE_FILES)
def test_what_was_ignored_is_indexed_once_its_ignore_file_is_gone(watching: Watching, docs: Path, name: str):
    write(docs / name, "sub/\n", days_old=0)
    watching.until({"docs/a.md"})
    (docs / name).unlink()
    watching.until({"docs/a.md", "docs/sub/b.md"})


@pytest.mark.promise("freshness.watch")
def test_a_source_that_vanishes_keeps_its_index_and_is_followed_when_it_is_back(
    watching: Watching, docs: Path
):
    shutil.rmtree(docs)
    assert "not there any more" in watching.next(lambda report: bool(report.failed)).failed[0].reason
    assert watching.kb.stats().counts.documents == 2
    write(docs / "a.md", "# A\n\nfirst\n")
    watching.until({"docs/a.md"})
    write(docs / "z.md", "# Z\n\nlast\n", days_old=0)
    watching.until({"docs/a.md", "docs/z.md"})


@pytest.mark.promise("freshness.watch")
def test_a_checkout_of_many_files_ends_with_just_these(watching: Watching, docs: Path):
    for n in range(300):
        write(docs / f"{n % 7}" / f"{n}.md", f"# Page {n}\n\nbefore\n")
    git(docs, "init", "-q", "-b", "one")
    git(docs, "add", "-A")
    git(docs, "commit", "-q", "-m", "one")
    git(docs, "checkout", "-q", "-b", "two")
    for n in range(0, 300, 2):
        (docs / f"{n % 7}" / f"{n}.md").write_text(f"# Page {n}\n\nafterwards\n", encoding="utf-8")
    for n in range(1, 300, 2):
        (docs / f"{n % 7}" / f"{n}.md").unlink()
    git(docs, "commit", "-q", "-a", "-m", "two")
    wanted = {"docs/a.md", "docs/sub/b.md", *(f"docs/{n % 7}/{n}.md" for n in range(0, 300, 2))}
    watching.until(wanted)
    git(docs, "checkout", "-q", "one")
    watching.until(wanted | {f"docs/{n % 7}/{n}.md" for n in range(300)})


def git(folder: Path, *args: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True)


def test_a_source_of_one_file_is_followed_through_renames(watching: Watching, tmp_path: Path):
    lone = tmp_path / "lone.md"
    write(lone, "# Lone\n\nheron\n")
    watching.kb.add(lone)
    watching.next(lambda report: report.source.path == str(lone))  # another process would be seen like this
    write(tmp_path / "other", "# Lone\n\nosprey\n", days_old=0)
    os.replace(tmp_path / "other", lone)
    watching.next(lambda report: report.changed == 1)
    assert len(watching.kb.search("osprey", mode="fts5").hits) == 1


def test_where_the_system_gives_no_notices_scans_stand_in(docs: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*args: object, **options: object) -> None:
        raise OSError(28, "OS file watch limit reached")

    monkeypatch.setattr("watchfiles.watch", refuse)
    monkeypatch.setattr(watch, "UNNOTIFIED_S", 0.05)
    monkeypatch.setattr(watch, "UNNOTIFIED_SHARE", 0.0)
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as kb:
        kb.add(docs)
        running = Watching(kb)
        running.thread.start()
        running.next()
        write(docs / "c.md", "# C\n\nthird\n", days_old=0)
        running.until({"docs/a.md", "docs/sub/b.md", "docs/c.md"})
        running.stop.set()
        running.thread.join(BOUND_S)


@pytest.mark.promise("freshness.watch")
def test_the_command_tells_of_each_sync_and_ends_well_at_ctrl_c(docs: Path, tmp_path: Path):
    environment = kb_process.environment(tmp_path / "home")
    kb_process.run("add", docs, env=environment)
    process = kb_process.start("sync", "--watch", "--json", env=environment)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["unchanged"] == 2
    write(docs / "c.md", "# C\n\nthird\n", days_old=0)
    assert json.loads(process.stdout.readline())["added"] == 1
    process.send_signal(signal.SIGINT)
    status, _, err = kb_process.finish(process)
    assert (status, err.splitlines()[-1]) == (0, "stopped watching")
    kb_process.assert_sound(kb_process.database(tmp_path / "home"))
