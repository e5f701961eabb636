"""A folder or file that is replaced by a link after it was added: nothing outside its source is ever read."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from concord.core.errors import Unreadable
from concord.types import Filter, Word
from support.recorders import SyncBench, write

NAMES = ("a.md", "b.md", "deep/c.md", "deep/d.md")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for name in NAMES:
        write(tmp_path / "docs" / name, f"# Ours\n\nThe heron of {name} waits.\n")
        write(tmp_path / "outside" / name, f"# Theirs\n\nThe password of {name} is secret.\n")
    return tmp_path / "docs"


def swap(path: Path) -> None:
    """Put a link in the place of a folder or file, to what has the same name outside."""
    docs = next(folder for folder in (path, *path.parents) if folder.name == "docs")
    path.rename(docs.parent / "moved")
    path.symlink_to(docs.parent / "outside" / path.relative_to(docs))


def found(bench: SyncBench, word: str) -> int:
    return len(bench.store.words.search(Word(word), Filter(), 100))


@pytest.mark.parametrize("deepest", [".", "b.md", "deep", "deep/d.md"])
def test_what_is_swapped_between_two_syncs_is_not_read(bench: SyncBench, docs: Path, deepest: str):
    bench.add(docs)
    swap(docs / deepest)
    with suppress(Unreadable):
        bench.sync()
    assert found(bench, "secret") == 0


def test_a_source_that_is_a_link_now_is_an_error_with_a_hint_and_keeps_its_index(
    bench: SyncBench, docs: Path
):
    bench.add(docs)
    swap(docs)
    with pytest.raises(Unreadable, match="a link leads from there to") as refused:
        bench.sync()
    assert refused.value.hint is not None
    assert "`kb remove docs`" in refused.value.hint
    assert (found(bench, "heron"), found(bench, "secret")) == (4, 0)


@pytest.mark.parametrize(
    ("name", "deepest"),
    [
        ("a.md", "."),  # before the next file is opened
        ("a.md", "b.md"),
        ("a.md", "deep"),  # before it is listed
        ("c.md", "deep"),  # before the next file in it is opened
        ("c.md", "deep/d.md"),
    ],
)
def test_what_is_swapped_while_a_file_is_read_is_not_read(
    bench: SyncBench, docs: Path, name: str, deepest: str
):
    def during(read: str) -> None:
        if read == name:
            swap(docs / deepest)

    bench.reader.during = during
    with suppress(Unreadable):
        bench.add(docs)
    assert found(bench, "secret") == 0
