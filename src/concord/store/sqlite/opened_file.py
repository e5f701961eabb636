"""Does a store's path still lead to the file that is open, and is anything in it? SQLite does not check that.

SQLite goes on writing to a file that was deleted or replaced, by a restored backup for instance. Nobody else
would see that, and it would be gone when the process ends. A server runs for days, so every use looks first.

To SQLite an empty file is a new database, and it deletes the log beside it. So a store that is written to has
a file beside it that says so: where there is one, an empty store was cut off.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from concord.core.errors import Action, BackendDown, CorruptStore, Hint

_MARK = "-begun"
_MEANING = b"The database of this name is in use. If it is empty, it was cut off, and is not a new one.\n"

FileId = tuple[int, int]  # its device and inode: no other file has these while it is open


def mark_as_begun(path: str) -> None:
    """Write down that a store holds something; where nothing can be written, it is as safe as before."""
    with suppress(OSError), open(path + _MARK, "xb") as file:
        file.write(_MEANING)


def forget_begun(path: str) -> None:
    """Forget a store whose file is gone: the next one of its name is new."""
    with suppress(OSError):
        os.unlink(path + _MARK)


class OpenedFile:
    """The file at a path, as it was when it was first met, or made ready since."""

    def __init__(self, path: str, make_ready: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._make_ready = make_ready  # called for each file that takes the place of another
        self._making_ready = threading.Lock()
        self._known: FileId | None = None
        self._was_missing = False

    def is_missing(self) -> bool:
        """Whether there is no file yet; one that comes later is made ready before it is used."""
        if self._known is None:
            try:
                os.stat(self._path)
            except FileNotFoundError:
                self._was_missing = True
                return True
            except OSError:  # closed to us, perhaps: opening it says more
                pass
        return False

    def current(self) -> FileId | None:
        """Return which file is there now; None only before one was made.

        Raises:
            BackendDown: the file that was there has gone, and no other is in its place yet.
            CorruptStore: it was cut off.
            KBError: what is in its place cannot be used.
        """
        now = self._file_id()
        if now == self._known:
            return now
        with self._making_ready:
            now = self._file_id()
            if self._known is not None and now != self._known:
                self._check_not_gone(now)
                self._make_ready()
            elif self._was_missing and now is not None:
                self._make_ready()  # another process may still be making it
            self._known = now
        return now

    def made(self) -> FileId | None:
        """Return which file is there now, made when there has never been one.

        Raises:
            KBError: it cannot be made, or what is there cannot be used.
        """
        if self.current() is None:
            with self._making_ready:
                self._make_ready()
                self._known = self._file_id()
        return self.current()

    def _check_not_gone(self, now: FileId | None) -> None:
        """Refuse an empty file, too: somebody is about to fill it, and we would begin a store in it."""
        if now is None or not os.path.getsize(self._path):
            raise BackendDown(
                f"{self._path} is gone: it was moved or deleted while it was open",
                hint=Hint(
                    Action.ADD,
                    "put it back, or begin a new one: restart this program, then {add}; nothing is kept until"
                    " then",
                ),
            )

    def _file_id(self) -> FileId | None:
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # of a disk that fails, or a folder that was closed to us: SQLite says more about it
            return self._known
        if not found.st_size:
            self._check_not_cut()
        return found.st_dev, found.st_ino

    def _check_not_cut(self) -> None:
        if os.path.lexists(self._path + _MARK):
            raise CorruptStore(
                f"{self._path} is empty, and held a store before",
                hint=Hint(
                    Action.ADD,
                    "restore it from a backup, or delete it and run {add} again: all but notes is built from"
                    " your files, and notes may be in a file of {note_export}",
                ),
            )
