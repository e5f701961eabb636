"""Stores that are damaged beyond opening, with the copies of their notes damaged alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concord.core.errors import KBError
from concord.store.sqlite import note_log
from concord.store.sqlite.migrations import PAGE_BYTES
from support.scratch import scratch
from torture.damaging import beyond_opening, damage
from torture.library import NOTES, TOPICS, build, copied, database, note, opened

SECTOR = 512
EARLIER = 20


@pytest.fixture(scope="module")
def library() -> Iterator[Path]:
    """A knowledge base with notes of several ages, some of them changed, superseded or deleted since."""
    with scratch() as name:
        folder = Path(name)
        with opened(folder) as kb:
            for n in range(EARLIER):
                kb.note(note(TOPICS[n % len(TOPICS)], 100 + n))
        build(folder)
        with opened(folder) as kb:
            first, second, third, *_ = [kept.id for kept in kb.notes()]
            kb.edit_note(first, content="The first note says something else now. " * 40)
            kb.note(note("heron", 50), supersedes=second)
            kb.remove_note(third)
        yield folder


def notes(folder: Path) -> dict[str, Any]:
    with opened(folder) as kb:
        return {kept.id: (kept.note, kept.superseded_by) for kept in kb.notes()}


@pytest.mark.promise("torture.recovery")
@pytest.mark.campaign(whole=100, part=6, may_lose=10)
def test_all_notes_come_back_from_a_store_that_does_not_open(seed: int, library: Path, home: Path):
    folder, draw = copied(library, home), random.Random(seed)
    before = notes(folder)
    assert len(before) == EARLIER + NOTES
    file = database(folder)
    how = [damage(Path(path), draw, SECTOR) for path in note_log.paths(str(file))]
    how += [damage(file, draw, PAGE_BYTES), beyond_opening(file, draw)]
    assert not _opens(folder), how
    with opened(folder) as kb:
        done = kb.recover()
    after = notes(folder)
    lost = [id for id in before if id not in after]
    changed = [id for id in after if after[id] != before.get(id)]
    assert (lost, changed) == ([], []), f"{how}: {done}"
    with opened(folder) as kb:
        assert {source.source.name for source in kb.sources()} >= set(done.sources)
        kb.sync()


def _opens(folder: Path) -> bool:
    try:
        with opened(folder) as kb:
            list(kb.notes())
            kb.search("heron")
            return True
    except KBError:
        return False
