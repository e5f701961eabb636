"""Keeping sources current: the operating system tells that something changed, a sync finds out what.

A notice is only ever a reason to look: which files changed is decided by walking the source, so that notices
which were lost, doubled or about files of no interest do no harm. What nobody tells of (a source's own
folder removed and made anew, a file replaced under the same name, a source added by another process) is seen
by a glance at the roots, twice a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import NamedTuple

from msgspec.structs import replace

from concord.core.reports import SyncReport
from concord.files.ignore import holds_no_text
from concord.types import Source

TICK_MS = 500  # between two glances at the roots
QUIET_MS = 100  # a burst of changes has ended when nothing happened for so long …
BURST_MS = 400  # … or has gone on for so long: a save is seen within half a second either way
# Of the time that a sync took, to rest after it: a tree that never stops changing takes half a core.
REST_SHARE = 1.0
LONGEST_REST_S = 30.0
UNNOTIFIED_S = 2.0  # between two scans where the system gives no notices, …
UNNOTIFIED_SHARE = 50.0  # … and at least so many times what a scan takes
_VERSIONED = frozenset({".git", ".hg", ".svn", ".jj"})  # programs' own books: changed with every command

_State = tuple[int, ...] | None  # what a glance at a path shows; None where nothing is


class WatchTools(NamedTuple):
    """What is watched, and how."""

    sources: Callable[[], Sequence[Source]]  # asked again and again: others may add and remove some
    sync: Callable[[Source], SyncReport]  # reports what fails: it is tried again with the next change
    own_folders: Sequence[str]  # where we write ourselves: no news
    rescan_s: float


def watch(tools: WatchTools, stop: Event) -> Iterator[SyncReport]:
    """Yield what each sync did, of every source at first and then of those that change, until told to stop.

    Syncs that found nothing to do are not told of, but for the first of each source.
    """
    told: set[str] = set()
    while not stop.is_set():
        sources = _with_files(tools.sources())
        for at, changed in enumerate(_notices(sources, tools, stop)):
            started = time.monotonic()
            for source in filter(lambda source: _is_affected(source, changed), sources) if at else sources:
                report = tools.sync(source)
                done = (report.added, report.changed, report.removed, report.renamed, report.embedded)
                if source.id not in told or any(done) or report.failed:
                    yield report
                told.add(source.id)
            stop.wait(min(LONGEST_REST_S, REST_SHARE * (time.monotonic() - started)))


def _notices(sources: Sequence[Source], tools: WatchTools, stop: Event) -> Iterator[set[str]]:
    """Yield paths that changed, at first none; end when the sources are others, or it is time to rescan."""
    before = _glance(sources)
    files = {source.path: _state(source.path) for source in sources if source.kind == "file"}
    ends = time.monotonic() + tools.rescan_s if tools.rescan_s else float("inf")
    is_first = True
    for changed in _changes(sources, tools.own_folders, stop):
        now = {path: _state(path) for path in files}
        changed |= {path for path in files if path and now[path] != files[path]}
        files = now
        if is_first or changed:
            yield changed
        is_first = False
        # A root that was removed may be back by now and look the same, but there are no more notices of it.
        is_root_gone = any(source.path in changed for source in sources if source.kind == "directory")
        if is_root_gone or time.monotonic() >= ends or _glance(_with_files(tools.sources())) != before:
            return


def _changes(sources: Sequence[Source], own: Sequence[str], stop: Event) -> Iterator[set[str]]:
    """Yield the paths that the system tells of, and nothing every half second."""
    from watchfiles import watch as notified

    folders = [source.path for source in sources if source.kind == "directory" and _state(source.path)]
    ours = tuple(os.path.join(os.path.realpath(folder), "") for folder in own)
    try:
        if folders:
            for changes in notified(
                *map(str, folders),
                watch_filter=lambda _, path: is_news(path) and not path.startswith(ours),
                debounce=BURST_MS,
                step=QUIET_MS,
                rust_timeout=TICK_MS,
                yield_on_timeout=True,
                stop_event=stop,
                ignore_permission_denied=True,
            ):
                yield {path for _, path in changes}
            return
    except OSError:  # no more notices to be had (fs.inotify.max_user_watches), or a folder went away just now
        pass
    yield from _unnotified(folders, stop)


def _unnotified(folders: Sequence[str | None], stop: Event) -> Iterator[set[str]]:
    """Yield every folder from time to time: the more seldom, the longer it takes to look through them."""
    while not stop.is_set():
        started = time.monotonic()
        yield {os.path.join(folder, "") for folder in folders if folder}
        pause = max(UNNOTIFIED_S, UNNOTIFIED_SHARE * (time.monotonic() - started))
        stop.wait(pause if folders else TICK_MS / 1000)


def is_news(path: str) -> bool:
    """Whether a change there may be one to what is indexed."""
    *folders, name = path.split(os.sep)
    return not holds_no_text(name.lower()) and _VERSIONED.isdisjoint(folders)


def _is_affected(source: Source, changed: set[str]) -> bool:
    return any(path == source.path or path.startswith(f"{source.path}{os.sep}") for path in changed)


def _with_files(sources: Sequence[Source]) -> list[Source]:
    return [source for source in sources if source.path is not None]


def _glance(sources: Sequence[Source]) -> list[tuple[object, ...]]:
    """Return what watching depends on: which sources there are, and which folder is at each root."""

    def folder(source: Source) -> _State:
        state = _state(source.path) if source.kind == "directory" else None
        return state and state[:2]  # another, where a folder was made anew; its size says nothing

    return [(replace(source, synced_at=None), folder(source)) for source in sources]


def _state(path: str | None) -> _State:
    try:
        status = os.stat(path or "")
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
