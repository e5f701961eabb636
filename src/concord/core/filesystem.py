"""How does a file outlast a crash or a power cut? It is written beside its place, then put there whole."""

from __future__ import annotations

import os
import re
from contextlib import suppress

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_LONGEST = 200  # bytes of a name; a system allows 255
_DRAFT = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.draft", re.DOTALL)


def replace_file(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o666, wait: bool = True) -> None:
    """Put data in the place of a file, all or nothing, whoever else does so at the same time.

    A file that is there keeps its permissions; a new one gets `mode`, less the process's umask. Without
    `wait` for the disk it takes a fifth of the time, and a power cut may leave an empty file.

    Raises:
        OSError: it cannot be written; what was there still is.
    """
    path = os.path.realpath(path)  # what a link leads to is replaced, not the link
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{_brief(name)}.{os.urandom(4).hex()}.draft")
    known = _mode_of(path)
    try:
        with open(os.open(draft, _NEW, mode if known is None else known), "wb") as file:
            if known is not None:
                with suppress(OSError):  # a disk that knows no modes
                    os.fchmod(file.fileno(), known)
            file.write(data)
            file.flush()
            if wait:
                os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        with suppress(OSError):
            os.unlink(draft)  # which is not there any more, unless something failed
    if wait:
        with suppress(OSError):  # it is in its place; not every disk, or everybody, can ask for more
            sync_to_disk(folder)  # where the name leads to the new file now


def sweep_drafts(path: str | os.PathLike[str]) -> None:
    """Delete drafts that killed processes have left beside a file; only while nobody writes the file."""
    folder, name = os.path.split(os.path.realpath(path))
    with suppress(OSError):  # it is somebody else's, or the folder cannot be listed: writing tells
        for one in os.listdir(folder):
            if (found := _DRAFT.fullmatch(one)) and found["name"] == _brief(name):
                os.unlink(os.path.join(folder, one))


def sync_to_disk(path: str | os.PathLike[str]) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _brief(name: str) -> str:
    """Return the beginning of a name that leaves room for what the name of a draft has in addition."""
    return os.fsdecode(os.fsencode(name)[:_LONGEST])


def _mode_of(path: str | os.PathLike[str]) -> int | None:
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        return None
