"""How text is put together for an index, all in one place: a chunk under its title, a note of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from concord.types import Document, Json

# Bytes, because the tokens of a byte-level model are bounded by them: room for a title and a few headings.
# Of 7,153 texts with headers (Kubernetes' documentation, the standard library, Chinese paragraphs), in chunks
# of at most 448 tokens, the longest had 481 tokens; the model's window holds 510.
MAX_HEADER_BYTES = 280
_MAX_TITLE_BYTES = 200
_MAX_LABEL_BYTES = 80
_SEPARATOR = " > "


def embeddable_text(title: str, heading: Sequence[str], text: str, tags: Sequence[str] = ()) -> str:
    """Return what is embedded for a chunk: a short header that says where it stands, then its text.

    Tags are those of a note, and come last.
    """
    header = _header(_path(title, _unsaid(heading, text)))
    labels = _cut(" ".join(f"#{tag}" for tag in tags), _MAX_LABEL_BYTES)
    return "\n\n".join(part for part in (header, text, labels) if part)


def embedded_tags(document: Document) -> tuple[str, ...]:
    """Return the tags that are embedded with each text of a document: a note's own, and none of a file's."""
    return document.tags if document.type == "note" else ()


def _path(title: str, heading: Sequence[str]) -> list[str]:
    parts = [" ".join(part.split()) for part in (title, *heading)]
    parts = [part for part in parts if part]
    repeated = [part.casefold() == before.casefold() for before, part in pairwise(parts)]
    return parts[:1] + [part for part, again in zip(parts[1:], repeated, strict=True) if not again]


def _unsaid(heading: Sequence[str], text: str) -> Sequence[str]:
    """Return the headings without the last where the text begins with it.

    Said twice, the name of a section or a function hides what it is about.
    """
    first_line = text.lstrip().partition("\n")[0].casefold()
    return heading[:-1] if heading and heading[-1].casefold() in first_line else heading


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


class NoteText(NamedTuple):
    """All that is said in a note, in the order in which it is read and embedded."""

    content: str
    summary: str = ""
    context: str = ""
    highlights: Sequence[str] = ()
    aliases: Sequence[str] = ()
    details: Mapping[str, Json] = {}


def note_text(note: NoteText) -> str:
    """Return the one text of a note, which is cut, searched by words and embedded; empty if it says nothing.

    Title and tags are not in it: both indexes know them for every chunk.
    """
    said = [
        note.summary,
        note.content,
        note.context,
        "\n".join(f"- {one.strip()}" for one in note.highlights if one.strip()),
        ", ".join(one.strip() for one in note.aliases if one.strip()),
        "\n".join(detail_lines(note.details)),
    ]
    return "\n\n".join(part.strip() for part in said if part.strip())


def detail_lines(value: Json, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every value inside nested details on a line of its own, after the names that lead to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from detail_lines(inner, (*path, str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from detail_lines(inner, path)
    elif value is not None and str(value).strip():
        shown = str(value).lower() if isinstance(value, bool) else str(value).strip()
        yield f"{' '.join(path)}: {shown}" if path else shown
