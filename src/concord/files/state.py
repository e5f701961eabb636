"""What was a source like when it was last synced, and is it still? Its disk, its files, those without text.

What a sync writes down for the next one is JSON, which a store keeps without reading it. A migration leaves
its marks in the same place: whether a copy is finished, and what it was like then.

A disk that was unmounted leaves a folder of the same name, as a rule an empty one. So every sync writes down
where the disk of a source is mounted. If that is elsewhere the next time, and nothing that is indexed is
there, the disk is what is missing. Device numbers would tell less: many change with every start of a machine.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from concord import __version__
from concord.core import plugins
from concord.core.errors import Action, Hint, Unreadable
from concord.files.freshness import is_settled, may_be_another
from concord.files.opening import open_of_source
from concord.files.walk import Found, Skipped, walk_source
from concord.store.contract import Catalog
from concord.types import FileState, Source

Entry = list[int | str]  # the state of a file, then why it holds no text
_UNFINISHED = "unfinished copy"  # the key of a mark; the value is a generation


class Memo(Struct, frozen=True):
    """What the last complete sync of a source saw, and how that sync, or one begun since, chunks files."""

    mount: str | None = None  # where the disk with its files was mounted
    readers: list[str] = field(default_factory=list)  # the extractors that looked for text, see `textless`
    textless: dict[str, Entry] = field(default_factory=dict)  # by path within the source
    chunking: list[int] = field(default_factory=list, name="cut")  # what decides which chunks a file has
    # Anything indexed before this moment may be chunked in another way.
    chunking_since: float = field(default=0.0, name="cut_since")
    scans: list[str] = field(default_factory=list)  # files with pages that show text and hold none
    declares: bool = False  # some file says that it was replaced, or that it replaces another


def read_memo(written: str) -> Memo:
    """Return what a sync wrote down; an empty memo where something else is written there."""
    return msgspec.json.decode(written or "{}", type=Memo)


def write_memo(memo: Memo) -> str:
    """Return a memo as a store keeps it."""
    return msgspec.json.encode(memo).decode()


def unfinished_copy(generation: int) -> str:
    """Return the memo of an unfinished copy of this generation: any other change would raise that number."""
    return json.dumps({_UNFINISHED: generation})


class Textless:
    """The textless files of one source: those known before, and those met by this sync."""

    def __init__(self, memo: Memo) -> None:
        self._known = memo.textless if memo.readers == readers() else {}
        self.met: dict[str, Entry] = {}

    def reason(self, found: Found) -> str | None:
        """Return why a file holds no text; None if it has changed since, or was never found to hold none."""
        entry = self._known.get(found.relative)
        if entry is None or entry[:-1] != _state(found):
            return None
        self.met[found.relative] = entry
        return str(entry[-1])

    def add(self, found: Found, reason: str) -> None:
        """Remember a file, unless another save might not show by its modification time."""
        if is_settled(found):
            self.met[found.relative] = [*_state(found), reason]


def readers() -> list[str]:
    """Return what decides whether a file holds text: this version, and the extractors that are installed."""
    return [__version__, *plugins.names("extractors")]


def _state(found: Found) -> list[int]:
    return [found.size, found.mtime_ns, found.ctime_ns]


def root_folder(source: Source) -> str:
    """Return the folder that a source's files are in."""
    path = source.path or ""
    return os.path.dirname(path) if source.kind == "file" else path


def mount_point(source: Source) -> str:
    """Return where the disk of a source's files is mounted: at its folder, or at the nearest one above."""
    folder = root_folder(source)
    while not _is_mount(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _is_mount(folder: str) -> bool:
    try:
        return os.path.ismount(folder)
    except OSError:  # it became a link, or stopped being one, just now: no disk is mounted like that
        return False


def is_elsewhere(source: Source, memo: Memo) -> bool:
    """Whether a source's files are looked for on another disk than they were found on."""
    return memo.mount is not None and memo.mount != mount_point(source)


def check_disk(source: Source, documents: Iterable[str], memo: Memo) -> None:
    """Check that a source has not lost its disk; `documents` are the paths of what is indexed of it."""
    if not is_elsewhere(source, memo):
        return
    files = [source.file_of(path) or "" for path in documents]
    if files and not any(map(os.path.lexists, files)):
        raise Unreadable(
            f"{source.path} looks unmounted: it was on the disk mounted at {memo.mount}, is on the one"
            f" at {mount_point(source)} now, and none of its files is there",
            hint=Hint(
                Action.REMOVE,
                "mount it again, or {remove}; its index is kept until then",
                source=source.name,
            ),
        )


def is_as_indexed(found: Found, state: FileState) -> bool:
    """Whether size and times say for sure that a file holds what was indexed."""
    is_same = (state.size, state.mtime_ns) == (found.size, found.mtime_ns)
    return is_same and not may_be_another(found.ctime_ns, state.indexed_at)


def is_unchanged(source: Source, catalog: Catalog, max_bytes: int) -> bool:
    """Whether all files of a source are as they were indexed, and no others are there; writes nothing."""
    memo, known = read_memo(catalog.sync_state(source.id)), catalog.file_states(source.id)
    check_disk(source, known, memo)
    textless = Textless(memo)
    for found in walk_source(source, max_bytes):
        if isinstance(found, Skipped):
            continue
        state = known.pop(source.path_of(found.relative), None)
        is_same = textless.reason(found) if state is None else _holds_the_same(found, state)
        if not is_same:
            return False
    return not known


def _holds_the_same(found: Found, state: FileState) -> bool:
    """Whether a file holds what was indexed; it is read if size and times do not tell."""
    if is_as_indexed(found, state) or found.size != state.size:
        return found.size == state.size
    try:
        with open(found.path, "rb", opener=open_of_source) as file:
            return hashlib.sha256(file.read()).hexdigest() == state.file_hash
    except OSError:
        return False
