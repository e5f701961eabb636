"""A folder that opens and cannot be listed, as on a disk that is dying or a network that is gone."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Self

import pytest


def fail_listing(folder: Path, monkeypatch: pytest.MonkeyPatch, *, after: int = 0) -> None:
    """Have the operating system fail once it has named this many entries of a folder."""
    real, failing = os.scandir, os.stat(folder)

    def scandir(path: str | int) -> Any:
        return _CutShort(real(path), after) if os.path.samestat(os.stat(path), failing) else real(path)

    monkeypatch.setattr(os, "scandir", scandir)


class _CutShort:
    """What `os.scandir` returns, up to where the disk fails."""

    def __init__(self, scan: Any, after: int) -> None:
        self._scan = scan
        self._left = after

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> os.DirEntry[str]:
        if not self._left:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._left -= 1
        entry: os.DirEntry[str] = next(self._scan)
        return entry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder back."""
        self._scan.close()
