"""Which lines of a text without markup are its headings?

Underlined lines are. So are lines with stars in an outline of Emacs, such as the NEWS of GNU programs, and
the names of releases in a changelog; these two are looked for only where a text clearly is of that kind.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from concord.text.releases import SEVERAL, release_at

# One punctuation mark, repeated: what reStructuredText and many a README underline their headings with.
_UNDERLINE = re.compile(r"([=\-~^\"'#*+`:._])\1{2,}$")
_LONGEST_TITLE = 120  # characters
_RULE = re.compile(r"([=\-~*_#])\1{9,}[ \t]*\n")
_OVERLINED = 3  # lines of a heading with a line above and below
_ROLE = re.compile(r":[a-z][a-z:+-]*:`[~!]?([^`<>]+?)(?:[ \t]*<[^`<>]*>)?`")

# AsciiDoc has listings between two such lines; a heading may have the same, but not where it is announced.
_FENCE = re.compile(r"([-.])\1{3,}[ \t]*$", re.MULTILINE)
_ANNOUNCED = re.compile(r"^[ \t]*[^:\s][^\n]*:\s*\Z", re.MULTILINE)  # not by :members: of reStructuredText
_LONGEST_LISTING = 40  # paragraphs, or every line of dashes would be compared with all that follow
# Markdown has them between two lines of backticks; one directly below words, and no shorter, underlines them.
_BACKTICKS = re.compile(r"^(?P<marks>`{3,})(?P<about>[^`\n]*+)$", re.MULTILINE)

_MODE_LINE = re.compile(r"-\*-[^\n]*\boutline\b[^\n]*-\*-")
_WITHIN_HEAD = 500  # characters: where Emacs looks for its mode
_STARS_UNDER_A_STAR = re.compile(r"^\*[ \t]\S.*\n(?:[^\S\n]*+\n)++\*\*[ \t]\S", re.MULTILINE)
_STARRED = re.compile(r"(\*{1,6})[ \t]+(\S.*)")
_OUTERMOST = "* "  # the style of headings with one star

# Words of a sentence, which a line may rule off that is longer than it by more characters than these.
_LEAST_OF_SENTENCE, _MORE_THAN_A_TITLE = 4, 2
_VERSION = re.compile(r"\d\.\d")

Range = tuple[int, int]


class Title(NamedTuple):
    """A heading that a paragraph begins with."""

    style: str
    words: str
    end: int  # where what stands under it begins


TitleReader = Callable[[str, int, int], Title | None]


def title_readers(text: str, paragraphs: Sequence[Range]) -> list[TitleReader]:
    """Return the readers of headings that suit a text: those of an outline, of a changelog, or none."""
    readers: list[TitleReader] = []
    begins = ((_below_rule(text, start, end), end) for start, end in paragraphs)
    releases = {found.words: start for start, end in begins if (found := _release(text, start, end))}
    if _is_outline(text, releases.values()):
        readers += [_starred, _between_stars]
    return [*readers, _release] if len(releases) >= SEVERAL else readers


def first_title(text: str, start: int, end: int, readers: Sequence[TitleReader]) -> Title | None:
    """Return the heading that a paragraph begins with: underlined, or one that the readers know."""
    return _underlined(text, start, end) or marked_title(text, start, end, readers)


def marked_title(text: str, start: int, end: int, readers: Sequence[TitleReader]) -> Title | None:
    """Return a heading that has no line under it."""
    begin = _below_rule(text, start, end)
    return next((title for read in readers if (title := read(text, begin, end))), None)


def without_roles(title: str) -> str:
    """Return a title as people read it: subprocess for :mod:`subprocess`, run for :func:`run <pool.run>`."""
    return _ROLE.sub(r"\1", title)


def listings(text: str, paragraphs: Sequence[Range]) -> set[int]:
    """Return where the paragraphs of listings begin: no line in these is a heading.

    Listings stand between two lines of backticks, or of dashes or dots below a line that ends with a colon.
    """
    found = _within(list(_between_backticks(text)), paragraphs) if "```" in text else set()
    fences = [(at, fence) for at, reach in enumerate(paragraphs) if (fence := _fence(text, *reach))]
    lasts = [text[start:end].rstrip().rpartition("\n") for start, end in paragraphs] if fences else []
    for at, fence in fences:
        after = islice(range(at, len(lasts)), _LONGEST_LISTING)
        closed = next((to for to in after if _is_closed(*lasts[to], fence, is_first=to == at)), None)
        if closed is not None:
            found.update(start for start, _ in paragraphs[at : closed + 1])
    return found


def _between_backticks(text: str) -> Iterator[Range]:
    """Yield the ranges between two lines of backticks, of which the second has at least as many."""
    begin, marks = 0, 0
    for fence in _BACKTICKS.finditer(text):
        is_bare, count = not fence["about"].strip(), len(fence["marks"])
        if marks and is_bare and count >= marks:
            yield begin, fence.start()
            marks = 0
        elif not marks and not (is_bare and 0 < len(_line_above(text, fence.start())) <= count):
            begin, marks = fence.start(), count


def _line_above(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, max(0, at - 1)) + 1 : at].strip()


def _within(ranges: Sequence[Range], paragraphs: Sequence[Range]) -> set[int]:
    """Return the starts of paragraphs that begin within one of some ranges, which are in order."""
    begins = [start for start, _ in ranges]
    placed = ((start, bisect_right(begins, start) - 1) for start, _ in paragraphs)
    return {start for start, at in placed if at >= 0 and start < ranges[at][1]}


def _fence(text: str, start: int, end: int) -> str:
    """Return the line that a listing begins with, if a line above announces it."""
    found = _FENCE.match(text, start, end)
    is_announced = found and _ANNOUNCED.search(text, max(0, start - _LONGEST_TITLE), start)
    return found[0].rstrip() if found and is_announced else ""


def _is_closed(above: str, _: str, last: str, fence: str, *, is_first: bool) -> bool:
    """Whether the last line of a paragraph closes a listing; within one paragraph it may have any length."""
    if is_first:
        return bool(above) and last[0] == fence[0] and _FENCE.fullmatch(last) is not None
    return last == fence


def _is_outline(text: str, releases: Collection[int]) -> bool:
    """Whether a text is an outline of Emacs: it says so, or has stars of several depths.

    If releases are named on lines without stars, lines with stars are items of a list.
    """
    if _MODE_LINE.search(text, 0, _WITHIN_HEAD):
        return True
    has_depth = len(_STARS_UNDER_A_STAR.findall(text)) >= SEVERAL
    return has_depth and (not releases or any(text[start] == "*" for start in releases))


def _below_rule(text: str, start: int, end: int) -> int:
    """Return where a paragraph begins, below the rule that it may begin with."""
    rule = _RULE.match(text, start, end)
    return rule.end() if rule else start


def _underlined(text: str, start: int, end: int) -> Title | None:
    lines = text[start : min(end, start + 4 * _LONGEST_TITLE)].split("\n", _OVERLINED)
    if len(lines) > 2 and lines[0] and lines[0].rstrip() == lines[2].rstrip():
        above, title, below, used = "overlined", lines[1], lines[2].rstrip(), _OVERLINED
    elif len(lines) > 1 and not lines[0][:1].isspace():
        above, title, below, used = "", lines[0], lines[1].rstrip(), 2
    else:
        return None
    title = title.strip()
    if not 0 < len(title) <= min(len(below), _LONGEST_TITLE) or not _UNDERLINE.match(below):
        return None
    is_longer = len(below) > len(title) + _MORE_THAN_A_TITLE
    if is_longer and _is_sentence(title) or _UNDERLINE.match(title):
        return None
    body = min(end, start + sum(len(line) + 1 for line in lines[:used]))
    return Title(above + below[0], title, body)


def _is_sentence(title: str) -> bool:
    return title.endswith((".", ";", ",")) and len(title.split()) >= _LEAST_OF_SENTENCE


def _starred(text: str, start: int, end: int) -> Title | None:
    """Return a line with stars that is a heading: something stands under it, and it is no sentence."""
    found = _STARRED.match(text, start, end)
    if not found or not _is_alone(text, start, end):
        return None
    stars, words, after = len(found[1]), found[2].rstrip(" \t:"), found.end() + 1
    below = _STARRED.match(text, after) or _STARRED.match(text, end)
    depth = len(below[1]) if below else 0
    if depth > stars or (_VERSION.search(words) if stars == 1 else not below):
        return Title(stars * _OUTERMOST, words, min(end, after))
    return None


def _between_stars(text: str, start: int, end: int) -> Title | None:
    """Return a line of an outline that names a release without a star, as old ones often do."""
    line = text[start : min(end, start + _LONGEST_TITLE)].partition("\n")[0]
    may_begin = line[:1].isalnum() or line[:1] == "["
    if not may_begin or not _VERSION.search(line) or not _is_alone(text, start, end):
        return None
    return Title(_OUTERMOST, line.rstrip(" \t:"), min(end, start + len(line) + 1))


def _is_alone(text: str, start: int, end: int) -> bool:
    """Whether a line is followed by a blank one or a star, is no longer than a title, and no sentence."""
    line, _, rest = text[start : min(end, start + 2 * _LONGEST_TITLE)].partition("\n")
    is_title = len(line) <= _LONGEST_TITLE and not line.rstrip().endswith((".", ",", ";"))
    return is_title and rest.lstrip(" \t")[:1] in ("", "\n", "*")


def _release(text: str, start: int, end: int) -> Title | None:
    """Return a line that is the name of a release and no more."""
    found = release_at(text, start, end)
    if not found:
        return None
    return Title(_OUTERMOST, " ".join(found[0].strip("* \t:.").split()), min(end, found.end() + 1))
