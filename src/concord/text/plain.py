"""The structure of text with little markup: paragraphs under headings, and code of an unknown language.

Underlined lines are headings in any text, as in reStructuredText, and so are the names of releases in a text
that clearly is a changelog. AsciiDoc, Org and LaTeX mark their headings on a line of their own.

Lines that only name the heading below them, for others to point to, belong to its section. Sphinx has them
above nearly every heading (`.. _pool-timeout:`, `.. setting:: POOL_TIMEOUT`), Markdown as anchors. If they
ended the section before, that section would be found for a name that it says nothing about: it came second
for `DOWNLOAD_DELAY` and `task_acks_late` in the manuals of Scrapy and Celery.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from operator import itemgetter
from typing import NamedTuple

from concord.text.cuts import Range, append_block, open_section
from concord.text.headings import SEVERAL, release_at
from concord.text.tokens import pattern
from concord.types import Block, Section

_WITHIN_DEFINITION = 0.25  # before code that is indented, after a blank line: still inside something
_BETWEEN_ROWS = 0.15  # of a table that is drawn with lines

# +-----+-----+ between the rows of a table, as reStructuredText has them.
_BORDER = pattern(r"^[ \t]*+\+(?:[-=]++\+)++[ \t]*+(?:\n|\Z)", re.MULTILINE)
_BLANK_LINES = pattern(r"\n(?:[^\S\n]*+\n)+")
_BLANK = pattern(r"(?:[^\S\n]*+\n)*+")
_VISIBLE = pattern(r"\S")

# One punctuation mark, repeated: what reStructuredText and many a README underline their headings with.
_UNDERLINE = pattern(r"([=\-~^\"'#*+`:._])\1{2,}$")
_RULE = pattern(r"([=\-~*_#])\1{9,}[ \t]*\n")
_LONGEST_TITLE = 120  # characters
_ROLE = pattern(r":[a-z][a-z:+-]*:`[~!]?([^`<>]+?)(?:[ \t]*<[^`<>]*>)?`")
# Words of a sentence, which a line may rule off that is longer than it by more characters than these.
_LEAST_OF_SENTENCE, _MORE_THAN_A_TITLE = 4, 2

# AsciiDoc has listings between two such lines; a heading may have the same, but not where it is announced.
_FENCE = pattern(r"([-.])\1{3,}[ \t]*$", re.MULTILINE)
_ANNOUNCED = pattern(r"^[ \t]*[^:\s][^\n]*:\s*\Z", re.MULTILINE)  # not by :members: of reStructuredText
_LONGEST_LISTING = 40  # paragraphs, or every line of dashes would be compared with all that follow
# Markdown has them between two lines of backticks; one directly below words, and no shorter, underlines them.
_BACKTICKS = pattern(r"^(?P<marks>`{3,})(?P<about>[^`\n]*+)$", re.MULTILINE)

# No heading is longer than 200 characters or has more than 20 spaces behind it, and so no line is read again
# from each of its spaces.
_MARKED = {
    "asciidoc": pattern(
        r"^(?P<mark>={1,6})[ \t]+(?P<words>\S[^\n]{0,200}?)(?:[ \t]{1,20}={1,6})?[ \t]{0,20}+(?:\n|\Z)",
        re.MULTILINE,
    ),
    "org": pattern(
        r"^(?P<mark>\*{1,8})[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]+)?"
        r"(?P<words>[^\s*][^\n]{0,200}?)(?:[ \t]{1,99}:[\w@#%:]{1,200}:)?[ \t]{0,20}+(?:\n|\Z)",
        re.MULTILINE,
    ),
    "latex": pattern(
        r"^[ \t]*+\\(?P<mark>part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^\]\n]*+\])?\{(?P<words>"
        r"(?:[^{}\n]|\n(?![ \t]*\n)|\{(?:[^{}\n]|\{[^{}\n]*+\})*+\}){1,200}+)\}[^\n]*+(?:\n|\Z)",
        re.MULTILINE,
    ),
}
_LATEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
_LATEX_COMMAND = pattern(r"\\(?:label|index|footnote|thanks)\{[^{}]*+\}|\\[a-zA-Z]+\*?|[{}$~]")
# A listing of AsciiDoc stands between two such lines.
_ASCIIDOC_FENCE = pattern(r"^(?P<fence>-{4,}|\.{4,}|/{4,}|\+{4,})[ \t]*+$", re.MULTILINE)
# Older AsciiDoc underlines its headings, below a blank line or an anchor, with lines that are nearly as long.
_ASCIIDOC_UNDERLINED = pattern(
    r"(?:\A|(?<=\n\n)|(?<=\]\n))(?P<words>\w[^\n]{0,200})\n(?P<line>([=~^+-])\3{2,200}+)[ \t]*+$",
    re.MULTILINE,
)
_NEARLY = 2  # characters

# .. _name: with nothing behind it; an address there is a link's, and names nothing here.
_TARGET = pattern(r"\.\. _(?:`[^`\n]++`|[^:`\n]++(?::[^:`\n]++)*+):[ \t]*+$")
_NAMING = pattern(r"\.\. [a-zA-Z][\w:+-]*?::[ \t]++(?P<name>\S.*)$")
# Entries of the index at a book's end, and the list of headings that is put there: neither is text.
_ENTRIES = pattern(r"^\.\. (?:index|contents)::.*(?:\n[ \t]+\S.*)*", re.MULTILINE)
_ANCHOR = pattern(
    r"""<(?P<tag>a|span|div)\s+(?:name|id)=["']?[^"'<>\s]++["']?\s*+(?:/>|>\s*+</(?P=tag)>)\s*+$"""  # HTML
    r"|\[\]\(\)\{\s*#[^\s{}]++\s*\}\s*+$"  # [](){#name} of MkDocs
    r"|\([\w.:-]++\)=\s*+$",  # (name)= of MyST
    re.IGNORECASE,
)
_ATTRIBUTES = pattern(r"\[(?:\[[^\[\]\n]++\]|[^\[\]\n]++)\][ \t]*+$")  # [[name]] of AsciiDoc, [#name]
_EMPHASIS = pattern(r"[`*]+")
_LONGEST_LABEL = 400  # characters of lines that name something


class PlainHeading(NamedTuple):
    """A heading in a text."""

    start: int
    end: int  # where what stands under it begins
    level: int  # it stands below earlier headings with lower levels
    words: str


class _Title(NamedTuple):
    """A heading that a paragraph begins with; headings of one style have one level."""

    style: str
    words: str
    end: int


def read_plain(text: str, markup: str | None = None) -> list[Section]:
    """Return the paragraphs of a text under its headings, if it has any; a light markup has its own."""
    headings = marked_headings(text, markup) or list(_unmarked_headings(text))
    sections = [Section((), [])]
    path: list[PlainHeading] = []
    starts = [*(heading.start for heading in headings), len(text)]
    _append_paragraphs(sections[0], text, 0, starts[0])
    for heading, end in zip(headings, starts[1:], strict=True):
        path = [*(outer for outer in path if outer.level < heading.level), heading]
        open_section(sections, tuple(outer.words for outer in path), labels_of(text, heading.words, markup))
        blank = _BLANK.match(text, heading.end, end) if _VISIBLE.search(text, heading.end, end) else None
        below = blank.end() if blank else end
        append_block(sections[-1], heading.start, below, "heading")
        _append_paragraphs(sections[-1], text, below, end)
    return [section for section in sections if section.blocks]


def read_unknown_code(text: str) -> list[Section]:
    """Return code of a language nobody can parse, in blocks between blank lines."""
    blocks = [
        Block(start, end, "solid", _WITHIN_DEFINITION if text[start].isspace() else 0.0)
        for start, end in _paragraphs(text)
    ]
    return [Section((), blocks)]


def _append_paragraphs(section: Section, text: str, start: int, end: int) -> None:
    """Append the paragraphs of a range; of a table that is drawn with lines, each row."""
    for first, last in _paragraphs(text[start:end]):
        begin, stop = start + first, start + last
        rows = [begin, *_grid_rows(text, begin, stop), stop]
        is_solid = text.startswith(("  ", "\t"), begin) or len(rows) > 2
        for at, below in pairwise(rows):
            append_block(
                section, at, below, "solid" if is_solid else "prose", _BETWEEN_ROWS if at > begin else 0.0
            )


def _grid_rows(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where the rows of a table begin that is drawn with lines; the first stays with the names."""
    borders = _BORDER.finditer(text, start, end) if _BORDER.match(text, start, end) else ()
    return (border.end() for border in islice(borders, 2, None) if border.end() < end)


def _paragraphs(text: str) -> Iterator[Range]:
    """Yield the ranges between blank lines, each with the blank lines after it."""
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        if text[start : gap.start()].strip():
            yield start, gap.end()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)


def _unmarked_headings(text: str) -> Iterator[PlainHeading]:
    """Yield what is underlined or names a release; the first style is the outermost.

    All releases have the level of the first, however they are marked.
    """
    paragraphs = list(_paragraphs(text))
    releases = {title.words for reach in paragraphs if (title := _release(text, *reach))}
    is_changelog = len(releases) >= SEVERAL
    in_listings = _listings(text, paragraphs)
    levels: dict[str, int] = {}
    of_releases = ""
    for start, end in (reach for reach in paragraphs if reach[0] not in in_listings):
        title = _underlined(text, start, end) or (_release(text, start, end) if is_changelog else None)
        while title:
            style = title.style
            if release_at(title.words):
                style = of_releases = of_releases or style
            level = levels.setdefault(style, len(levels))
            yield PlainHeading(start, title.end, level, without_roles(title.words))
            start = title.end
            title = _release(text, start, end) if is_changelog else None


def _underlined(text: str, start: int, end: int) -> _Title | None:
    lines = text[start : min(end, start + 4 * _LONGEST_TITLE)].split("\n", 3)
    if len(lines) > 2 and lines[0] and lines[0].rstrip() == lines[2].rstrip():
        style, title, below, used = "overlined", lines[1].strip(), lines[2].rstrip(), 3
    elif len(lines) > 1 and not lines[0][:1].isspace():
        style, title, below, used = "", lines[0].strip(), lines[1].rstrip(), 2
    else:
        return None
    if not 0 < len(title) <= min(len(below), _LONGEST_TITLE) or not _UNDERLINE.match(below):
        return None
    is_longer = len(below) > len(title) + _MORE_THAN_A_TITLE
    is_sentence = title.endswith((".", ";", ",")) and len(title.split()) >= _LEAST_OF_SENTENCE
    if is_longer and is_sentence or _UNDERLINE.match(title):
        return None
    return _Title(style + below[0], title, min(end, start + sum(len(line) + 1 for line in lines[:used])))


def _release(text: str, start: int, end: int) -> _Title | None:
    """Return a first line that is the name of a release and no more; there may be a rule above it."""
    rule = _RULE.match(text, start, end)
    name = release_at(text, rule.end() if rule else start, end)
    return name and _Title("release", " ".join(name[0].strip("* \t:.").split()), min(end, name.end() + 1))


def without_roles(title: str) -> str:
    """Return a title as people read it: subprocess for :mod:`subprocess`, run for :func:`run <pool.run>`."""
    return _ROLE.sub(r"\1", title)


def _listings(text: str, paragraphs: Sequence[Range]) -> set[int]:
    """Return where the paragraphs of listings begin: no line in these is a heading.

    Listings stand between two lines of backticks, or of dashes or dots below a line that ends with a colon.
    """
    starts = [start for start, _ in paragraphs]
    inside: set[int] = set()
    for start, end in _between_backticks(text) if "```" in text else ():
        inside.update(starts[bisect_left(starts, start) : bisect_left(starts, end)])
    fences = [(at, fence) for at, reach in enumerate(paragraphs) if (fence := _fence(text, *reach))]
    lasts = [text[start:end].rstrip().rpartition("\n") for start, end in paragraphs] if fences else []
    for at, fence in fences:
        after = islice(range(at, len(lasts)), _LONGEST_LISTING)
        closed = next((to for to in after if _is_closed(*lasts[to], fence, is_first=to == at)), at - 1)
        inside.update(starts[at : closed + 1])
    return inside


def _between_backticks(text: str) -> Iterator[Range]:
    """Yield the ranges between two lines of backticks, of which the second has at least as many."""
    begin, marks = 0, 0
    for fence in _BACKTICKS.finditer(text):
        start, is_bare, count = fence.start(), not fence["about"].strip(), len(fence["marks"])
        if marks and is_bare and count >= marks:
            yield begin, start
            marks = 0
        elif not marks:
            line_above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start].strip()
            if not (is_bare and 0 < len(line_above) <= count):
                begin, marks = start, count


def _fence(text: str, start: int, end: int) -> str:
    """Return the line that a listing begins with, if a line above announces it."""
    fence = _FENCE.match(text, start, end)
    is_announced = fence and _ANNOUNCED.search(text, max(0, start - _LONGEST_TITLE), start)
    return fence[0].rstrip() if fence and is_announced else ""


def _is_closed(above: str, _: str, last: str, fence: str, *, is_first: bool) -> bool:
    """Whether the last line of a paragraph closes a listing; within one paragraph it may have any length."""
    if is_first:
        return bool(above) and last[0] == fence[0] and _FENCE.fullmatch(last) is not None
    return last == fence


def marked_headings(text: str, markup: str | None) -> list[PlainHeading]:
    """Return the headings of a text in a light markup; of AsciiDoc none where most are underlined."""
    if markup not in _MARKED:
        return []
    is_asciidoc = markup == "asciidoc"
    underlined = list(filter(_is_underlined, _ASCIIDOC_UNDERLINED.finditer(text))) if is_asciidoc else []
    listings = list(_asciidoc_listings(text, underlined)) if is_asciidoc else []
    headings = []
    for line in _MARKED[markup].finditer(text):
        at = bisect_right(listings, line.start(), key=itemgetter(0)) - 1
        if at < 0 or line.start() >= listings[at][1]:
            headings.append(PlainHeading(line.start(), line.end(), *_level_and_words(line, markup)))
    return headings if len(headings) >= len(underlined) else []


def _level_and_words(line: re.Match[str], markup: str) -> tuple[int, str]:
    if markup != "latex":
        return len(line["mark"]), " ".join(line["words"].split())
    words = _LATEX_COMMAND.sub(" ", line["words"])
    return _LATEX_LEVELS.index(line["mark"]), " ".join(words.split())


def _is_underlined(line: re.Match[str]) -> bool:
    return abs(len(line["words"].rstrip()) - len(line["line"])) <= _NEARLY


def _asciidoc_listings(text: str, underlined: Sequence[re.Match[str]]) -> Iterator[Range]:
    """Yield the listings of a text, from their first fence to the next line that is the same."""
    underlines = {line.start("line") for line in underlined}
    fences = list(_ASCIIDOC_FENCE.finditer(text))
    ends: list[int | None] = []  # of the next line that is the same, from the last fence to the first
    last: dict[str, int] = {}
    for fence in reversed(fences):
        ends.append(last.get(fence["fence"]))
        last[fence["fence"]] = fence.end()
    at = 0
    for fence, end in zip(fences, reversed(ends), strict=True):
        if end is not None and fence.start() >= at and fence.start() not in underlines:
            at = end
            yield fence.start(), end


def labels_of(text: str, title: str, markup: str | None = None) -> Callable[[Block], bool]:
    """Return a test for blocks that hold nothing but names of the heading below them."""

    def is_label(block: Block) -> bool:
        start, end = block.start, block.end
        if block.kind != "prose" or end - start > _LONGEST_LABEL or text[start] not in ".<[(":
            return False
        lines = _ENTRIES.sub("", text[start:end]).split("\n")
        return all(_is_name(line, title, markup) for line in lines if line.strip())

    return is_label


def _is_name(line: str, title: str, markup: str | None) -> bool:
    if _TARGET.match(line) or _ANCHOR.match(line) or markup == "asciidoc" and _ATTRIBUTES.match(line):
        return True
    naming = _NAMING.match(line)
    return naming is not None and _bare(title).startswith(_bare(naming["name"]))


def _bare(title: str) -> str:
    return _EMPHASIS.sub("", without_roles(title)).strip()
