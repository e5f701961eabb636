"""A model that was built once, kept in the cache directory as a directory of its own.

It appears whole or not at all: one process builds it beside its place, under a lock that dies with it, and
renames it. What was cut short or written over since is noticed by its size and time, before onnxruntime maps
it, and built again. Where nothing can be written, the model is built in memory.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from concord.embed.onnx_file import GRAPH_FILE, WEIGHTS_FILE, Graph

_SEAL = "seal.json"


def ensure(home: Path, build: Callable[[], Graph]) -> Path | bytes:
    """Return the model's file, building it if it is missing or damaged; its bytes where it cannot be kept."""
    try:
        if not is_intact(home):
            with _locked(home):
                _install(home, build)
        return home / GRAPH_FILE
    except OSError:  # read-only, full, no home: all the same to us
        return build().to_bytes()


def is_usable(directory: Path) -> bool:
    """Whether something can be kept in a directory, which is made if it is missing."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(directory, os.W_OK | os.X_OK)


def is_intact(home: Path) -> bool:
    """Whether the model is as it was when it was built."""
    try:
        return bool(json.loads((home / _SEAL).read_bytes()) == _describe(home))
    except (OSError, ValueError):
        return False


def _install(home: Path, build: Callable[[], Graph]) -> None:
    if is_intact(home):  # built by another process while this one waited for the lock
        return
    partial = home.with_name(home.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed: we hold the lock
    partial.mkdir()
    try:
        build().write(partial)
        _flush(partial / WEIGHTS_FILE)  # a power cut must not leave zeros under a seal that knows of none
        (partial / _SEAL).write_text(json.dumps(_describe(partial)), "ascii")
        shutil.rmtree(home, ignore_errors=True)
        partial.rename(home)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _describe(home: Path) -> dict[str, int | str]:
    """Name what a model consists of: the small graph by its hash, the large weights by size and time."""
    weights = (home / WEIGHTS_FILE).stat()
    graph = hashlib.sha256((home / GRAPH_FILE).read_bytes()).hexdigest()
    return {"graph": graph, "size": weights.st_size, "mtime_ns": weights.st_mtime_ns}


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(home.name + ".lock").open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
