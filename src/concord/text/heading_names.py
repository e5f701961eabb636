"""Is a heading the name of something, as manuals write it: alone, with its parameters, or with its owner?

Such headings are `bodyLimit`, `connection()`, `fs.readFile(path[, options], callback)` and `.hijack()`.
"""

from __future__ import annotations

import re
from functools import lru_cache


def is_heading_of(name: str, owner: str, heading: str) -> bool:
    """Whether a heading is a name; of a name with an owner (`fs`, of `fs.readFile`) no other may be there."""
    return name in heading and _form(name, owner).fullmatch(heading) is not None


def headed_at(name: str, owner: str, text: str) -> int | None:
    """Return where in a chunk of several sections that one begins whose heading is a name."""
    if name not in text:
        return None
    from concord.text.headings import (
        heading_lines,
        line_words,  # late: few passages that are read have headings inside
    )

    found = (
        start for start, end in heading_lines(text) if is_heading_of(name, owner, line_words(text[start:end]))
    )
    return next(found, None)


@lru_cache(maxsize=16)
def _form(name: str, owner: str) -> re.Pattern[str]:
    owners = rf"(?:[\w$.:]*(?<![\w$]){re.escape(owner)})?" if owner else r"[\w$.:#]*"
    return re.compile(rf"(?:{owners}(?:\.|::|->|#))?{re.escape(name)}(?:\(.*\))?:?")
