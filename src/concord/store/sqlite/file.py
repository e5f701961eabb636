"""Which file a store URL and an organisation mean.

sqlite:///folder           one file an organisation: /folder/<org>.db
sqlite:///folder/name.db   that file, which belongs to the first organisation that wrote to it

The path is taken as it is written, without percent-decoding. Options follow a question mark:
`busy_timeout_ms=30000` (how long to wait for another process), `vfs=name` (a registered SQLite VFS).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import apsw
from msgspec import DecodeError, Struct

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, KBError, StoreBusy
from concord.core.values import check_org
from concord.store.sql import Explanations, explained, says

SCHEME = "sqlite://"
APPLICATION_ID = 0x6B62636F  # "kbco" in the file's header: tells a store from any other SQLite database
# A transaction of ours takes milliseconds, or seconds if it is huge; a sync that gives up loses its work.
BUSY_TIMEOUT_MS = 30_000


class Location(Struct, frozen=True):
    """A database file and how to open it."""

    path: str  # not a Path: pathlib is 5 ms, which a search need not pay
    org: str
    busy_timeout_ms: int = BUSY_TIMEOUT_MS
    vfs: str | None = None


def locate(url: str, org: str) -> Location:
    """Return the file that holds an organisation."""
    written, _, options = url.removeprefix(SCHEME).partition("?")
    if not url.startswith(SCHEME) or not written.startswith("/") or "\0" in written:
        raise BadValue(f"{url!r} names no SQLite store", hint="write sqlite:///absolute/folder")
    check_org(org)
    path = "/" + written.strip("/")  # sqlite:///folder is as good as sqlite:////folder
    is_file = os.path.splitext(path)[1] == ".db"
    known = {"busy_timeout_ms": str(BUSY_TIMEOUT_MS), "vfs": ""}
    for option in filter(None, options.split("&")):
        name, _, value = option.partition("=")
        if name not in known or not value or (name != "vfs" and not value.isdecimal()):
            hint = "known: busy_timeout_ms=N, vfs=NAME"
            raise BadValue(f"{option!r} is no option of a SQLite store", hint=hint)
        known[name] = value
    file = path if is_file else os.path.join(path, f"{org}.db")
    return Location(file, org, int(known["busy_timeout_ms"]), known["vfs"] or None)


_MARK = "-begun"
NOTES = "-notes"  # ends the name of the file that holds notes a second time
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
    """The file at a path, as it was when it was made ready last."""

    def __init__(self, path: str, make_ready: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._make_ready = make_ready  # called for the first file, and each in its place
        self._making_ready = threading.Lock()
        self._known: FileId | None = None

    def is_missing(self) -> bool:
        """Whether there is no file yet."""
        try:
            return self._known is None and os.stat(self._path) is None
        except FileNotFoundError:
            return True
        except OSError:  # closed to us, perhaps: opening it says more
            return False

    def current(self) -> FileId | None:
        """Return which file is there now; None only before one was made.

        Raises:
            BackendDown: the file that was there has gone, and no other is in its place yet.
            CorruptStore: it was cut off.
            KBError: what is in its place cannot be used.
        """
        if (now := self._file_id()) == self._known:
            return now
        with self._making_ready:
            now = self._file_id()
            if now != self._known:
                # An empty file, too: somebody is about to fill it, and we would begin a store in it.
                if self._known is not None and (now is None or not os.path.getsize(self._path)):
                    message = f"{self._path} is gone: it was moved or deleted while it was open"
                    how = "put it back, or restart this program and begin a new one with {add}"
                    raise BackendDown(message, hint=Hint(Action.ADD, f"{how}: nothing is kept now"))
                self._make_ready()
                self._known = now
        return now

    def made(self) -> FileId | None:
        """Return which file is there now, made when there has never been one."""
        if self.current() is None:
            with self._making_ready:
                self._make_ready()
                self._known = self._file_id()
        return self.current()

    def _file_id(self) -> FileId | None:
        try:
            status = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:  # of a disk that fails, or a folder that was closed to us: SQLite says more about it
            return self._known
        if not status.st_size and os.path.lexists(self._path + _MARK):
            message = f"{self._path} is empty, and held a store before"
            raise CorruptStore(message, hint=Hint(Action.RECOVER, DAMAGE))
        return status.st_dev, status.st_ino


# Texts of hints.
DAMAGE = "restore it from a backup, or bring its notes back with {recover}: all else is built from your files"


def translated(path: str) -> AbstractContextManager[None]:
    """Turn what SQLite raises in the block into a KBError; what only a fault of ours can cause passes."""
    return explained((apsw.Error, UnicodeDecodeError, DecodeError), _EXPLANATIONS, path)


def lacks_room(fault: Exception) -> bool:
    """Whether a disk is so full that not even shared memory can be laid out beside a store."""
    return getattr(fault, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE


def _io(fault: Exception, path: str) -> KBError:
    if os.path.isdir(path):  # unlike Path.is_dir it does not raise where the folder is closed to us
        how = Hint(Action.STORE, "move it away, or use another {store}")
        return CorruptStore(f"{path} is a folder, not a database", hint=how)
    if isinstance(fault, apsw.FullError) or lacks_room(fault):
        hint = "free some space, then run the command again"
        return BackendDown(f"the disk is full: {path} cannot grow", hint=hint)
    hint = "nothing was lost: check the disk and try again"
    return BackendDown(f"the disk fails under {path}: {fault}", hint=hint)


def _read_only(fault: Exception, path: str) -> KBError:
    from concord.store.files import read_only  # late: no search needs it

    return read_only(path)


def _cannot_open(fault: Exception, path: str) -> KBError:
    if os.path.isdir(path):
        return _io(fault, path)
    if os.access(path, os.R_OK) and not os.access(os.path.dirname(path), os.W_OK):
        return _read_only(fault, path)  # on a disk that is mounted so, its log cannot be made
    return BackendDown(
        f"{path} cannot be opened", hint="check that it and its folder may be read and written"
    )


_CORRUPT = says(CorruptStore, "{place} is damaged: {fault}", Hint(Action.RECOVER, DAMAGE))
_ALTERED = (
    "no such table", "no such column", "no such fts5", "invalid fts5", "malformed",
    "vtable constructor failed", "Internal sqlite-vec error",
)  # fmt: skip


def _statement(fault: Exception, path: str) -> KBError | None:
    """Tell tables that were taken away or replaced from a statement of ours that is wrong."""
    return _CORRUPT(fault, path) if str(fault).startswith(_ALTERED) else None


_EXPLANATIONS: Explanations[str] = (
    (
        (apsw.BusyError, apsw.LockedError),
        says(StoreBusy, "another process keeps {place} locked", "wait for it to finish, then try again"),
    ),
    (apsw.CorruptError, _CORRUPT),
    (
        apsw.NotADBError,
        says(
            CorruptStore,
            "{place} is not a database",
            Hint(Action.RECOVER, f"choose another place for the store, or {DAMAGE}"),
        ),
    ),
    ((apsw.FullError, apsw.IOError), _io),
    ((apsw.ReadOnlyError, apsw.PermissionsError), _read_only),
    (apsw.CantOpenError, _cannot_open),
    (
        apsw.ExtensionLoadingError,
        says(
            BackendDown, "sqlite-vec cannot be loaded: {fault}", Hint(Action.REINSTALL, package="sqlite-vec")
        ),
    ),
    (apsw.SQLError, _statement),
    ((UnicodeDecodeError, DecodeError), _CORRUPT),  # of text that this program wrote
)
