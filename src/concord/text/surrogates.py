"""Half a character: file names and JSON may hold lone surrogates, and UTF-8 has no form for one.

Text that is stored gets the replacement character instead, which says that something is lost there and ends
no sentence. Text that is only sent or shown gets a question mark, as names of files do in a terminal. Both
replace one character by one, so that offsets stay.
"""

from __future__ import annotations

from concord.text.tokens import pattern

_LONE = pattern(r"[\ud800-\udfff]")


def without_lone_surrogates(text: str) -> str:
    """Return a text that can be stored."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


def encodable(text: str) -> str:
    """Return a text that can be sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
