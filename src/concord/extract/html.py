"""HTML by lexbor: a page's own content as Markdown, each line with the line of the file it comes from.

Blocks that only lead elsewhere are left out, such as tables of contents: they are short and full of titles,
so that searches had them first. Headings of boxes (Note, Tip, Warning) are no
sections: what follows the box would stand under "Note".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from concord.core.errors import Damaged, TooLarge
from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import Line, MarkdownLines, SourceLines
from concord.extract.picture import labels
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean
from concord.text.links import MOST_LINKS
from concord.text.word_lists import listed
from concord.types import Extracted, Json

MAX_BYTES = 10_000_000
MAX_DEPTH = 5_000  # the parser's time grows with the depth's square: 5,000 take 0.1 s, 100,000 take 25 s
MAX_TAGS = 30
_TOO_LARGE = f"is larger than {MAX_BYTES // 1_000_000} MB, the limit for HTML"
MAX_LAYOUT_DEPTH = 10  # tables inside tables inside tables: nobody's data

_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w:.-]{2,40})", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9-]*)[^<>]*>", re.IGNORECASE)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)

# Elements without an end tag, or whose next sibling ends them: an open one is not a level of depth.
_FLAT = listed(
    "area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody tfoot "
    "option optgroup colgroup rt rp"
)
_NOT_TEXT = listed(
    "head script style template noscript iframe object embed svg canvas audio video map datalist "
    "input button select textarea progress meter annotation annotation-xml"
)
_AROUND = frozenset({"nav", "aside"})
_AROUND_ROLES = frozenset(
    {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar"}
)
# The ¶ after a heading, and what leads past the navigation.
_ANCHOR_CLASS = re.compile(r"(?:^|\s)(?:headerlink|anchor-link|heading-anchor|hash-link|skip)")


class HtmlExtractor(Extractor):
    """Reads web pages."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        if len(data) > MAX_BYTES:
            raise TooLarge(_TOO_LARGE)
        source = with_plain_newlines(decode(data, _declared(data)))
        page = parsed(source)
        content = _content(page)
        lines = content.lines if content else []
        return Extracted(
            text=_cleaned(lines),
            type="html",
            title=_title(page),
            tags=_tags(page),
            details=_details(page),
            file_lines=_file_lines(lines, SourceLines(source)),
            links=tuple(content.links[:MOST_LINKS]) if content else (),
        )


def markdown_of(source: str, *, is_all_content: bool = False) -> str:
    """Return the content of a page inside another file, such as a mail: its own lines are never cited.

    A chapter of a book has nothing around its content: its headers are headings, its asides footnotes.
    """
    if len(source) > MAX_BYTES:
        raise TooLarge(_TOO_LARGE)
    content = _content(parsed(source), content_only=not is_all_content)
    return _cleaned(content.lines if content else [])


def parsed(source: str) -> LexborHTMLParser:
    """Return the elements of a page, if they are not too many inside each other."""
    if _depth(source) > MAX_DEPTH:
        raise Damaged(f"nests elements more than {MAX_DEPTH} deep")
    return LexborHTMLParser(source)


def _declared(data: bytes) -> str | None:
    found = _CHARSET.search(data, 0, 2048)
    return found[1].decode("ascii", "replace") if found else None


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


def _content(page: LexborHTMLParser, *, content_only: bool = True) -> _Walk | None:
    """Return the page as Markdown; all of it when nothing is left without what is around the content."""
    root = page.body or page.root
    if root is None:
        return None
    content = _Walk(root, content_only=True) if content_only else None
    return content if content and content.lines else _Walk(root, content_only=False)


class _Walk:
    """Goes through the elements in order, without recursion: depth costs memory, not stack."""

    def __init__(self, root: LexborNode, *, content_only: bool) -> None:
        self.links: list[tuple[str, str]] = []  # addresses and words, in order
        self._content_only = content_only
        self._beside = _beside_links(root) if content_only else frozenset()
        self._inside = 0  # of <main> and <article>: a header or footer there belongs to the content
        self._tables: list[bool] = []  # of each open table, whether it holds data
        self._page = MarkdownLines()
        pending: list[LexborNode | str] = [root]
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
        if tag == "svg":
            self._write_drawing(node)
        if tag in _NOT_TEXT or tag.startswith("-"):
            return False
        attributes = node.attributes
        if self._content_only and (self._is_around(tag, attributes) or self._is_navigation(node)):
            return False
        if tag in ("main", "article"):
            self._inside += 1
        if tag == "a" and (address := attributes.get("href")) and not address.startswith("#"):
            self.links.append((address, " ".join(node.text().split())))
        if tag == "table":
            self._tables.append(not self._is_layout(node))
        if self._tables and self._tables[-1] and (action := _OPEN_TABLE.get(tag)):
            action(self._page)
        elif _titles_a_box(node):
            self._page.open("p", {})
        else:
            self._page.open(tag, attributes)
        return True

    def _write_drawing(self, drawing: LexborNode) -> None:
        """Write the words in a drawing; an icon has none, or one."""
        said = labels(drawing)
        if len(said) > 1:
            self._page.open("p", {})
            self._page.text(" ".join(said))
            self._page.close("p")

    def _close(self, tag: str) -> None:
        if tag in ("main", "article"):
            self._inside -= 1
        if self._tables and self._tables[-1] and (action := _CLOSE_TABLE.get(tag)):
            action(self._page)
        else:
            self._page.close(tag)
        if tag == "table":
            self._tables.pop()

    def _is_around(self, tag: str, attributes: Mapping[str, str | None]) -> bool:
        if tag in _AROUND or (tag in ("header", "footer") and not self._inside):
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

    def _is_navigation(self, node: LexborNode) -> bool:
        return node.mem_id in self._beside or _leads_elsewhere(node)

    def _is_layout(self, table: LexborNode) -> bool:
        """Return whether a table is there for its looks: what holds tables or headings is no data."""
        if len(self._tables) >= MAX_LAYOUT_DEPTH:
            return True
        return len(table.css("table, h1, h2, h3, h4, h5, h6")) > 1  # it counts itself


_OPEN_TABLE = {
    "table": MarkdownLines.begin_table,
    "tr": MarkdownLines.begin_row,
    "td": MarkdownLines.begin_cell,
    "th": MarkdownLines.begin_cell,
}
_CLOSE_TABLE = {"tr": MarkdownLines.end_row, "td": MarkdownLines.end_cell, "th": MarkdownLines.end_cell}


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


def _title(page: LexborHTMLParser) -> str | None:
    title = _text_of(page, "head title") or _meta(page, "og:title") or _text_of(page, "h1")
    return title[:MAX_TITLE] or None


def _tags(page: LexborHTMLParser) -> tuple[str, ...]:
    words = (" ".join(word.split()) for word in _meta(page, "keywords").split(","))
    return tuple(dict.fromkeys(word for word in words if word))[:MAX_TAGS]


def _details(page: LexborHTMLParser) -> dict[str, Json]:
    found = {
        "description": _meta(page, "description") or _meta(page, "og:description"),
        "author": _meta(page, "author"),
        "language": _attribute(page, "html", "lang"),
    }
    return {key: value for key, value in found.items() if value}


def _text_of(page: LexborHTMLParser, selector: str) -> str:
    node = page.css_first(selector)
    return " ".join(node.text(deep=True, separator=" ").split()) if node is not None else ""


def _meta(page: LexborHTMLParser, name: str) -> str:
    return _attribute(page, f'meta[name="{name}" i], meta[property="{name}" i]', "content")


def _attribute(page: LexborHTMLParser, selector: str, name: str) -> str:
    node = page.css_first(selector)
    value = node.attributes.get(name) if node is not None else None
    return " ".join((value or "").split())


_LEADING_CLASSES = listed("nav-panel related navheader navfooter navigation nav toc")
_LEADING_BLOCKS = listed("p div table ul ol dl li td center section header footer")
_BOX_CLASSES = listed("note tip warning caution important admonition")
_HEADINGS = listed("h1 h2 h3 h4 h5 h6")
_RELATIONS = listed("next prev previous up index contents start")
_MOST_BESIDE_LINKS = 300  # characters
_MOST_IN_BOX = 200  # elements; what has more is a page


def _leads_elsewhere(node: LexborNode) -> bool:
    """Whether a block has the name of one that leads to other pages; what has a heading is content."""
    return (
        node.tag in _LEADING_BLOCKS
        and not _LEADING_CLASSES.isdisjoint(_words(node, "class"))
        and node.css_first(", ".join(_HEADINGS)) is None
    )


def _beside_links(root: LexborNode) -> frozenset[int]:
    """Return the blocks that hold links to the pages before, after and above, by `mem_id`."""
    around: dict[int, list[LexborNode]] = {}
    for link in root.css("a[rel]"):
        block = link.parent
        if block and block.tag in _LEADING_BLOCKS and not _RELATIONS.isdisjoint(_words(link, "rel")):
            around.setdefault(block.mem_id, []).append(link)
    return frozenset(key for key, links in around.items() if _are_all(links))


def _are_all(links: list[LexborNode]) -> bool:
    """Whether links are all that their block says, or several with little beside them."""
    block = links[0].parent
    most = _MOST_BESIDE_LINKS if len(links) > 1 else len(links[0].text().strip())
    return block is not None and len(block.text().strip()) <= most


def _titles_a_box(node: LexborNode) -> bool:
    """Whether an element is the only heading of a box, such as "Note"."""
    box = node.parent
    if node.tag not in _HEADINGS or box is None or _BOX_CLASSES.isdisjoint(_words(box, "class")):
        return False
    inside = [element.tag for element in islice(box.traverse(), _MOST_IN_BOX + 1)]
    return node.tag != "h1" and len(inside) <= _MOST_IN_BOX and sum(map(_HEADINGS.__contains__, inside)) == 1


def _words(node: LexborNode, attribute: str) -> list[str]:
    return (node.attributes.get(attribute) or "").lower().split()
