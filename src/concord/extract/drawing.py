"""SVG drawings: their titles, descriptions and the words in them, each on a line."""

from __future__ import annotations

from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.html import parsed
from concord.extract.picture import labels
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean
from concord.types import Extracted


class DrawingExtractor(Extractor):
    """Reads .svg; lines are those that `kb get` shows, because one of the file may be all of it."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        root = parsed(with_plain_newlines(decode(data))).css_first("svg")
        described = [] if root is None else [*_described(root)]
        said = dict.fromkeys([*described, *(labels(root) if root is not None else ())])
        title = described[0][:MAX_TITLE] if described else None
        return Extracted(clean("\n".join(said)), "image", title)


def _described(root: LexborNode) -> Iterator[str]:
    """Yield the titles and descriptions in a drawing, its own first."""
    for node in root.css("title, desc"):
        if words := " ".join(node.text(deep=True, separator=" ").split()):
            yield words
