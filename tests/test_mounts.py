"""A disk that is not mounted: what is indexed of it is kept, and nothing is called deleted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from concord.knowledge import KnowledgeBase
from support.kb_process import KB, environment
from support.recorders import write
from support.small_library import opened

TEXT = "# Rota\n\nThe penguin rota is on Mondays.\n"


class Disk:
    """A folder that the system takes for a mounted disk, until it is unmounted; no test needs to be root."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.is_mounted = True
        self._away = folder.with_name("away")
        others = os.path.ismount
        monkeypatch.setattr(
            os.path, "ismount", lambda path: others(path) or (self.is_mounted and str(path) == str(folder))
        )

    def unmount(self) -> None:
        """Leave an empty folder."""
        self.folder.rename(self._away)
        self.folder.mkdir()
        self.is_mounted = False

    def mount(self) -> None:
        shutil.rmtree(self.folder)
        self._away.rename(self.folder)
        self.is_mounted = True


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    write(tmp_path / "disk" / "rota.md", TEXT)
    write(tmp_path / "disk" / "deep" / "herons.md", "# Herons\n\nThe heron rota is on Tuesdays.\n")
    return Disk(tmp_path / "disk", monkeypatch)


@pytest.fixture
def kb(tmp_path: Path, disk: Disk) -> Iterator[KnowledgeBase]:
    with opened(tmp_path) as made:
        made.add(disk.folder)
        yield made


def ids(kb: KnowledgeBase) -> dict[str, str]:
    return {document.path: document.id for document in kb.documents()}


def test_a_sync_keeps_the_index_of_a_disk_that_is_not_mounted(kb: KnowledgeBase, disk: Disk):
    before = ids(kb)
    disk.unmount()
    (report,) = kb.sync()
    assert report.removed == 0
    assert "looks unmounted" in report.failed[0].reason
    assert "`kb remove disk`" in report.failed[0].reason
    disk.mount()
    (report,) = kb.sync()
    assert (report.unchanged, report.failed, ids(kb)) == (2, (), before)


def test_answers_call_nothing_deleted_that_is_on_a_disk_that_is_not_mounted(kb: KnowledgeBase, disk: Disk):
    disk.unmount()
    answer = kb.search("penguin rota")
    assert answer.omitted["deleted"] == 0
    assert {hit.document.path: hit.freshness for hit in answer.hits} == {
        "disk/rota.md": None,
        "disk/deep/herons.md": None,
    }
    assert kb.get("disk/rota.md").freshness is None


def test_doctor_names_a_disk_that_is_not_mounted_and_fix_forgets_nothing(kb: KnowledgeBase, disk: Disk):
    before = ids(kb)
    disk.unmount()
    diagnosis = kb.doctor(fix=True)
    assert [f.fault for f in diagnosis.findings if "looks unmounted" in f.message] == ["sources"]
    assert ids(kb) == before


def _as_root_of_its_own(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh", *KB],
        cwd=tmp_path,
        env=environment(tmp_path / "home"),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.fixture
def mounting(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a script that may mount: "$@" in it is `kb`."""
    (tmp_path / "mnt").mkdir()
    try:
        trial = _as_root_of_its_own("mount -t tmpfs tmpfs mnt && umount mnt", tmp_path)
    except FileNotFoundError:
        pytest.skip("there is no `unshare` here")
    if trial.returncode:
        pytest.skip(f"nothing can be mounted here: {trial.stderr}")
    return lambda script: _as_root_of_its_own(script, tmp_path)


def test_what_really_is_unmounted_is_kept_as_well(
    mounting: Callable[[str], subprocess.CompletedProcess[str]],
):
    done = mounting(
        """
        mount -t tmpfs tmpfs mnt
        echo "The penguin rota is on Mondays." > mnt/rota.md
        "$@" add mnt
        umount mnt
        "$@" sync mnt || test $? = 3
        "$@" search "penguin rota" --fts-only
        """
    )
    assert done.returncode == 0, done.stderr
    assert "looks unmounted" in done.stdout
    assert "mnt/rota.md" in done.stdout  # which only the search names
