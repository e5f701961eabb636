"""Does a store's path still lead to the file that is open? SQLite does not check that.

SQLite goes on writing to a file that was deleted or replaced, by a restored backup for instance. Nobody else
would see that, and it would be gone when the process ends. A server runs for days, so every use looks first.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from concord.errors import BackendDown

FileId = tuple[int, int]  # its device and inode: no other file has these while it is open


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
                hint="put it back, or begin a new one: restart this program, then `kb add`; "
                "nothing is kept until then",
            )

    def _file_id(self) -> FileId | None:
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # of a disk that fails, or a folder that was closed to us: SQLite says more about it
            return self._known
        return found.st_dev, found.st_ino
