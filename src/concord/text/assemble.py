"""How a chunk is presented to an index: the one place where title, heading path and text are put together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

# Bytes, because the tokens of a byte-level model are bounded by them: room for a title and a few headings.
# Of 7,153 texts with headers (Kubernetes' documentation, the standard library, Chinese paragraphs), in chunks
# of at most 448 tokens, the longest had 481 tokens; the model's window holds 510.
MAX_HEADER_BYTES = 280
_MAX_TITLE_BYTES = 200
_SEPARATOR = " > "


def embeddable_text(title: str, heading: Sequence[str], text: str) -> str:
    """Return what is embedded for a chunk: a short header that says where it stands, then its text."""
    header = _header(_path(title, heading))
    return f"{header}\n\n{text}" if header else text


def searchable_title(title: str, heading: Sequence[str]) -> str:
    """Return what the lexical index holds as the title of a chunk: title and headings, none of them twice."""
    return _SEPARATOR.join(_path(title, heading))


def _path(title: str, heading: Sequence[str]) -> list[str]:
    parts = [" ".join(part.split()) for part in (title, *heading)]
    parts = [part for part in parts if part]
    repeated = [part.casefold() == before.casefold() for before, part in pairwise(parts)]
    return parts[:1] + [part for part, again in zip(parts[1:], repeated, strict=True) if not again]


def _header(path: list[str]) -> str:
    """Join a path within the limit: the title says what it is about and the last headings what in it."""
    if not path:
        return ""
    kept = [_cut(path[0], _MAX_TITLE_BYTES)]
    room = MAX_HEADER_BYTES - _bytes(kept[0])
    inner: list[str] = []
    for part in reversed(path[1:]):
        room -= len(_SEPARATOR)
        if not inner:
            part = _cut(part, room)
        room -= _bytes(part)
        if room < 0:
            break
        inner.append(part)
    return _SEPARATOR.join(kept + inner[::-1])


def _cut(text: str, limit: int) -> str:
    """Shorten to a number of bytes, at a space where there is one in the second half."""
    data = text.encode(errors="surrogatepass")
    if len(data) <= limit:
        return text
    short = data[: limit - len("…".encode())].decode(errors="ignore")
    head = short.rpartition(" ")[0]
    return (head if 2 * len(head) >= len(short) else short).rstrip() + "…"


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
