"""What pictures say without being looked at: alternative texts, titles, file names, and the words of SVG."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

MAX_LABELS = 2_000  # of one drawing
_LABELS = "text, foreignObject"
_LETTERS = re.compile(r"[^\W\d_]{2}")
_BETWEEN_WORDS = re.compile(r"%20|[\W_]+")
_WORD = re.compile(r"[^\W\d_]{3,20}")


def told_by(attributes: Mapping[str, str | None]) -> str:
    """Return what an <img> says of its picture; where it says nothing, its file's name if that is words.

    An empty alternative text says that the picture is there for its looks.
    """
    words = [" ".join((attributes.get(name) or "").split()) for name in ("alt", "title")]
    said = dict.fromkeys(filter(None, words))
    if said or "alt" in attributes:
        return " ".join(said)
    return name_words(attributes.get("src") or "")


def name_words(path: str) -> str:
    """Return a file's name as words, if it is two at least: `request-flow.png` and not `IMG_0431.png`."""
    stem = path.partition("?")[0].rpartition("/")[2].rpartition(".")[0]
    words = [word for word in _BETWEEN_WORDS.split(stem) if word]
    return " ".join(words) if sum(_WORD.fullmatch(word) is not None for word in words) > 1 else ""


def labels(drawing: LexborNode) -> list[str]:
    """Return the words that are written in an SVG drawing, each once; numbers along an axis are none."""
    said = (" ".join(node.text(deep=True, separator=" ").split()) for node in drawing.css(_LABELS))
    return [*dict.fromkeys(label for label in said if _LETTERS.search(label))][:MAX_LABELS]
