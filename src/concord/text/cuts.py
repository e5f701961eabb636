"""How a text is divided into sections of blocks, and where a section that is too long is cut.

A long section has many possible cuts, each with a price. Lengths are in the model's tokens, counted by
bisection in one list of token starts. Cuts lie no further apart than a chunk may be long, so that a choice is
always possible; it looks at each cut about twice, which makes it linear.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from math import ceil
from operator import sub
from typing import NamedTuple

from msgspec import Struct

from concord.text.word_lists import word_list
from concord.types import Block, BlockKind, Heading, Section

Range = tuple[int, int]

# Prices of a cut, in shares of the target length: at 0.35, a cut between blocks that makes a piece a third
# too short is still preferred to one between two sentences at the right place. Set by hand, by reading the
# chunks of the documentation of Kubernetes and of the Python standard library.
AFTER_HEADING = 1.0
SENTENCE = 0.35
SHORT_PARAGRAPH = 0.8  # between the sentences of a paragraph that is best left whole
_LINES = (0.5, 0.3)  # below a line, and below a blank line
_RECORDS = (0.05, 0.05)
INDENTED = 0.3  # on top, for a line indented by DEEP columns or more
WORD = 1.2
PAGE_DISCOUNT = 0.1  # a citation names a single page if possible
DEEP = 12

# A token of more characters than this is a tokenizer's "unknown" or a run of spaces; it counts as several, or
# a megabyte without spaces would be one token.
LONGEST_TOKEN = 64

# A mark that may end a sentence, with the quotes and brackets that close after it, then white space; in
# scripts that write no spaces the mark alone is enough.
_END = re.compile(r"""(?:(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s)|[。！？｡]+[」』”’）】]*+|[।॥؟۔](?=\s))\s*""")
_LAST_WORD = re.compile(r"(?:^|(?<=[\s(\[\"'“‘]))[^\s(\[\"'“‘]*\Z")
_LONGEST_ABBREVIATION = 10


def append_block(section: Section, start: int, end: int, kind: BlockKind, reluctance: float = 0.0) -> None:
    """Add a block to a section; it is not to be cut off from a heading right above it."""
    after_heading = section.blocks and section.blocks[-1].kind == "heading"
    section.blocks.append(Block(start, end, kind, AFTER_HEADING if after_heading else reluctance))


def open_section(sections: list[Section], heading: Heading) -> None:
    """Begin a section; if the one before is nothing but a heading, and this one's is deeper, both are one."""
    if sections:
        last, blocks = sections[-1]
        if blocks and len(heading) > len(last) and all(block.kind == "heading" for block in blocks):
            sections[-1] = Section(heading, blocks)
            return
    sections.append(Section(heading, []))


class ChunkSize(Struct, frozen=True):
    """How long chunks are, in tokens of the embedding model."""

    target: int = 320
    maximum: int = 448
    overlap: int = 32

    @classmethod
    def for_target(cls, target: int, overlap: int) -> ChunkSize:
        """Return the sizes of chunks; the usual ones fit, with a header, into a window of 512 tokens."""
        return cls(target, target * 7 // 5, overlap)


class Tokens(Struct, frozen=True):
    """Where a text's tokens begin; made by `measured`."""

    starts: Sequence[int]

    def before(self, offset: int) -> int:
        """Return how many tokens begin before an offset."""
        return bisect_left(self.starts, offset)

    def between(self, start: int, end: int) -> int:
        """Return how many tokens begin in text[start:end]."""
        return bisect_left(self.starts, end) - bisect_left(self.starts, start)


def measured(starts: Sequence[int], length: int) -> Tokens:
    """Return the tokens of a text of some length."""
    gap = max(map(sub, starts[1:], starts), default=0)
    if max(gap, length - starts[-1] if starts else 0) <= LONGEST_TOKEN:
        return Tokens(starts)
    gaps = pairwise([*starts, length])
    return Tokens([start for a, b in gaps for start in range(a, max(b, a + 1), LONGEST_TOKEN)])


class _Cut(NamedTuple):
    """A place where the text may be cut."""

    offset: int
    price: float
    after_prose: bool = False  # whether prose lies between the cut before and this one


def cut_ranges(
    text: str, blocks: Sequence[Block], tokens: Tokens, size: ChunkSize, page_starts: Sequence[int] = ()
) -> list[Range]:
    """Return the ranges into which a run of blocks is cut; a range may overlap with the one before."""
    start, end = blocks[0].start, blocks[-1].end
    if tokens.between(start, end) <= size.maximum:
        return [(start, end)]
    cuts, pages = _cuts(text, blocks, tokens, size), frozenset(page_starts)
    if pages:
        cuts = (cut._replace(price=cut.price - PAGE_DISCOUNT * (cut.offset in pages)) for cut in cuts)
    return list(_choose(cuts, (start, end), tokens, size))


def _cuts(text: str, blocks: Sequence[Block], tokens: Tokens, size: ChunkSize) -> Iterator[_Cut]:
    """Yield every possible cut in order; the last is the end of the run and costs nothing."""
    prices = chain((block.reluctance for block in islice(blocks, 1, None)), [0.0])
    for (start, end, kind, _), price in zip(blocks, prices, strict=True):
        if kind == "prose":
            yield from _between_sentences(text, start, end, tokens, size)
        elif kind == "records":
            yield from _between_lines(text, start, end, tokens, size, _RECORDS)
        elif tokens.between(start, end) > size.maximum:
            yield from _between_lines(text, start, end, tokens, size)
        yield _Cut(end, price, kind == "prose")


def _between_sentences(text: str, start: int, end: int, tokens: Tokens, size: ChunkSize) -> Iterator[_Cut]:
    price = SHORT_PARAGRAPH if tokens.between(start, end) < size.target // 4 else SENTENCE
    for begin, offset in pairwise((start, *sentence_starts(text, start, end), end)):
        if tokens.between(begin, offset) > size.maximum:
            yield from _between_lines(text, begin, offset, tokens, size)
        if offset < end:
            yield _Cut(offset, price, True)


def _between_lines(
    text: str, start: int, end: int, tokens: Tokens, size: ChunkSize, prices: tuple[float, float] = _LINES
) -> Iterator[_Cut]:
    """Yield cuts before lines: cheap after a blank line, and where little is indented."""
    begin, before = start, ""
    for line in text[start:end].split("\n"):
        offset = begin + len(line) + 1
        if begin > start and (body := line.lstrip()):
            price = prices[0] if before.strip() else prices[1]
            yield _Cut(begin, price + INDENTED * min(len(line) - len(body), DEEP) / DEEP)
        if 4 * len(line) > size.maximum and tokens.between(begin, offset) > size.maximum:
            yield from _between_words(text, begin, min(offset, end), tokens, size)
        begin, before = offset, line


def _between_words(text: str, start: int, end: int, tokens: Tokens, size: ChunkSize) -> Iterator[_Cut]:
    """Yield cuts in text without structure, at most a quarter of the target apart: at spaces, if possible."""
    starts, step = tokens.starts, max(1, size.target // 4)
    begin, position = start, tokens.before(start)
    while position + step < len(starts) and (mark := starts[position + step]) < end:
        offset = text.rfind(" ", begin + 1, mark) + 1 or mark
        if offset > begin:
            yield _Cut(offset, WORD)
            begin = offset
        position = max(position + 1, tokens.before(begin))


class _Window:
    """The cuts around the place where a text is cut next: of a long text there are millions."""

    def __init__(self, cuts: Iterator[_Cut], tokens: Tokens) -> None:
        self._ahead, self._tokens = cuts, tokens
        self.cuts: list[_Cut] = []
        self.at: list[int] = []  # tokens before each
        self.is_end = False  # the last cut of all is among them

    def last_within(self, most: int, first: int) -> int:
        """Return the last cut with at most so many tokens before it; it and `first` are not the last here."""
        while not self.is_end and (len(self.at) < first + 2 or self.at[-1] <= most):
            cut = next(self._ahead, None)
            if cut is None:
                self.is_end = True
            else:
                self.cuts.append(cut)
                self.at.append(self._tokens.before(cut.offset))
        return bisect_right(self.at, most) - 1

    def drop_before(self, index: int) -> None:
        """Forget the cuts before one of them."""
        del self.cuts[:index], self.at[:index]


def _choose(cuts: Iterator[_Cut], reach: Range, tokens: Tokens, size: ChunkSize) -> Iterator[Range]:
    """Cut from left to right, each time at the best place in reach; pieces come out about equal."""
    window = _Window(cuts, tokens)
    begin, begin_at, end_at = reach[0], tokens.before(reach[0]), tokens.before(reach[1])
    first = 0  # the first cut that is still ahead; before it, if any, stands the one that was chosen last
    while True:
        last = window.last_within(begin_at + size.maximum, first)
        if first >= len(window.cuts):
            return
        if last < first and first:  # nothing fits behind the overlap, so the piece goes without
            begin, begin_at = window.cuts[first - 1].offset, window.at[first - 1]
            last = window.last_within(begin_at + size.maximum, first)
        chosen = last
        if not window.is_end or last < len(window.cuts) - 1:
            chosen = _cheapest(window, range(first, last + 1), begin_at, end_at - begin_at, size)
        yield begin, window.cuts[chosen].offset
        begin = window.cuts[_overlapped(window, first, chosen, size)].offset
        begin_at, first = tokens.before(begin), 1
        window.drop_before(chosen)


def _cheapest(window: _Window, reach: range, begin_at: int, left: int, size: ChunkSize) -> int:
    if not reach:  # a single character of more tokens than a piece may have
        return reach.start
    goal = left / ceil(2 * left / (size.target + size.maximum))
    cuts, at = window.cuts, window.at
    return min(reach, key=lambda index: cuts[index].price + abs(at[index] - begin_at - goal) / goal)


def _overlapped(window: _Window, first: int, chosen: int, size: ChunkSize) -> int:
    """Return the cut at which the next piece begins: a few sentences back, if prose goes on."""
    cuts, at = window.cuts, window.at
    back = chosen
    if chosen + 1 < len(cuts) and cuts[chosen + 1].after_prose:
        while back > first and cuts[back].after_prose and at[chosen] - at[back - 1] <= size.overlap:
            back -= 1
    return back


def line_start(text: str, offset: int) -> int:
    """Return where the line of a place begins, if nothing but indentation lies between; else the place."""
    start = text.rfind("\n", 0, offset) + 1
    return offset if text[start:offset].strip() else start


def sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where each sentence of text[start:end] but the first begins."""
    for mark in _END.finditer(text, start, end):
        after = mark.end()
        may_begin = after < end and not text[after].islower()
        if may_begin and not _is_abbreviated(text, start, mark.start(), text[after]):
            yield after


def _is_abbreviated(text: str, start: int, mark: int, following: str) -> bool:
    """Whether the full stop at `mark` belongs to the word before it: e.g., Dr., J., or the 3. of a list."""
    begin = max(start, mark - _LONGEST_ABBREVIATION)
    if text[mark] != "." or not (last := _LAST_WORD.search(text, begin, mark)):
        return False
    word = last[0].lower()
    if word.isdigit():
        return last.start() == start or text[last.start() - 1] == "\n"
    if word in word_list("before_number") and following.isdigit():
        return True
    return word in word_list("abbreviation_ending") or (len(word) == 1 and text[mark - 1].isupper())
