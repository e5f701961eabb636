"""What does a text link to, and what is a document called by those that link to it?

A link names a document by a place (`../auth.md`, `/guide/auth`, `import concord.store`) or by a name
(`[[Auth]]`). For either there is one name that is looked up: of a place within the source the path without
its ending, else the words of its last part. `fitting` then chooses among the documents that have the name.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from concord.text.headings import MARKDOWN_TYPES, heading_words
from concord.text.tokens import folded, pattern
from concord.text.word_lists import listed
from concord.types import Extracted, Json, Link, LinkKind, Piece

LONGEST_TARGET = 300  # characters: no path that people write is longer
LONGEST_NAME = 150
MOST_SHARING = 100  # documents with one name: it says nothing any more
MOST_LINKS = 2_000  # of a document: what has more is a list of addresses

_INDEXES = frozenset({"index", "_index", "readme", "__init__", "mod"})  # files that stand for their folder
_ELSEWHERE = pattern(r"[a-z][a-z0-9+.-]*:|//|#|$", re.IGNORECASE)
_PAGE = pattern(r"\.(?:md|mdx|markdown|html?|org|rst|txt|adoc|ipynb)$", re.IGNORECASE)
_PICTURE = pattern(r"\.(?:png|jpe?g|gif|webp|bmp|tiff?|svg)$", re.IGNORECASE)
_GO_FILE = pattern(r"\.go$")
_ENDING = pattern(r"\.[A-Za-z]\w{0,9}$")
_ESCAPED = pattern(r"(?:%[0-9A-Fa-f]{2})+")
_QUALIFIED = pattern(r"\s*\([^()]*\)\s*$")  # Mercury (planet)

_FENCED = pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_CODE = pattern(r"`[^`\n]{1,300}`")
_MARKDOWN = pattern(r"\[([^\[\]\n]{0,300})\]\(\s*<?([^)\s>]{1,300})")  # also of a picture
_REFERENCE = pattern(r"(?<![!\]])\[([^\[\]\n]{1,300})\](?:\[([^\[\]\n]{0,100})\])?(?![(:\[])")
_DEFINITION = pattern(r"^ {0,3}\[([^\[\]\n]{1,100})\]:[ \t]*<?([^\s>]{1,300})", re.MULTILINE)
_ANCHOR = pattern(
    r"<(?:a|img)\s[^<>]{0,300}?(?:href|src)=[\"']([^\"'<>]{1,300})[\"'][^<>]{0,300}>([^<\n]{0,300})",
    re.IGNORECASE,
)
_WIKI = pattern(r"\[\[([^\[\]\n|]{1,200})(?:\|([^\[\]\n]{0,300}))?\]\]")
_ORG = pattern(r"\[\[(?:file:)?([^\[\]\n]{1,300}?)(?:::[^\[\]\n]*)?\](?:\[([^\[\]\n]{1,300})\])?\]")
_RELATIONS = listed(
    "related see_also seealso parent up next prev previous children depends_on requires part_of"
)


class Placed(NamedTuple):
    """A link and where it stands in the text."""

    start: int
    link: Link


class Named(NamedTuple):
    """What a document is called."""

    name: str  # that is looked up
    title: str = ""  # as it is written, if texts mention the document so

    @property
    def opening(self) -> str:
        """The first two words of a title: where a text may mention it."""
        return " ".join(self.name.split(" ", 2)[:2]) if self.title else ""


class Meant(NamedTuple):
    """What a link means: a name to look up, and the place that it gives, if it gives one."""

    name: str
    place: str = ""


def with_links(extracted: Extracted, pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces with what each links to; relations of the front matter are those of the first."""
    starts = [piece.start for piece in pieces]
    held: dict[int, list[Link]] = {0: list(relations(extracted.details))} if pieces else {}
    for start, link in links_in(extracted):
        held.setdefault(max(0, bisect_right(starts, start) - 1), []).append(link)
    return [
        replace(piece, links=tuple(dict.fromkeys(held[at]))) if held.get(at) else piece
        for at, piece in enumerate(pieces)
    ]


def links_in(extracted: Extracted) -> list[Placed]:
    """Return what a text links to, in order: pages of the web are left out."""
    text = extracted.text
    if extracted.type == "code":
        found = _imports(text, extracted.language or "")
    elif extracted.links:
        found = _at_their_words(text, extracted.links)
    elif "[" not in text and "<a" not in text and "<img" not in text:
        return []
    elif extracted.language == "org":
        found = (Placed(m.start(), Link("link", m[1], m[2] or m[1])) for m in _ORG.finditer(text))
    elif extracted.type in MARKDOWN_TYPES:
        found = _in_markdown(text)
    else:
        return []
    links = (placed for placed in found if not _ELSEWHERE.match(placed.link.target))
    return sorted(set(links))[:MOST_LINKS]


def relations(details: Mapping[str, Json]) -> Iterator[Link]:
    """Yield what front matter links to: what stands in brackets, and all that fields for relations hold."""
    for field, value in details.items():
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, str) or not 0 < len(item) <= LONGEST_TARGET:
                continue
            links = [(m[1] or m[0]).strip() for m in _WIKI.finditer(item)]
            links = links or [m[2] for m in _MARKDOWN.finditer(item)]
            if not links and field.casefold().replace("-", "_").replace(" ", "_") in _RELATIONS:
                links = [item]
            yield from (Link("relation", link, field) for link in links if not _ELSEWHERE.match(link))


def _in_markdown(text: str) -> Iterator[Placed]:
    for listing in (_FENCED, _CODE) if "`" in text or "~~~" in text else ():  # there brackets are no links
        text = listing.sub(lambda m: "\n".join(" " * len(line) for line in m[0].split("\n")), text)
    for m in _MARKDOWN.finditer(text):
        yield Placed(m.start(), Link("link", m[2], heading_words(m[1])))
    for m in _WIKI.finditer(text):
        yield Placed(m.start(), Link("wiki", m[1].strip(), (m[2] or m[1]).strip()))
    if "<a" in text or "<img" in text:
        for m in _ANCHOR.finditer(text):
            yield Placed(m.start(), Link("link", m[1], m[2].strip()))
    defined = {m[1].casefold(): m[2] for m in _DEFINITION.finditer(text)} if "]:" in text else {}
    for m in _REFERENCE.finditer(text) if defined else ():
        if target := defined.get((m[2] or m[1]).casefold()):
            yield Placed(m.start(), Link("link", target, heading_words(m[1])))


def _at_their_words(text: str, links: Sequence[tuple[str, str]]) -> Iterator[Placed]:
    at = 0
    for target, words in links:
        at = max(at, text.find(words, at))
        yield Placed(at, Link("link", target[:LONGEST_TARGET], words))


def _imports(text: str, language: str) -> Iterator[Placed]:
    """Yield what code imports, as paths; of a name that may be a module or stand in one, both."""
    if language not in _IMPORTS:
        return
    source, paths = _IMPORTS[language]
    for m in source.finditer(text):
        line = " ".join(m[0].split())[:LONGEST_NAME]
        yield from (Placed(m.start(), Link("import", path[:LONGEST_TARGET], line)) for path in paths(m))


def _python(m: re.Match[str]) -> Iterator[str]:
    for module in _MODULES.findall(m[4] or ""):
        yield "/" + module.replace(".", "/")
    if m[4]:
        return
    dots = len(m[1]) - len(m[1].lstrip("."))
    start = "./" + "../" * (dots - 1) if dots else "/"
    module = start + m[1][dots:].replace(".", "/")
    yield module
    yield from (posixpath.join(module, name) for name in _MODULES.findall(m[2] or m[3]))


def _rust(m: re.Match[str]) -> Iterator[str]:
    path = (m[1] or m[2]).replace("::", "/").lstrip("/")
    yield f"./{path}" if m[2] else f"/{path}"
    if "/" in path:
        yield "/" + posixpath.dirname(path)


def _go(m: re.Match[str]) -> Iterator[str]:
    """Yield where each package may lie: its first folders name the module, which is anywhere."""
    for package in _QUOTED.findall(m[0]):
        *before, last = package.split("/")
        if before:
            yield f"/{before[-1]}/{last}/{last}.go"
            yield f"/{last}/{last}.go"


_QUOTED = pattern(r'"([^"\n]{1,300})"')
_Paths = Callable[[re.Match[str]], Iterable[str]]
_MODULES = pattern(r"(?<!as )\b(?!as\b)[\w.]+")  # and not what they are called here
_PYTHON = pattern(
    r"^[ \t]*(?:from[ \t]+([.\w]{1,200})[ \t]+import[ \t]*(?:\(([^()]{1,2000})\)|([\w \t,]{1,500}))"
    r"|import[ \t]+([\w., \t]{1,500}))",
    re.MULTILINE,
)
_JAVASCRIPT = pattern(r"""(?:\bfrom|\bimport|\brequire\()\s*["']([^"'\n]{1,300})["']""")
_JAVA = pattern(r"^[ \t]*import\s+(?:static\s+)?([\w.]{1,300})", re.MULTILINE)
_GO = pattern(r'^import[ \t]*(?:\([^()]{1,5000}\)|(?:[\w.]+[ \t]+)?"[^"\n]{1,300}")', re.MULTILINE)
_RUST = pattern(r"^[ \t]*(?:pub\s+)?(?:use\s+crate((?:::\w+){1,20})|mod\s+(\w+);)", re.MULTILINE)
_BESIDE = pattern(
    r"^[ \t]*(?:#[ \t]*include\s+\"|require_relative\s+[\"'])([^\"'\n]{1,300})[\"']", re.MULTILINE
)
_IMPORTS: Mapping[str, tuple[re.Pattern[str], _Paths]] = {
    "python": (_PYTHON, _python),
    "rust": (_RUST, _rust),
    **dict.fromkeys(
        ("javascript", "typescript", "tsx"),
        (_JAVASCRIPT, lambda m: [m[1] if m[1].startswith(".") else f"/{m[1]}"]),
    ),
    **dict.fromkeys(("java", "kotlin", "scala"), (_JAVA, lambda m: ["/" + m[1].replace(".", "/")])),
    **dict.fromkeys(("c", "cpp", "ruby"), (_BESIDE, lambda m: [f"./{m[1]}"])),
    "go": (_GO, _go),
}


def names_of(path: str, title: str, details: Mapping[str, Any], fields: Mapping[str, Any]) -> list[Named]:
    """Return what a document is called: its path, the name of its file, its title and its aliases."""
    given: list[Any] = [title, _QUALIFIED.sub("", title)]
    for aliases in (details.get("aliases"), details.get("alias"), fields.get("aliases")):
        given += aliases if isinstance(aliases, list) else [aliases]
    written = [text for text in given if isinstance(text, str) and 2 < len(text) <= LONGEST_NAME]
    stem = _stem(path)
    named = [Named(_words(text), text) for text in written if not text.isdigit()]
    named += [Named("/" + stem.casefold()[:LONGEST_TARGET]), Named(_words(posixpath.basename(stem)))]
    unique: dict[str, Named] = {}
    for called in named:
        unique.setdefault(called.name[:LONGEST_TARGET], called)
    return [called for name, called in unique.items() if name]


def meant(link: Link, path: str) -> Meant | None:
    """Return what a link in the document at a path means; None if it stays there or leads elsewhere."""
    if link.kind == "mention":
        return Meant(link.target)
    written = _ESCAPED.sub(
        lambda code: bytes.fromhex(code[0].replace("%", "")).decode("utf-8", "replace"), _place(link.target)
    )
    target = written.strip().replace("\\", "/")
    if not target or _ELSEWHERE.match(target):
        return None
    is_name = link.kind in ("wiki", "relation") and not target.startswith((".", "/"))
    if is_name and not _PAGE.search(target):
        return _by_name(target)
    if not target.startswith("/") and not (is_name and link.kind == "wiki"):
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if not place.startswith(".."):
            return Meant("/" + _stem(place).casefold()[:LONGEST_TARGET], place)
        target = place
    return _by_name(target.lstrip("./"))


def _by_name(target: str) -> Meant | None:
    name = _words(posixpath.basename(_stem(target)))
    return Meant(name[:LONGEST_TARGET], target.strip("/")) if name else None


def fitting(
    meant: Meant, candidates: Sequence[tuple[int, str]], path: str, kind: LinkKind = "link"
) -> int | None:
    """Return which of the documents with the name a link means, by key; `path` is where the link stands."""
    if len(candidates) > MOST_SHARING:
        return None
    for key, known in candidates:
        if known == meant.place:  # as a rule
            return key
    for ending in (_PICTURE, _GO_FILE):  # and not a page that is called the same
        if ending.search(meant.place):
            candidates = [row for row in candidates if ending.search(row[1])]
    if kind == "import":  # `import logging` means neither a page about logging nor _logging.py
        candidates = [row for row in candidates if not _PAGE.search(row[1])]
    end = f"/{_stem(meant.place)}".casefold()
    is_path = kind == "import" or "/" in end[1:]
    fit = [row for row in candidates if not is_path or f"/{_stem(row[1])}".casefold().endswith(end)]
    if not fit:
        return None
    last = posixpath.basename(end)

    def far(row: tuple[int, str]) -> tuple[bool, int, bool, str]:
        # The nearest by folders; of a Go package the file that is called like it, else the first.
        is_main = posixpath.basename(_ENDING.sub("", row[1])).casefold() == last
        shared = len(posixpath.commonprefix([row[1], path]))
        return row[1] == path, -shared, not is_main, row[1]

    return min(fit, key=far)[0]


def is_page(link: Link) -> bool:
    """Whether a link surely leads to a document, so that it is broken where there is none."""
    target = _place(link.target)
    if link.kind == "wiki":
        return not _ENDING.search(target) or bool(_PAGE.search(target))
    return link.kind in ("link", "relation") and bool(_PAGE.search(target))


def _place(target: str) -> str:
    """Return a target without the part of the document that it names."""
    return target.partition("#")[0].partition("?")[0]


def _stem(path: str) -> str:
    """Return a path without the ending of its file; of a file that stands for its folder, the folder.

    So do all files of a Go package: imports name only the folder.
    """
    path = path.rstrip("/")
    folder, name = posixpath.split(path)
    stem = _ENDING.sub("", name)
    is_folder = stem.casefold() in _INDEXES or bool(_GO_FILE.search(name))
    return folder if folder and is_folder else posixpath.join(folder, stem)


def _words(text: str) -> str:
    return " ".join(folded(text.replace("_", " ")))
