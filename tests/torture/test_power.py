"""The power goes at any moment: what was not synced may be missing, there in part, or in another order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from concord import KnowledgeBase
from support.kb_process import assert_sound
from support.recorders import write
from support.scratch import scratch
from support.small_library import UNHURRIED, secluded
from torture.library import TOPICS, note
from torture.recording_disk import Op, RecordingDisk, left_by_a_power_cut

ROUNDS = 3  # of opening, working and closing


class Recorded(NamedTuple):
    """All that was done to the files, and what had been acknowledged after how many operations."""

    ops: list[Op]
    notes: list[tuple[int, str, str | None]]  # the id and the content; None when it was deleted
    documents: list[tuple[int, str]]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    disk = RecordingDisk("recording")
    try:
        with scratch() as name:
            made = Recorded(disk.ops, [], [])
            for number in range(ROUNDS):
                with opened(Path(name), "?vfs=recording") as kb:
                    _work(kb, Path(name), number, made)
            yield made
    finally:
        disk.unregister()


def opened(folder: Path, options: str = "") -> KnowledgeBase:
    return secluded(folder, f"sqlite://{folder}/store{options}", **UNHURRIED)


def _work(kb: KnowledgeBase, folder: Path, number: int, made: Recorded) -> None:
    for n, topic in enumerate(TOPICS):
        kept = kb.note(note(topic, 10 * number + n))
        made.notes.append((len(made.ops), kept.id, note(topic, 10 * number + n).content))
        if n % 3 == 2:
            path = write(
                folder / "docs" / f"{number}-{n}.md", f"# {topic}\n\n" + f"The {topic} waits. " * 200
            )
            kb.add(path.parent)
            made.documents.append((len(made.ops), f"docs/{path.name}"))
        if n % 4 == 3:
            kb.edit_note(kept.id, content=f"Changed {topic}.")
            made.notes.append((len(made.ops), kept.id, f"Changed {topic}."))
    gone = made.notes[8 * number][1]
    kb.remove_note(gone)
    made.notes.append((len(made.ops), gone, None))


@pytest.mark.promise("torture.power")
@pytest.mark.campaign(whole=500, part=12)
def test_what_was_acknowledged_is_there_after_a_power_cut(seed: int, recorded: Recorded, home: Path):
    draw = random.Random(seed)
    at = draw.randrange(1, len(recorded.ops) + 1)
    left_by_a_power_cut(recorded.ops[:at], home / "store", draw)
    expected = {id: text for when, id, text in recorded.notes if when <= at}
    in_doubt = {id for when, id, _ in recorded.notes if when > at}
    with opened(home) as kb:
        kept = {each.id: each.note.content for each in kb.notes()}
        paths = {document.path for document in kb.documents()}
        if expected:
            kb.search("heron")
    for id, text in expected.items():
        assert kept.get(id) == text or id in in_doubt, f"after {at} of {len(recorded.ops)} operations"
    assert {path for when, path in recorded.documents if when <= at} <= paths
    if expected:
        assert_sound(home / "store" / "default.db")
