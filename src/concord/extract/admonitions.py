"""Which headings are no more than the title of a box in the text: Note, Tip, Warning, as manuals have them.

DocBook and others make them headings. What follows the box would stand under "Note", and not under the
section that it belongs to: of 1,407 passages of PostgreSQL's manual 160 did.
"""

from __future__ import annotations

from itertools import islice

from selectolax.lexbor import LexborNode

from concord.text.word_lists import listed

_CLASSES = listed("note tip warning caution important admonition")
_BOXES = listed("div section blockquote")
_TITLES = listed("h2 h3 h4 h5 h6")
_MOST_ABOVE = 3  # levels up from a title where its box is looked for
_MOST_INSIDE = 200  # elements in a box: anything with more is a page, or a good part of one


def titles_a_box(node: LexborNode) -> bool:
    """Whether an element is the only heading of a box; several headings would divide it into sections."""
    box = _box_around(node) if node.tag in _TITLES else None
    if box is None:
        return False
    inside = list(islice(box.traverse(), _MOST_INSIDE + 1))
    boxes, titles = sum(map(_is_box, inside)), sum(one.tag in _TITLES for one in inside)
    return titles <= boxes and len(inside) <= _MOST_INSIDE and box.css_first("h1") is None


def _box_around(node: LexborNode) -> LexborNode | None:
    above = node.parent
    for _ in range(_MOST_ABOVE):
        if above is None or _is_box(above):
            return above
        above = above.parent
    return None


def _is_box(node: LexborNode) -> bool:
    classes = (node.attributes.get("class") or "").split()
    return node.tag in _BOXES and not _CLASSES.isdisjoint(classes)
