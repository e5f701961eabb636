"""Where is what was fitted for an embedding model? The user's own fit first, then the one that ships."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path

from concord.config import Paths
from concord.errors import BadValue
from concord.ranking.calibrate import Calibration, dump, load, model_key
from concord.types import Identity

SHIPPED = Path(__file__).parent.parent / "data"


def find_calibration(identity: Identity, paths: Paths) -> Calibration | None:
    """Return the calibration for a model; None when none was fitted, and scores are then stand-ins."""
    return _find(paths.data, identity) or shipped_calibration(identity)


def shipped_calibration(identity: Identity) -> Calibration | None:
    """Return the calibration that ships for a model, if one does."""
    return _find(str(SHIPPED), identity)


def save_calibration(calibration: Calibration, identity: Identity, folder: Path) -> Path:
    """Write a calibration where `find_calibration` looks for it, whole or not at all; return the file.

    Raises:
        BadValue: the folder cannot be written to.
    """
    from concord.durable import replace_file  # late: a search only reads

    path = Path(_path(str(folder), identity))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # a store may be made in it later
        replace_file(path, (json.dumps(dump(calibration), indent=1) + "\n").encode())
    except OSError as fault:
        raise BadValue(f"cannot write {path}: {fault}", hint="make room, or set KB_HOME elsewhere") from fault
    _read.cache_clear()  # two fits within one tick of the clock are of the same time
    return path


def file_name(identity: Identity) -> str:
    """Return the name of the file that holds a model's calibration."""
    safe = "".join(c if c.isalnum() or c in "-." else "_" for c in model_key(identity))
    return f"calibration-{safe}.json"


@lru_cache(maxsize=8)
def _path(folder: str, identity: Identity) -> str:
    return os.path.join(folder, file_name(identity))


def _find(folder: str, identity: Identity) -> Calibration | None:
    path = _path(folder, identity)
    try:
        status = os.stat(path)
        found = _read(path, status.st_mtime_ns, status.st_size)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="mend or remove the file") from fault
    return found if found.model == model_key(identity) else None


@lru_cache(maxsize=8)
def _read(path: str, mtime_ns: int, size: int) -> Calibration:
    """Return what a file of this time and size holds: servers run for days, and others fit anew meanwhile."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        return load(json.loads(text))
    except json.JSONDecodeError as fault:
        raise BadValue(f"{path} is not JSON: {fault}", hint="fit it anew with `kb calibrate`") from fault
