"""Half a character: file names and JSON may hold lone surrogates, and UTF-8 has no form for one."""

from __future__ import annotations


def encodable(text: str) -> str:
    """Return a text that has a UTF-8 form; a lone surrogate becomes a question mark, so offsets stay."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
