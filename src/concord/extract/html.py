"""HTML by lexbor: a page's own content as Markdown, each line with the line of the file it comes from; SVG.

Blocks that only lead elsewhere are left out, such as tables of contents: they are short and full of titles,
so that searches had them first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from selectolax.lexbor import LexborHTMLParser, LexborNode

from concord.core.errors import Damaged, TooLarge
from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import HEADINGS, Line, MarkdownLines, SourceLines
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean
from concord.text.links import MOST_LINKS
from concord.text.word_lists import listed
from concord.types import Extracted, Json

MAX_BYTES = 10_000_000
MAX_DEPTH = 5_000  # the parser's time grows with the depth's square: 5,000 take 0.1 s, 100,000 take 25 s
MAX_TAGS = 30
MAX_LAYOUT_DEPTH = 10  # tables inside tables inside tables: nobody's data
MAX_LABELS = 2_000  # of one drawing

_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w:.-]{2,40})", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)[^<>]*>", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]{2}")

# Elements without an end tag, or whose next sibling ends them: an open one is not a level of depth.
_FLAT = listed(
    "area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot "
    "option optgroup colgroup rt rp"
)
_NOT_TEXT = listed(
    "head script style template noscript iframe object embed svg canvas audio video map datalist "
    "input button select textarea progress meter annotation annotation-xml"
)
_AROUND_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar"}
)
# The ¶ after a heading, and what leads past the navigation.
_ANCHOR_CLASS = re.compile(r"(?:^|\s)(?:headerlink|anchor-link|heading-anchor|hash-link|skip)")
_OF_TABLES = ("table", "tr", "td", "th")
_LEADING_CLASSES = listed("nav-panel related navheader navfooter navigation nav toc")
_LEADING_BLOCKS = listed("p div table ul ol dl li td center section header footer")


class HtmlExtractor(Extractor):
    """Reads web pages."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        declared = _CHARSET.search(data, 0, 2048)
        source = with_plain_newlines(
            decode(data, declared[1].decode("ascii", "replace") if declared else None)
        )
        page = parsed(source)
        content = _content(page)
        details: dict[str, Json] = {
            "description": _meta(page, "description") or _meta(page, "og:description"),
            "author": _meta(page, "author"),
            "language": _attribute(page, "html", "lang"),
        }
        title = _text_of(page, "head title") or _meta(page, "og:title") or _text_of(page, "h1")
        tags = (" ".join(word.split()) for word in _meta(page, "keywords").split(","))
        return Extracted(
            text=_cleaned(content.lines),
            type="html",
            title=title[:MAX_TITLE] or None,
            tags=tuple(dict.fromkeys(filter(None, tags)))[:MAX_TAGS],
            details={key: value for key, value in details.items() if value},
            file_lines=_file_lines(content.lines, SourceLines(source)),
            links=tuple(content.links[:MOST_LINKS]),
        )


def markdown_of(source: str, *, is_all_content: bool = False) -> str:
    """Return the content of a page inside another file, such as a mail: its own lines are never cited.

    A chapter of a book has nothing around its content: its headers are headings, its asides footnotes.
    """
    return _cleaned(_content(parsed(source), content_only=not is_all_content).lines)


def parsed(source: str) -> LexborHTMLParser:
    """Return the elements of a page, if they are not too many, nor too many inside each other."""
    if len(source) > MAX_BYTES:
        raise TooLarge(f"is larger than {MAX_BYTES // 1_000_000} MB, the limit for HTML")
    if _depth(source) > MAX_DEPTH:
        raise Damaged(f"nests elements more than {MAX_DEPTH} deep")
    return LexborHTMLParser(source)


def _depth(source: str) -> int:
    """Return about how deep elements nest; never less than what costs the parser its time."""
    if source.count("<") <= MAX_DEPTH:
        return 0
    depth = deepest = 0
    for tag in _TAG.finditer(source):
        if tag[2].lower() not in _FLAT:
            depth = depth + 1 if not tag[1] else max(0, depth - 1)
            deepest = max(deepest, depth)
    return deepest


def _content(page: LexborHTMLParser, *, content_only: bool = True) -> _Walk:
    """Return the page as Markdown; all of it when nothing is left without what is around the content."""
    root = page.body or page.root
    content = _Walk(root, content_only=content_only)
    return content if content.lines or not content_only else _Walk(root, content_only=False)


class _Walk:
    """Goes through the elements in order, without recursion: depth costs memory, not stack."""

    def __init__(self, root: LexborNode | None, *, content_only: bool) -> None:
        self.links: list[tuple[str, str]] = []  # addresses and words, in order
        self._content_only = content_only
        self._inside = 0  # of <main> and <article>: a header or footer there belongs to the content
        self._tables: list[bool] = []  # of each open table, whether it holds data
        self._page = MarkdownLines()
        pending: list[LexborNode | str] = [root] if root is not None else []
        while pending:
            item = pending.pop()
            if isinstance(item, str):
                self._close(item)
            elif (text := item.text_content) is not None:
                self._page.text(text)
            elif self._open(item):
                pending.append(item.tag or "")
                pending.extend(reversed(list(item.iter(include_text=True))))
        self._page.end_block()
        self.lines = self._page.lines

    def _open(self, node: LexborNode) -> bool:
        """Begin an element; return whether to go inside."""
        tag = node.tag or ""
        if tag == "svg" and len(said := labels(node)) > 1:  # an icon has no words, or one
            self._page.open("p", {})
            self._page.text(" ".join(said))
            self._page.close("p")
        if tag in _NOT_TEXT or tag.startswith("-"):
            return False
        attributes = node.attributes
        if self._content_only and (self._is_around(tag, attributes) or _leads_elsewhere(node)):
            return False
        self._inside += tag in ("main", "article")
        if tag == "a" and (address := attributes.get("href")) and not address.startswith("#"):
            self.links.append((address, " ".join(node.text().split())))
        if tag == "table":
            self._tables.append(not self._is_layout(node))
        self._page.open(self._written_as(tag), attributes)
        return True

    def _close(self, tag: str) -> None:
        self._inside -= tag in ("main", "article")
        self._page.close(self._written_as(tag))
        if tag == "table":
            self._tables.pop()

    def _written_as(self, tag: str) -> str:
        """Return a tag, or that of any block for a part of a table which is there for its looks."""
        return "div" if tag in _OF_TABLES and not (self._tables and self._tables[-1]) else tag

    def _is_around(self, tag: str, attributes: Mapping[str, str | None]) -> bool:
        if tag in ("nav", "aside") or (tag in ("header", "footer") and not self._inside):
            return True
        if not attributes or tag in ("html", "body"):
            return False
        if "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if attributes.get("role") in _AROUND_ROLES and not self._inside:
            return True
        if tag == "a" and _ANCHOR_CLASS.search(attributes.get("class") or ""):
            return True
        return bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))

    def _is_layout(self, table: LexborNode) -> bool:
        """Return whether a table is there for its looks: what holds tables or headings is no data."""
        if len(self._tables) >= MAX_LAYOUT_DEPTH:
            return True
        return len(table.css("table, h1, h2, h3, h4, h5, h6")) > 1  # it counts itself


def _leads_elsewhere(node: LexborNode) -> bool:
    """Whether a block has the name of one that leads to other pages; what has a heading is content."""
    return (
        node.tag in _LEADING_BLOCKS
        and not _LEADING_CLASSES.isdisjoint((node.attributes.get("class") or "").lower().split())
        and node.css_first(", ".join(HEADINGS)) is None
    )


def _cleaned(lines: list[Line]) -> str:
    return clean("\n".join(line.text for line in lines))


def _file_lines(lines: list[Line], source: SourceLines) -> tuple[int, ...]:
    """Return the file's line for each line; those without words of their own go with a neighbour."""
    numbers: list[int] = []
    last = 1
    waiting = 0  # lines that go with the next one
    for line in lines:
        if line.origin == "":
            waiting += 1
            continue
        last = source.line_of(line.origin) if line.origin else last
        numbers.extend([last] * (waiting + 1))
        waiting = 0
    return tuple(numbers + [last] * waiting)


def _text_of(page: LexborHTMLParser, selector: str) -> str:
    node = page.css_first(selector)
    return _words(node) if node is not None else ""


def _words(node: LexborNode) -> str:
    return " ".join(node.text(deep=True, separator=" ").split())


def _meta(page: LexborHTMLParser, name: str) -> str:
    return _attribute(page, f'meta[name="{name}" i], meta[property="{name}" i]', "content")


def _attribute(page: LexborHTMLParser, selector: str, name: str) -> str:
    node = page.css_first(selector)
    value = node.attributes.get(name) if node is not None else None
    return " ".join((value or "").split())


class DrawingExtractor(Extractor):
    """Reads .svg; lines are those that `kb get` shows, because one of the file may be all of it."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        root = parsed(with_plain_newlines(decode(data))).css_first("svg")
        if root is None:
            return Extracted("", "image")
        described = [words for node in root.css("title, desc") if (words := _words(node))]
        said = dict.fromkeys([*described, *labels(root)])
        title = described[0][:MAX_TITLE] if described else None
        return Extracted(clean("\n".join(said)), "image", title)


def labels(drawing: LexborNode) -> list[str]:
    """Return the words that are written in an SVG drawing, each once; numbers along an axis are none."""
    said = map(_words, drawing.css("text, foreignObject"))
    return [*dict.fromkeys(label for label in said if _LETTERS.search(label))][:MAX_LABELS]
