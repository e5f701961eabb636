"""A part of a document as HTML: Markdown with HTML off, highlighted code, anything else as lines.

Blocks tell their lines (`data-first`, `data-last`), so that a passage can be marked. Of a long document a
window is sent, which begins and ends where no block is cut.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from concord.reading.locate import Located, joined, locate, slice_of
from concord.text.json_safe import JsonObject
from concord.wire import document_to_json, slice_to_json

if TYPE_CHECKING:
    from concord.store.contract import Catalog

WINDOW = 60_000  # characters that are rendered at once: a tenth of a second
LONGEST_LINE = 8_000  # a longer one is broken, and the lines of that document have no numbers of the file
PROSE = frozenset(
    {"markdown", "html", "office", "note", "mail", "notebook"}
)  # what is Markdown once it has been read
_LONG = re.compile(rf"[^\n]{{{LONGEST_LINE}}}")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LINK = re.compile(r"(?:https?|mailto):|(?![a-z][a-z0-9+.-]*:|[/\\]{2})", re.IGNORECASE)


def rendered(catalog: Catalog, citation: str, *, start: int | None = None, raw: bool = False) -> JsonObject:
    """Return the window around a passage, or the one that starts at a line.

    Raises:
        NotFound: nothing of that name is indexed.
        BadValue: the name fits several documents.
    """
    located = locate(citation, catalog)
    document, chunks = located.document, located.chunks
    whole = joined(chunks)
    text = _LONG.sub("\\g<0>\n", whole)
    lines, base = text.split("\n"), chunks[0].start_line if text == whole else 1
    passage = _passage(located)
    is_prose = document.type in PROSE and not raw
    cuts = frozenset(_cuts(lines)) if is_prose else range(len(lines))
    first, last = _window(lines, cuts, passage[0], start and start - base)
    part, number = lines[first:last], first + base
    return {
        **document_to_json(document, located.source),
        **{key: value for key, value in slice_to_json(slice_of(located)).items() if key != "text"},
        "pages_total": document.details.get("pages"),
        "kind": "prose" if is_prose else "lines",
        "first": number,
        "last": last - 1 + base,
        "lines": len(lines) - 1 + base,
        "passage": [at + base for at in passage] if located.last - located.first + 1 < len(chunks) else None,
        "html": _prose(part, number) if is_prose else _numbered(part, number, "" if raw else document.path),
    }  # fmt: skip


def _passage(located: Located) -> tuple[int, int]:
    """Return the first and the last line of what was located, counted from 0 in the text of the document."""
    chunks = located.chunks
    up_to_first, up_to_last = joined(chunks[: located.first + 1]), joined(chunks[: located.last + 1])
    before = up_to_first[: len(up_to_first) - len(chunks[located.first].text)]
    first, last = (_LONG.sub("\\g<0>\n", part).count("\n") for part in (before, up_to_last))
    return first, last


def _cuts(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines before which Markdown can be cut: after a blank one, outside of fences."""
    fence = ""
    for at, line in enumerate(lines):
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        elif not fence and at and not lines[at - 1].strip() and line[:1].strip():
            yield at


def _window(lines: Sequence[str], cuts: Container[int], passage: int, start: int | None) -> tuple[int, int]:
    """Return the first line of a window and the one after its last; it is longer where nothing can be cut."""
    first, size = (passage, 0) if start is None else (min(max(start, 0), len(lines)), WINDOW)
    while first > 0 and size < WINDOW and not (size > WINDOW // 3 and first in cuts):
        first -= 1
        size += len(lines[first]) + 1
    size = 0
    for end in range(first + 1, len(lines)):
        size += len(lines[end - 1]) + 1
        if end > passage and size > WINDOW and (end in cuts or size > 2 * WINDOW):
            return first, end
    return first, len(lines)


def _prose(lines: Sequence[str], number: int) -> str:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted})
    markdown.enable(["table", "strikethrough"])
    markdown.validateLink = lambda url: bool(_LINK.match(url))  # type: ignore[method-assign]
    markdown.add_render_rule("image", _image)
    tokens = markdown.parse("\n".join(lines))
    for token in tokens:
        if token.map and token.nesting >= 0:
            first, end = token.map
            token.attrs |= {"data-first": first + number, "data-last": max(end - 1, first) + number}
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _image(renderer: Any, tokens: Sequence[Any], at: int, *_: Any) -> str:
    """Name an image, and load none: what is read is told to nobody."""
    return f"<em>{escape(tokens[at].content or 'image')}</em>"


def _numbered(lines: Sequence[str], number: int, path: str) -> str:
    html = enumerate(_highlighted("\n".join(lines), path).split("\n"), number)
    return "".join(f'<span data-first="{at}" data-last="{at}">{line}</span>' for at, line in html)


def _highlighted(code: str, name: str, *_: Any) -> str:
    """Highlight code whose language or file is known; its lines stay what they are."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    find = get_lexer_for_filename if "." in name else get_lexer_by_name
    try:
        return str(highlight(code, find(name, stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True)))
    except ClassNotFound:
        return escape(code)
