"""Regular expressions that are compiled when they are first used: a short command needs few of them."""

from __future__ import annotations

import re
from typing import Any, cast


class _Late:
    """Stands for a compiled pattern; each of its methods is looked up once, then called directly."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern like `re.compile`; all of them together would take a tenth of a quick search."""
    return cast("re.Pattern[str]", _Late(source, flags))
