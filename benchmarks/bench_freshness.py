"""What it costs to be current: a look at the files behind ten hits, and `kb sync --watch` of a large tree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.measure import (
    KB,
    Row,
    at_most,
    command_cost,
    cost_of,
    elapsed_ms,
    milliseconds,
    processor_s,
    quick_environment,
    sized,
)
from benchmarks.synthetic import OLD_S, make_old, write_small_files
from concord.core.config import load_settings
from concord.files.state import Files
from concord.knowledge import KnowledgeBase
from concord.search.deadline import run_within
from concord.search.passages import FILES_MS
from concord.types import Document, Source

HITS, POOL = 10, 20  # results, and passages that are looked at to find them
LOOKS = sized(200, 2)
MOST_MS = 5.0
FILES, FEW = sized((50_000, 1_000), (300, 100))
IDLE_S = sized(30.0, 0.2)
MOST_IDLE = 0.01  # of a core
SAVES = sized(9, 1)
MOST_SAVE_MS = 1000.0
CHECKED_OUT = sized(5_000, 100)


def run() -> Iterator[Row]:
    """Look at files, then watch some."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _looks(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield from _watching(Path(folder))


def _looks(folder: Path) -> Iterator[Row]:
    """Time what a search adds: are the pool's files there, and are those of the hits as they were?"""
    for name, size, is_touched in (("unchanged", 1_000, False), ("100 kB each, touched", 100_000, True)):
        tree = folder / f"tree{size}"
        _write(tree, size)
        documents, sources = _indexed(tree)
        if is_touched:
            make_old(tree, OLD_S / 2)
        ours = _median_ms(partial(_look, documents, sources))
        bare = _median_ms(partial(_stat, [tree / f"{number}.md" for number in range(POOL)]))
        yield Row(
            f"freshness of {HITS} hits, {name}",
            f"{ours:.2f} ms",
            f"{bare:.2f} ms: {POOL} × os.stat",
            ours / bare,
            f"< {MOST_MS:g} ms",
            ours < MOST_MS,
        )


def _indexed(tree: Path) -> tuple[list[Document], list[Source]]:
    settings = load_settings({"store.url": "memory://", "embed.provider": "none"})
    with KnowledgeBase(settings) as kb:
        kb.add(tree, embed=False)
        return list(kb.documents()), [source.source for source in kb.sources()]


def _look(documents: Sequence[Document], sources: Sequence[Source]) -> None:
    """Do what a search does, threads and all."""
    files = Files(sources)
    run_within(lambda: [files.is_deleted(document) for document in documents], FILES_MS)
    run_within(lambda: [files.freshness(document) for document in documents[:HITS]], FILES_MS)


def _stat(paths: Sequence[Path]) -> None:
    for path in paths:
        os.stat(path)


def _median_ms(work: Callable[[], None]) -> float:
    return elapsed_ms([cost_of(work) for _ in range(LOOKS)])


def _watching(folder: Path) -> Iterator[Row]:
    tree = folder / "tree"
    write_small_files(tree, FILES)
    make_old(tree)
    environment = quick_environment(KB_HOME=str(folder / "home"))
    command_cost([KB, "add", str(tree), "--no-embed"], environment)
    with _watch(environment) as process:
        _report(process)
        idle = _cpu_share(process.pid, IDLE_S)
        what = f"`kb sync --watch`, {FILES:,} files, idle for {IDLE_S:.0f} s"
        yield at_most(what, f"{idle:.3%} of a core", f"{MOST_IDLE:.0%}", idle / MOST_IDLE, 1.0)
        waits = [_save(process, tree / "part000" / "note00001.md", at) for at in range(SAVES)]
        waited = sorted(waits)[SAVES // 2]
        yield Row(f"a save until it is indexed, {FILES:,} files", milliseconds(waited))
        started = time.perf_counter()
        _rewrite(tree, CHECKED_OUT)
        _until(process, CHECKED_OUT)
        took = (time.perf_counter() - started) * 1000
        yield Row(f"{CHECKED_OUT:,} files rewritten until they are indexed", milliseconds(took))
    few = folder / "few"
    write_small_files(few, FEW)
    make_old(few)
    command_cost([KB, "add", str(few), "--no-embed"], environment)
    with _watch(environment, "few") as process:
        _report(process)
        waits = [_save(process, few / "part000" / "note00001.md", at) for at in range(SAVES)]
        waited = sorted(waits)[SAVES // 2]
        what = f"a save until it is indexed, {FEW:,} files"
        yield at_most(what, milliseconds(waited), milliseconds(MOST_SAVE_MS), waited / MOST_SAVE_MS, 1.0)


@contextmanager
def _watch(environment: dict[str, str], *names: str) -> Iterator[subprocess.Popen[str]]:
    command = [KB, "sync", "--watch", "--no-embed", "--json", *names]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _report(process: subprocess.Popen[str]) -> dict[str, int]:
    assert process.stdout is not None
    report: dict[str, int] = json.loads(process.stdout.readline())
    return report


def _save(process: subprocess.Popen[str], path: Path, at: int) -> float:
    """Save a file as editors do, and return how long it takes until a sync reports it, in milliseconds."""
    beside = path.with_name("partial~")
    beside.write_text(f"# Saved\n\nFor the {at}th time.\n", encoding="utf-8")
    started = time.perf_counter()
    os.replace(beside, path)
    _until(process, 1)
    return (time.perf_counter() - started) * 1000


def _until(process: subprocess.Popen[str], files: int) -> None:
    while files > 0:
        report = _report(process)
        files -= report["added"] + report["changed"]


def _rewrite(tree: Path, files: int) -> None:
    for number in range(100, 100 + files):
        path = tree / f"part{number // 100:03}" / f"note{number:05}.md"
        path.write_text(f"# Note {number}\n\nOn another branch, day {number}.\n", encoding="utf-8")


def _cpu_share(pid: int, seconds: float) -> float:
    """Return how much of a core a process takes while nothing happens."""
    started, before = time.perf_counter(), processor_s(pid)
    time.sleep(seconds)
    return (processor_s(pid) - before) / (time.perf_counter() - started)


def _write(tree: Path, size: int) -> None:
    tree.mkdir()
    for number in range(POOL):
        text = f"# Note {number}\n\n" + f"What was said on day {number}.\n\n" * (size // 30)
        (tree / f"{number}.md").write_text(text, encoding="utf-8")
    make_old(tree)
