"""Where in an HTML file a text begins: a forward search that no tag, entity or line break disturbs."""

from __future__ import annotations

import re
from bisect import bisect_right
from html import unescape

# Comments, elements whose content is no text, tags, text. `[^<>]` and `\Z` keep crafted input linear.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template)\b.*?(?:</\1\s*>|\Z)|<[/!?a-z][^<>]*>|([^<]+|<)",
    re.DOTALL | re.IGNORECASE,
)
_KEY = 40  # characters, spaces left out: enough to be unmistakable
_SHORT_KEY = 12  # tried when something hidden stands inside the long one
_NEAR = 2_000  # how far ahead a key that is not unmistakable is looked for
_MAX_MISSES = 2_000  # each costs a search to the end of the file


class SourceLines:
    """The text of an HTML file without its spaces, and the line that each part of it stands on."""

    def __init__(self, source: str) -> None:
        parts: list[str] = []
        self._starts: list[int] = []  # where in the text each part begins …
        self._lines: list[int] = []  # … and the line it stands on
        line, length = 1, 0
        for token in _TOKEN.finditer(source):
            for number, piece in enumerate(token[2].split("\n") if token[2] else ()):
                if part := "".join((unescape(piece) if "&" in piece else piece).split()):
                    parts.append(part)
                    self._starts.append(length)
                    self._lines.append(line + number)
                    length += len(part)
            line += token[0].count("\n")
        self._text = "".join(parts)
        self._cursor = 0
        self._misses = 0
        self._line = 1

    def line_of(self, text: str) -> int:
        """Return the line on which this text begins, looking on from the last one; its line if not found."""
        key = "".join(text[: 4 * _KEY].split())[:_KEY]
        at, length = self._find(key) if key and self._misses < _MAX_MISSES else (-1, 0)
        if at >= 0:
            self._cursor = at + length
            self._line = self._lines[bisect_right(self._starts, at) - 1]
        return self._line

    def _find(self, key: str) -> tuple[int, int]:
        near = self._cursor + _NEAR
        at = self._text.find(key, self._cursor, len(self._text) if len(key) > _SHORT_KEY else near)
        if at >= 0:
            return at, len(key)
        self._misses += 1
        return self._text.find(key[:_SHORT_KEY], self._cursor, near), min(len(key), _SHORT_KEY)
