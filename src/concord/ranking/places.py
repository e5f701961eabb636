"""Where does a passage stand: in a document, at a path, under headings that are about a word?"""

from __future__ import annotations

from collections.abc import Sequence

from concord.text.contains import contains
from concord.types import Survivor


def share_in_place(words: Sequence[str], survivor: Survivor) -> float:
    """Return how many of some words the title, the path or a heading has, as a share of them; 0 of none."""
    if not words:
        return 0.0
    place = "\n".join((survivor.document.title, survivor.document.path, *survivor.chunk.heading))
    return sum(contains(place, word) for word in words) / len(words)
