"""How is a copy of everything made that can be put back? `kb backup`: by stores that can copy themselves."""

from __future__ import annotations

import os
import time

from concord.core.errors import BadValue
from concord.core.protocols import Progress
from concord.core.reports import Backup
from concord.store.contract import Store


def back_up(store: Store, path: str | os.PathLike[str], progress: Progress) -> Backup:
    """Copy a store to a file while it is in use; vectors that are kept outside it are made from its cache.

    Raises:
        NotFound: nothing was ever kept here.
        UsageError: this kind of store cannot copy itself.
        BadValue: the path is the store's own, or holds something that is no copy of a store.
        CorruptStore: the store is damaged; an older copy stays.
        BackendDown: the file cannot be written.
    """
    started = time.monotonic()
    place = store.place
    target = os.path.realpath(os.path.expanduser(path))  # a link stays one
    if os.path.isdir(target):
        raise BadValue(f"{target} is a folder", hint=f"name a file: {os.path.join(target, 'kb-backup.db')}")
    if place.path and target == os.path.realpath(place.path):
        raise BadValue(f"{target} is the store itself", hint="give the copy another name")
    store.backup(target, progress)
    return Backup(target, os.path.getsize(target), store.catalog.count(), time.monotonic() - started)
