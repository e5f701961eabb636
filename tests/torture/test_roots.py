"""Files and folders that become links to a secret outside, and files again, while they are synced."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from concord.core.errors import Unreadable
from concord.index.sources import register
from concord.store.contract import Store
from concord.types import Filter, Word
from support.recorders import SyncBench, opened, write

NAMES = ("a.md", "deep/b.md", "deep/c.md", "deep/er/d.md", "z.md")
PLACES = (".", "a.md", "deep", "deep/b.md", "deep/er", "deep/er/d.md", "z.md")
RACES = 50  # syncs in one case, each against a thread that swaps all the time


def swap_once(path: Path, link: Path, kept: Path) -> None:
    """Put a link in the place of a file or folder, and that back."""
    path.rename(kept)
    link.rename(path)
    path.rename(link)
    kept.rename(path)


@contextmanager
def swapping(path: Path, target: str) -> Iterator[list[int]]:
    """Swap a file or folder for a link to a target and back, all the time, and count how often."""
    link, kept, stop, swaps = path.with_name("link"), path.with_name("kept"), threading.Event(), [0]
    link.symlink_to(target)

    def run() -> None:
        while not stop.is_set():
            swap_once(path, link, kept)
            swaps[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield swaps
    finally:
        stop.set()
        thread.join()


def leaks(store: Store) -> bool:
    """Whether a text or a name from outside is in an index."""
    named = any("hidden" in document.path for document in store.catalog.documents())
    return named or bool(store.words.search(Word("secret"), Filter(), 1))


@pytest.mark.promise("torture.roots")
@pytest.mark.campaign(whole=200, part=3)
def test_nothing_outside_is_read_however_often_a_link_comes_and_goes(
    seed: int, home: Path, counted: Callable[[int, int], None]
):
    draw, docs, outside = random.Random(seed), home / "work" / "docs", home / "outside"
    for name in NAMES:
        write(docs / name, "# Ours\n\nThe heron waits.\n")
        write(outside / name, "# Theirs\n\nThe password is secret.\n")
        write((outside / name).with_name("hidden.md"), "# Theirs\n\nThe password is secret.\n")
    place = PLACES[seed % len(PLACES)]
    target = os.fspath(outside / place)
    if draw.random() < 0.5:
        target = os.path.relpath(target, (docs / place).parent)
    bench, leaked = SyncBench(opened("memory://")), 0
    source = register(docs, bench.store.catalog)
    with swapping(docs / place, target) as swaps:
        for _ in range(RACES):
            with suppress(Unreadable):
                bench.sync(source)
            leaked += leaks(bench.store)
    bench.sync(source)
    bench.reader.close()
    counted(RACES, RACES - leaked)
    assert swaps[0]
    assert bench.store.words.search(Word("heron"), Filter(), 1)
    assert not leaked
