"""Is a source on the disk that it was on? Where one was unmounted, its files are out of reach, not deleted.

What is left of a mounted disk is a folder of the same name, as a rule an empty one. So every sync writes down
where the disk of a source is mounted. If that is elsewhere the next time, and nothing that is indexed is
there, the disk is what is missing. Device numbers would tell less: many change with every start of a machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from concord.errors import Action, Hint, Unreadable
from concord.files.memos import Memo
from concord.types import Source


def root_folder(source: Source) -> str:
    """Return the folder that a source's files are in."""
    path = source.path or ""
    return os.path.dirname(path) if source.kind == "file" else path


def mount_point(source: Source) -> str:
    """Return where the disk of a source's files is mounted: at its folder, or at the nearest one above."""
    folder = root_folder(source)
    while not os.path.ismount(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def is_elsewhere(source: Source, memo: Memo) -> bool:
    """Whether a source's files are looked for on another disk than they were found on."""
    return memo.mount is not None and memo.mount != mount_point(source)


def check_disk(source: Source, documents: Iterable[str], memo: Memo) -> None:
    """Check that a source has not lost its disk; `documents` are the paths of what is indexed of it.

    Raises:
        Unreadable: it is on another disk, and none of its files is there.
    """
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
