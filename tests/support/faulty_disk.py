"""A disk that fails when it is told to: a SQLite VFS over the real one, for tests.

`FaultyDisk("name")` registers it; a store URL with `?vfs=name` uses it. Only files that can hold data (the
database, its log) fail; the shared memory beside them is none of this layer's business.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

Fault = Callable[[], None]  # raises, or kills the process


class FaultyDisk(apsw.VFS):
    """Counts what is written, and calls `fault` from the write with the number `at` on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fault: Fault | None = None
        self.at = 0
        self.writes = 0
        super().__init__(name, "")

    def fails(self, fault: Fault | None, at: int = 0) -> None:
        """Fail from the write with this number on, counted from now; None heals the disk."""
        self.fault, self.at, self.writes = fault, at, 0

    def written(self) -> None:
        """Count one write, sync or truncation, and fail if it is time to."""
        self.writes += 1
        if self.fault and self.writes > self.at:
            self.fault()

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file that fails with the disk."""
        return _FaultyFile(self, name, flags)

    def excepthook(self, *fault: object) -> bool:
        """Say nothing: the fault is meant."""
        return True


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.written()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.written()
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:
        self._disk.written()
        super().xTruncate(newsize)

    def excepthook(self, *fault: object) -> bool:
        return True


def disk_full() -> None:
    """Fail as a full disk does."""
    raise apsw.FullError("no space left on device")


def io_error() -> None:
    """Fail as a broken disk does."""
    raise apsw.IOError("input/output error")
