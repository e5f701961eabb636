"""An unmounted disk leaves an empty folder: what is indexed of it is kept, nothing is called deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concord.cli import hits
from concord.knowledge import KnowledgeBase
from concord.mcp import render
from concord.wire import answer_to_json, slice_to_json
from support.recorders import write
from support.small_library import opened

TEXT = "# Rota\n\nThe penguin rota is on Mondays.\n"


class Disk:
    """A folder whose disk can be unmounted; no test needs to be root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._away = folder, folder.with_name("away")

    def unmount(self) -> None:
        """Leave an empty folder."""
        self.folder.rename(self._away)
        self.folder.mkdir()

    def mount(self) -> None:
        self.folder.rmdir()
        self._away.rename(self.folder)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    write(tmp_path / "disk" / "rota.md", TEXT)
    write(tmp_path / "disk" / "deep" / "herons.md", "# Herons\n\nThe heron rota is on Tuesdays.\n")
    return Disk(tmp_path / "disk")


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
    assert "as if its disk were not mounted" in report.failed[0].reason
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


def test_a_result_whose_disk_is_not_mounted_says_so(kb: KnowledgeBase, disk: Disk):
    disk.unmount()
    said = "its folder is empty or out of reach"
    assert [*hits.state_of(slice_to_json(kb.get("disk/rota.md")))] == [said]
    result = answer_to_json(kb.search("penguin rota"))["results"][0]
    assert said in hits.state_of(result)
    assert said in render.result(result)


def test_doctor_names_a_disk_that_is_not_mounted_and_fix_forgets_nothing(kb: KnowledgeBase, disk: Disk):
    before = ids(kb)
    disk.unmount()
    diagnosis = kb.doctor(fix=True)
    assert [f.fault for f in diagnosis.findings if "as if its disk were not mounted" in f.message] == [
        "sources"
    ]
    assert ids(kb) == before
