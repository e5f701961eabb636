"""Stores that are damaged at a random place: bits, zeroed pages, a cut end, swapped pages."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from concord.store.sqlite.migrations import PAGE_BYTES
from support.scratch import scratch
from torture.damaging import damage
from torture.library import answers, build, complaints, copied, database, opened


class Library(NamedTuple):
    """A knowledge base that nobody has open, and what it answers."""

    folder: Path
    answers: dict[str, Any]


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    with scratch() as name:
        build(Path(name))
        with opened(Path(name)) as kb:
            assert complaints(kb) == []
            before = answers(kb)
        yield Library(Path(name), before)


@pytest.mark.promise("torture.damage")
@pytest.mark.campaign(whole=500, part=5)
def test_a_damaged_store_answers_as_before_or_is_named_damaged(seed: int, library: Library, home: Path):
    folder = copied(library.folder, home)
    how = damage(database(folder), random.Random(seed), PAGE_BYTES)
    with opened(folder) as kb:
        found, named = answers(kb), complaints(kb)
    assert named or found == library.answers, f"{how}: {differing(found, library.answers)}"
    with opened(folder) as kb:
        left = complaints(kb, fix=True)
    with opened(folder) as kb:
        assert left or answers(kb) == library.answers, f"{how}, repaired: {named}"
    assert os.path.exists(database(folder))


def differing(found: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return the answers that differ, with those that were expected."""
    return {key: (found[key], value) for key, value in before.items() if found[key] != value}
