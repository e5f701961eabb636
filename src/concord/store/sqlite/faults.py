"""What SQLite's errors mean to a user: the one place where they become ours."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

import apsw

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, KBError, StoreBusy
from concord.store import sql_faults
from concord.store.sql_faults import Explanations

# Texts of hints.
ANEW = "move it away and run {add} again: all but notes is built from your files"
DAMAGE = f"restore it from a backup, or try {{note_export}}, then {ANEW}"


def translated(path: str) -> AbstractContextManager[None]:
    """Turn what SQLite raises in the block into a KBError; what only a fault of ours can cause passes."""
    return sql_faults.translated(apsw.Error, _EXPLANATIONS, path)


def lacks_room(fault: Exception) -> bool:
    """Whether a disk is so full that not even shared memory can be laid out beside a store."""
    return getattr(fault, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE


def _busy(fault: Exception, path: str) -> KBError:
    return StoreBusy(f"another process keeps {path} locked", hint="wait for it to finish, then try again")


def _corrupt(fault: Exception, path: str) -> KBError:
    return CorruptStore(f"{path} is damaged: {fault}", hint=Hint(Action.NOTE_EXPORT, DAMAGE))


def _not_a_database(fault: Exception, path: str) -> KBError:
    return CorruptStore(
        f"{path} is not a database",
        hint=Hint(Action.ADD, f"choose another place for the store, restore it from a backup, or {ANEW}"),
    )


def _full(fault: Exception, path: str) -> KBError:
    return BackendDown(
        f"the disk is full: {path} cannot grow", hint="free some space, then run the command again"
    )


def _io(fault: Exception, path: str) -> KBError:
    if os.path.isdir(path):
        return _folder(path)
    if lacks_room(fault):
        return _full(fault, path)
    return BackendDown(
        f"the disk fails under {path}: {fault}", hint="nothing was lost: check the disk and try again"
    )


def _folder(path: str) -> KBError:
    return CorruptStore(
        f"{path} is a folder, not a database", hint=Hint(Action.STORE, "move it away, or use another {store}")
    )


def _read_only(fault: Exception, path: str) -> KBError:
    from concord.store.store_errors import read_only  # late: no search needs it

    return read_only(path)


def _cannot_open(fault: Exception, path: str) -> KBError:
    if os.path.isdir(path):  # unlike Path.is_dir it does not raise where the folder is closed to us
        return _folder(path)
    if os.access(path, os.R_OK) and not os.access(os.path.dirname(path), os.W_OK):
        return _read_only(fault, path)  # on a disk that is mounted so, its log cannot be made
    return BackendDown(
        f"{path} cannot be opened", hint="check that it and its folder may be read and written"
    )


def _out_of_memory(fault: Exception, path: str) -> KBError:
    return BackendDown(f"memory ran out while using {path}", hint="close other programs, then try again")


def _no_extension(fault: Exception, path: str) -> KBError:
    return BackendDown(
        f"sqlite-vec cannot be loaded: {fault}", hint=Hint(Action.REINSTALL, package="sqlite-vec")
    )


def _too_big(fault: Exception, path: str) -> KBError:
    return BadValue("a text or value is too large to be stored", hint="split the file, or leave it out")


def _statement(fault: Exception, path: str) -> KBError | None:
    """Tell tables that were taken away or replaced from a statement of ours that is wrong."""
    message = str(fault)
    altered = message.startswith(("no such table", "no such column", "vtable constructor failed"))
    return _corrupt(fault, path) if altered else None


_EXPLANATIONS: Explanations[str] = (
    (apsw.BusyError, _busy),
    (apsw.LockedError, _busy),
    (apsw.CorruptError, _corrupt),
    (apsw.NotADBError, _not_a_database),
    (apsw.FullError, _full),
    (apsw.IOError, _io),
    (apsw.ReadOnlyError, _read_only),
    (apsw.PermissionsError, _read_only),
    (apsw.CantOpenError, _cannot_open),
    (apsw.NoMemError, _out_of_memory),
    (apsw.TooBigError, _too_big),
    (apsw.ExtensionLoadingError, _no_extension),
    (apsw.SQLError, _statement),
)
