"""A part of a document as HTML: Markdown rendered with HTML off, code highlighted, anything else as lines.

Blocks tell their lines (`data-first`, `data-last`), so that a passage can be marked. A long document is sent in
windows, which begin and end where no block is cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from concord.reading.locate import joined, locate, slice_of
from concord.wire import JsonObject, document_to_json, slice_to_json

if TYPE_CHECKING:
    from concord.knowledge import KnowledgeBase
    from concord.reading.locate import Located

WINDOW = 60_000  # characters of text that are rendered at once: a tenth of a second
LONGEST_LINE = 8_000  # a longer one is broken, and the lines of that document are not numbered
PROSE = frozenset({"markdown", "html", "office", "note"})  # what is Markdown once it is read
_LONG = re.compile(rf"[^\n]{{{LONGEST_LINE}}}")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LINK = re.compile(r"(?:https?|mailto):|(?![a-z][a-z0-9+.-]*:|[/\\]{2})", re.IGNORECASE)


class Lines(NamedTuple):
    """The lines of a document's text, and the first and last of a passage, counted from 0."""

    lines: Sequence[str]
    first: int
    last: int
    is_numbered: bool


def rendered(
    kb: KnowledgeBase, citation: str, *, start: int | None = None, end: int | None = None, raw: bool = False
) -> JsonObject:
    """Return the window around a passage, the one that starts at a line, or the one that ends before one.

    Raises:
        NotFound: nothing of that name is indexed.
        BadValue: the name fits several documents.
    """
    located = locate(citation, kb.store.catalog)
    document, text = located.document, _lines(located)
    base = located.chunks[0].start_line if text.is_numbered else 1  # the number of the first line
    is_prose = document.type in PROSE and not raw
    cuts = _cuts(text.lines) if is_prose else range(len(text.lines) + 1)
    first, last = _window(text, cuts, start and start - base, end and end - base)
    part = text.lines[first:last]
    is_part = len(located.chunks) > located.last - located.first + 1
    return {
        **document_to_json(document, located.source),
        **{key: value for key, value in slice_to_json(slice_of(located)).items() if key != "text"},
        "pages_total": document.details.get("pages"),
        "kind": "prose" if is_prose else "lines",
        "numbered": text.is_numbered,
        "first": first + base,
        "last": last - 1 + base,
        "lines": len(text.lines) - 1 + base,
        "passage": [text.first + base, text.last + base] if is_part else None,
        "html": _prose(part, first + base)
        if is_prose
        else _code(part, first + base, "" if raw else document.path),
    }


def _lines(located: Located) -> Lines:
    whole = joined(located.chunks)
    up_to_first = joined(located.chunks[: located.first + 1])
    before = up_to_first[: len(up_to_first) - len(located.chunks[located.first].text)]
    up_to_last = joined(located.chunks[: located.last + 1])
    counts = [_broken(part).count("\n") for part in (before, up_to_last)]
    broken = _broken(whole)
    return Lines(broken.split("\n"), counts[0], counts[1], is_numbered=len(broken) == len(whole))


def _broken(text: str) -> str:
    return _LONG.sub("\\g<0>\n", text)


def _cuts(lines: Sequence[str]) -> list[int]:
    """Return the lines before which Markdown can be cut: after a blank one, outside of fences."""
    cuts, fence = [0], ""
    for at, line in enumerate(lines):
        if mark := _FENCE.match(line):
            closes = fence and mark[1][0] == fence[0] and len(mark[1]) >= len(fence)
            fence = "" if closes else fence or mark[1]
        elif not fence and at and not lines[at - 1].strip() and line[:1].strip():
            cuts.append(at)
    return [*cuts, len(lines)]


def _window(text: Lines, cuts: Sequence[int], start: int | None, end: int | None) -> tuple[int, int]:
    """Return the first line of a window, and the one after its last."""
    count = len(text.lines)
    if end is not None:
        last = min(max(end, 0), count)
        return _cut_before(cuts, _back(text.lines, last, WINDOW)), last
    first = start if start is not None else _cut_before(cuts, _back(text.lines, text.first, WINDOW // 3))
    first, size = min(max(first, 0), count), 0
    for last in range(first, count):
        size += len(text.lines[last]) + 1
        if size > WINDOW:
            return first, next(cut for cut in cuts if cut > last)
    return first, count


def _back(lines: Sequence[str], at: int, size: int) -> int:
    while at > 0 and size > 0:
        at -= 1
        size -= len(lines[at]) + 1
    return at


def _cut_before(cuts: Sequence[int], at: int) -> int:
    return max(cut for cut in cuts if cut <= at)


def _prose(lines: Sequence[str], number: int) -> str:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False, "highlight": _highlighted})
    markdown.enable(["table", "strikethrough"])
    markdown.validateLink = lambda url: bool(_LINK.match(url))  # type: ignore[method-assign]
    markdown.add_render_rule("image", _image)
    tokens = markdown.parse("\n".join(lines))
    for token in tokens:
        if token.map and token.nesting >= 0:
            token.attrSet("data-first", str(token.map[0] + number))
            token.attrSet("data-last", str(max(token.map[1], token.map[0] + 1) - 1 + number))
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def _image(renderer: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    """Tell of an image, and load none: reading a document tells nobody."""
    return f'<span class="image">{escape(tokens[at].content or "image")}</span>'


def _code(lines: Sequence[str], number: int, path: str) -> str:
    html = _highlighted("\n".join(lines), path, "").split("\n")
    rows = zip(html, range(number, number + len(html)), strict=True)
    return "".join(f'<span data-first="{at}" data-last="{at}">{line}</span>' for line, at in rows)


def _highlighted(code: str, name: str, attributes: str) -> str:
    """Highlight code whose language or file is known; its lines stay what they are."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        find = get_lexer_for_filename if "." in name else get_lexer_by_name
        lexer = find(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))
