"""A knowledge base to search, on each store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from searching.pages import BACKENDS, opened, plant


@pytest.fixture(params=BACKENDS, scope="package")
def kb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """One to search, with the pages and a note."""
    folder = tmp_path_factory.mktemp(request.param)
    with opened(request.param, folder) as made:
        made.add(plant(folder / "docs"))
        made.note(Note("Deploy the note as well.", title="A note", tags=("ops",)))
        yield made
