"""A folder or file that is replaced by a link after it was added: nothing outside its source is ever read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from concord.cli.words import in_words
from concord.core.errors import Unreadable
from concord.files.state import is_unchanged
from concord.index.sources import register
from concord.types import Filter, Word
from support.recorders import MAX_BYTES, SyncBench, write

NAMES = ("a.md", "b.md", "deep/c.md", "deep/d.md")
SYNCS, FILES = 20, 30  # against a thread that swaps all the time


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
    assert "`kb remove docs`" in in_words(refused.value.hint)
    with pytest.raises(Unreadable, match="a link leads from there to"):
        is_unchanged(bench.store.catalog.snapshot().sources[0], bench.store.catalog, MAX_BYTES)
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


@contextmanager
def swapping(path: Path) -> Iterator[None]:
    """Put a link in the place of a folder or file and take it away again, all the time, in another thread."""
    link, kept, stop = path.with_name("link"), path.parent.parent / "kept", threading.Event()
    link.symlink_to(path.parent.parent / "outside" / path.name)

    def run() -> None:
        while not stop.is_set():
            path.rename(kept)
            link.rename(path)
            path.rename(link)
            kept.rename(path)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("name", ["a.md", "deep"])
def test_nothing_outside_is_read_however_often_a_link_comes_and_goes(bench: SyncBench, docs: Path, name: str):
    for n in range(FILES):
        write(docs / "deep" / f"{n}.md", "# Ours\n\nThe heron waits.\n")
        write(docs.parent / "outside" / "deep" / f"{n}.md", "# Theirs\n\nThe password is secret.\n")
    source = register(docs, bench.store.catalog)
    with swapping(docs / name):
        for _ in range(SYNCS):
            with suppress(Unreadable):
                bench.sync(source)
            assert found(bench, "secret") == 0
