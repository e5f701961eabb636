"""What the readers of structure return: sections of blocks that, one after the other, are the whole text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

# How a block may be cut when it must be: prose between sentences, solid (code, tables, quotes, HTML) between
# lines and only when it alone is too long, records (data) between lines like prose between sentences.
Kind = Literal["heading", "prose", "solid", "records"]

Heading = tuple[str, ...]  # from the outermost heading inwards


class Block(NamedTuple):
    """A paragraph, list item, table, listing … with the blank lines that follow it."""

    start: int
    end: int  # exclusive; where the next block starts
    kind: Kind
    reluctance: float = 0.0  # to cut just before it: 0 is a fine place, 1 tears apart what belongs together


class Section(NamedTuple):
    """What stands under one heading, the heading included."""

    heading: Heading
    blocks: list[Block]

    @property
    def start(self) -> int:
        """Where its first block begins."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """Where its last block ends."""
        return self.blocks[-1].end


def open_section(sections: list[Section], heading: Heading, is_label: Callable[[Block], bool]) -> None:
    """Begin a section; if the one before is nothing but a heading, and this one's is deeper, both are one.

    Labels at the end of the section before, which only name what is below them, begin the new one.
    """
    labels: list[Block] = []
    while sections and (above := sections[-1].blocks) and is_label(above[-1]):
        labels.append(above.pop()._replace(kind="heading"))
        if not above:
            sections.pop()
    labels.reverse()
    if sections:
        last, blocks = sections[-1]
        if blocks and len(heading) > len(last) and all(block.kind == "heading" for block in blocks):
            sections[-1] = Section(heading, blocks + labels)
            return
    sections.append(Section(heading, labels))
