"""Which file a store URL and an organisation mean.

sqlite:///folder           one file an organisation: /folder/<org>.db
sqlite:///folder/name.db   that file, which belongs to the first organisation that wrote to it

The path is taken as it is written, without percent-decoding. Options follow a question mark:
`busy_timeout_ms=5000` (how long to wait for another process), `vfs=name` (a registered SQLite VFS).
"""

from __future__ import annotations

import os

from msgspec import Struct

from concord.core.errors import BadValue
from concord.core.values import check_org

SCHEME = "sqlite://"
APPLICATION_ID = 0x6B62636F  # "kbco" in the file's header: tells a store from any other SQLite database
# A transaction of ours takes milliseconds: what holds the lock longer is stuck or huge.
BUSY_TIMEOUT_MS = 5000


class Location(Struct, frozen=True):
    """A database file and how to open it."""

    path: str  # not a Path: pathlib is 5 ms, which a search need not pay
    org: str
    busy_timeout_ms: int = BUSY_TIMEOUT_MS
    vfs: str | None = None
    is_one_of_many: bool = False  # whether the files beside it are those of other organisations


def locate(url: str, org: str) -> Location:
    """Return the file that holds an organisation.

    Raises:
        BadValue: the URL or the organisation's name is not of the form it must have.
    """
    written, _, options = url.removeprefix(SCHEME).partition("?")
    if not url.startswith(SCHEME) or not written.startswith("/") or "\0" in written:
        raise BadValue(f"{url!r} names no SQLite store", hint="write sqlite:///absolute/folder")
    check_org(org)
    path = "/" + written.strip("/")  # sqlite:/// + /folder is as good as sqlite:// + /folder
    is_file = os.path.splitext(path)[1] == ".db"
    file = path if is_file else os.path.join(path, f"{org}.db")
    return _with_options(Location(file, org, is_one_of_many=not is_file), options)


def _with_options(location: Location, options: str) -> Location:
    busy_timeout_ms, vfs = location.busy_timeout_ms, location.vfs
    for option in filter(None, options.split("&")):
        name, _, value = option.partition("=")
        if name == "busy_timeout_ms" and value.isdecimal():
            busy_timeout_ms = int(value)
        elif name == "vfs" and value:
            vfs = value
        else:
            raise BadValue(
                f"{option!r} is no option of a SQLite store", hint="known: busy_timeout_ms=N, vfs=NAME"
            )
    return Location(location.path, location.org, busy_timeout_ms, vfs, location.is_one_of_many)
