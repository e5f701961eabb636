"""What the readers of structure return: sections of blocks, one after the other, that make up the whole text."""

from __future__ import annotations

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
    reluctance: float = 0.0  # how bad a cut just before it is: 0 is a fine place, 1 tears apart what belongs together


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
