"""A disk that fails once, at any moment: nobody takes the store for damaged or new, and nothing is lost."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from concord import KnowledgeBase
from concord.core.errors import CorruptStore, KBError
from support.scratch import scratch
from support.small_library import UNHURRIED, secluded
from torture.library import answers, build, copied, note


class UnreliableDisk(apsw.VFS):
    """A SQLite VFS over the real one that fails one read, write or sync of all that come."""

    def __init__(self, name: str) -> None:
        self.left: int | None = None  # until one fails; None: none does
        self.lasts = 1
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _UnreliableFile(self, name, flags)

    def excepthook(self, *fault: object) -> bool:
        return True

    def met(self, fault: Callable[[], Exception]) -> None:
        """Fail if it is time to."""
        if self.left is not None:
            self.left -= 1
            if -self.lasts <= self.left < 0:
                raise fault()


class _UnreliableFile(apsw.VFSFile):
    def __init__(self, disk: UnreliableDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def excepthook(self, *fault: object) -> bool:
        return True

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.met(apsw.IOError)
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.met(apsw.IOError)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.met(apsw.IOError)
        super().xSync(flags)


@pytest.fixture(scope="module")
def disk() -> Iterator[UnreliableDisk]:
    made = UnreliableDisk("unreliable")
    yield made
    made.unregister()


@pytest.fixture(scope="module")
def library() -> Iterator[tuple[Path, dict[str, Any]]]:
    with scratch() as name:
        build(Path(name))
        with opened(Path(name), "") as kb:
            before = answers(kb)
        yield Path(name), before


def opened(folder: Path, options: str = "?vfs=unreliable") -> KnowledgeBase:
    return secluded(folder, f"sqlite://{folder}/store{options}", **UNHURRIED)


@pytest.mark.promise("torture.disk-errors")
@pytest.mark.campaign(whole=300, part=6)
def test_one_failed_access_is_no_damage_and_no_new_store(
    seed: int, library: tuple[Path, dict[str, Any]], home: Path, disk: UnreliableDisk
):
    folder, draw = copied(library[0], home), random.Random(seed)
    disk.left, disk.lasts = int(draw.random() ** 3 * 400), draw.choice((1, 1, 5))
    try:
        with opened(folder) as kb:
            for use in draw.sample((_search, _keep, _doctor, _read), 4):
                _is_said_as_it_is(use, kb)
            disk.left = None
            kb.search("heron")  # in the same process, once the disk is well
    finally:
        disk.left = None
    with opened(folder, "") as kb:
        for each in list(kb.notes()):
            if each.note.content.startswith("A late note"):
                kb.remove_note(each.id)
        assert answers(kb) == library[1]
        assert not [each for each in kb.doctor().findings if each.fault != "disk"]


def _search(kb: KnowledgeBase) -> None:
    answer = kb.search("what does the heron carry?")
    assert answer.hits or answer.degraded, "it was taken for a new one"


def _read(kb: KnowledgeBase) -> None:
    assert list(kb.documents()), "it was taken for a new one"


def _keep(kb: KnowledgeBase) -> None:
    kb.note(note("heron", 99).content.replace("A note", "A late note"))


def _doctor(kb: KnowledgeBase) -> None:
    for finding in kb.doctor().findings:
        assert not re.search("damaged|restore|recover", f"{finding.message} {finding.hint}"), finding


def _is_said_as_it_is(use: Callable[[KnowledgeBase], None], kb: KnowledgeBase) -> None:
    try:
        use(kb)
    except CorruptStore as fault:
        raise AssertionError(f"taken for damage: {fault.message}") from fault
    except KBError as fault:
        assert fault.hint, fault.message  # noqa: PT017
