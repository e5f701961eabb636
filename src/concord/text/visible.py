"""Text made safe to look at: characters that steer a terminal or hide from a reader are written out.

What is indexed may come from strangers. An escape sequence in it must not move the cursor, and a mark that
turns the direction of text must not make a passage read as something else.
"""

from __future__ import annotations

import re
from functools import cache

# Delete and the C1 controls, marks of direction, separators of lines, invisible operators and tags.
# Zero-width joiners stay: emoji and several scripts are spelt with them.
HIDDEN = (
    "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)


def one_line(text: str) -> str:
    """Return text that stays on its line: line ends and other controls are spelt out."""
    return text if text.isprintable() else _pattern(f"[\x00-\x1f{HIDDEN}]").sub(_spelt, text)


def lines(text: str) -> str:
    """Return text whose tabs and line ends work and whose other controls are spelt out."""
    return _pattern(f"[\x00-\x08\x0b-\x1f{HIDDEN}]").sub(_spelt, text.replace("\r\n", "\n"))


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source)  # late: most text needs none, and compiling takes longer than printing


def _spelt(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
