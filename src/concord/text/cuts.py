"""Where a section that is too long is cut: candidate cuts, each with its price, and a choice among them.

Everything is measured in the model's tokens, counted by bisection in one list of token starts, so a text is
tokenised once however it is cut. Cuts lie no further apart than a piece may be long, which makes the choice
always possible; it looks at each cut about twice, which makes it linear.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil
from operator import sub
from typing import NamedTuple

from msgspec import Struct

from concord.text.outline import Block
from concord.text.sentence import sentence_starts

# Prices of a cut, in shares of the target length: at 0.35, a cut between blocks that makes a piece a third
# too short is still preferred to one between two sentences at the right place. Set by hand, by reading the
# chunks of the documentation of Kubernetes and of the Python standard library.
SENTENCE = 0.35
SHORT_PARAGRAPH = 0.8  # between the sentences of a paragraph that is best left whole
BLANK_LINE = 0.3
LINE = 0.5
INDENTED = 0.3  # on top, for a line indented by DEEP columns or more
RECORD = 0.05
WORD = 1.2
PAGE_DISCOUNT = 0.1
DEEP = 12

# A token of more characters than this is a tokenizer's "unknown" or a run of spaces; it counts as several, or
# a megabyte without spaces would be one token.
LONGEST_TOKEN = 64

# How long a piece may be, in fifths of the target length: a section that is a little longer stays whole, and
# the header of `assemble` still fits, with the longest usual piece, into a window of 512 tokens.
LONGEST_FIFTHS = 7


class ChunkSize(Struct, frozen=True):
    """How long chunks are, in tokens of the embedding model."""

    target: int = 320
    maximum: int = 448
    overlap: int = 32

    @classmethod
    def for_target(cls, target: int, overlap: int) -> ChunkSize:
        """Return the sizes of chunks whose target length is this."""
        return cls(target, target * LONGEST_FIFTHS // 5, overlap)


class Cut(NamedTuple):
    """A place where the text may be cut."""

    offset: int
    price: float
    after_prose: bool  # whether prose lies between the cut before and this one


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
    return Tokens(_without_giants(starts, length))


def _without_giants(starts: Sequence[int], length: int) -> Sequence[int]:
    gap = max(map(sub, starts[1:], starts), default=0)
    if max(gap, length - starts[-1] if starts else 0) <= LONGEST_TOKEN:
        return starts
    gaps = pairwise([*starts, length])
    return [start for a, b in gaps for start in range(a, max(b, a + 1), LONGEST_TOKEN)]


def cut_ranges(
    text: str, blocks: Sequence[Block], tokens: Tokens, size: ChunkSize, page_starts: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Return the ranges into which a run of blocks is cut; a range may overlap with the one before."""
    start, end = blocks[0].start, blocks[-1].end
    if tokens.between(start, end) <= size.maximum:
        return [(start, end)]
    cuts = _discounted(_cuts(text, blocks, tokens, size), page_starts)
    return list(_choose(cuts, start, tokens, size))


def _cuts(text: str, blocks: Sequence[Block], tokens: Tokens, size: ChunkSize) -> list[Cut]:
    """Return every possible cut in order; the last is the end of the run and costs nothing."""
    cuts: list[Cut] = []
    for block in blocks:
        if cuts:
            cuts[-1] = cuts[-1]._replace(price=block.reluctance)
        length = tokens.between(block.start, block.end)
        if length > size.maximum or block.kind in ("prose", "records"):
            cuts.extend(_INSIDE[block.kind](text, block.start, block.end, tokens, size))
        cuts.append(Cut(block.end, 0.0, block.kind == "prose"))
    return cuts


Inside = Callable[[str, int, int, Tokens, ChunkSize], Iterator[Cut]]


def _between_sentences(text: str, start: int, end: int, tokens: Tokens, size: ChunkSize) -> Iterator[Cut]:
    short = tokens.between(start, end) < size.target // 4
    begin = start
    for offset in (*sentence_starts(text, start, end), end):
        if tokens.between(begin, offset) > size.maximum:
            yield from _between_lines(text, begin, offset, tokens, size)
        if offset < end:
            yield Cut(offset, SHORT_PARAGRAPH if short else SENTENCE, True)
        begin = offset


def _between_lines(text: str, start: int, end: int, tokens: Tokens, size: ChunkSize) -> Iterator[Cut]:
    return _lines(text, start, end, tokens, size, _price_of_line)


def _between_records(text: str, start: int, end: int, tokens: Tokens, size: ChunkSize) -> Iterator[Cut]:
    return _lines(text, start, end, tokens, size, _price_of_record)


def _lines(
    text: str, start: int, end: int, tokens: Tokens, size: ChunkSize, price: Callable[[str, str], float]
) -> Iterator[Cut]:
    begin, before = start, ""
    for line in text[start:end].split("\n"):
        offset = begin + len(line) + 1
        if begin > start and line.strip():
            yield Cut(begin, price(line, before), False)
        if 4 * len(line) > size.maximum and tokens.between(begin, offset) > size.maximum:
            yield from _between_words(text, begin, min(offset, end), tokens, size)
        begin, before = offset, line


def _price_of_line(line: str, before: str) -> float:
    """Return the price of a cut before a line of code: low after a blank line and with little indentation."""
    indent = len(line) - len(line.lstrip())
    return (LINE if before.strip() else BLANK_LINE) + INDENTED * min(indent, DEEP) / DEEP


def _price_of_record(line: str, _before: str) -> float:
    """Return the price of a cut before a line of data: where an outer record begins, if they are nested."""
    indent = len(line) - len(line.lstrip())
    return RECORD + INDENTED * min(indent, DEEP) / DEEP


def _between_words(text: str, start: int, end: int, tokens: Tokens, size: ChunkSize) -> Iterator[Cut]:
    """Yield cuts in text without structure, at most a quarter of the target apart: at spaces, if possible."""
    starts, step = tokens.starts, max(1, size.target // 4)
    begin, position = start, tokens.before(start)
    while position + step < len(starts) and (mark := starts[position + step]) < end:
        offset = text.rfind(" ", begin + 1, mark) + 1 or mark
        if offset > begin:
            yield Cut(offset, WORD, False)
            begin = offset
        position = max(position + 1, tokens.before(begin))


_INSIDE: dict[str, Inside] = {
    "prose": _between_sentences,
    "solid": _between_lines,
    "heading": _between_lines,
    "records": _between_records,
}


def _discounted(cuts: list[Cut], page_starts: Sequence[int]) -> list[Cut]:
    """Make cuts at the beginning of a page cheaper, so that a citation names a single page if possible."""
    if not page_starts:
        return cuts
    pages = frozenset(page_starts)
    return [cut._replace(price=cut.price - PAGE_DISCOUNT) if cut.offset in pages else cut for cut in cuts]


def _choose(cuts: list[Cut], start: int, tokens: Tokens, size: ChunkSize) -> Iterator[tuple[int, int]]:
    """Cut from left to right, each time at the best place in reach; pieces come out about equal."""
    at = [tokens.before(cut.offset) for cut in cuts]
    begin, begin_at = start, tokens.before(start)
    first = 0  # the first cut that is still ahead
    while first < len(cuts):
        last = bisect_right(at, begin_at + size.maximum) - 1
        if last < first and first:  # nothing fits behind the overlap, so the piece goes without
            begin, begin_at = cuts[first - 1].offset, at[first - 1]
            last = bisect_right(at, begin_at + size.maximum) - 1
        chosen = (
            last if last == len(cuts) - 1 else _cheapest(cuts, at, range(first, last + 1), begin_at, size)
        )
        yield begin, cuts[chosen].offset
        begin = cuts[_overlapped(cuts, at, first, chosen, size)].offset
        begin_at, first = tokens.before(begin), chosen + 1


def _cheapest(cuts: list[Cut], at: list[int], reach: range, begin_at: int, size: ChunkSize) -> int:
    left = at[-1] - begin_at
    goal = left / ceil(2 * left / (size.target + size.maximum))
    if not reach:  # a single character of more tokens than a piece may have
        return reach.start
    return min(reach, key=lambda index: cuts[index].price + abs(at[index] - begin_at - goal) / goal)


def _overlapped(cuts: list[Cut], at: list[int], first: int, chosen: int, size: ChunkSize) -> int:
    """Return the cut at which the next piece begins: a few sentences back, if prose goes on."""
    back = chosen
    if chosen + 1 < len(cuts) and cuts[chosen + 1].after_prose:
        while back > first and cuts[back].after_prose and at[chosen] - at[back - 1] <= size.overlap:
            back -= 1
    return back
