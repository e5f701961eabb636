"""Where is what was fitted for an embedding model? The user's own fit first, then the one that ships."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from concord.config import Paths
from concord.errors import BadValue
from concord.ranking.calibrate import Calibration, load, model_key
from concord.types import Identity

SHIPPED = Path(__file__).parent / "data"


def find_calibration(identity: Identity, paths: Paths) -> Calibration | None:
    """Return the calibration for a model; None when none was fitted, and scores are then stand-ins."""
    for folder in (paths.data, SHIPPED):
        found = _read(folder / file_name(identity))
        if found is not None and found.model == model_key(identity):
            return found
    return None


def file_name(identity: Identity) -> str:
    """Return the name of the file that holds a model's calibration."""
    safe = "".join(c if c.isalnum() or c in "-." else "_" for c in model_key(identity))
    return f"calibration-{safe}.json"


@lru_cache(maxsize=8)
def _read(path: Path) -> Calibration | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise BadValue(f"cannot read {path}: {fault}", hint="mend or remove the file") from fault
    try:
        return load(json.loads(text))
    except json.JSONDecodeError as fault:
        raise BadValue(f"{path} is not JSON: {fault}", hint="fit it anew with `kb calibrate`") from fault
