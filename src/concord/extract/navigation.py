"""Which blocks of a page only lead elsewhere: Next, Previous and Up of manuals, and tables of contents?

They are short and full of titles, so that searches had them first. Links that say what they are (texinfo)
give a block away, else its name: generators of manuals (Sphinx, DocBook, GTK-Doc) name such blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from selectolax.lexbor import LexborNode

from concord.text.word_lists import listed

_RELATIONS = listed("next prev previous up index contents start")
_WORDS = listed("next prev previous up index contents start top home back forward")  # said beside such links
_CLASSES = listed("nav-panel related navheader navfooter navigation nav toc")
_BLOCKS = listed("p div table ul ol dl center section header footer")
_HEADINGS = "h1, h2, h3, h4, h5, h6"
_PAGE = listed("html body main article h1 h2 h3 h4 h5 h6")
_WORD = re.compile(r"\w+")
_MOST_AROUND = 8  # elements around a link that are looked into
_MOST_INSIDE = 200  # elements and texts in a block that only leads elsewhere


def leads_elsewhere(node: LexborNode) -> bool:
    """Whether a block has the name of one that leads to other pages; what has a heading is content."""
    classes = (node.attributes.get("class") or "").split()
    return node.tag in _BLOCKS and not _CLASSES.isdisjoint(classes) and node.css_first(_HEADINGS) is None


def blocks_of_links(root: LexborNode) -> frozenset[int]:
    """Return the blocks that hold nothing but links to the pages around this one, by `mem_id`."""
    found: set[int] = set()
    seen: set[int] = set()  # each is looked into once, however many links are in it
    for link in filter(_is_relation, root.css("a[rel]")):
        for node in islice(_around(link), _MOST_AROUND):
            if node.mem_id in seen or node.tag in _PAGE:
                break
            seen.add(node.mem_id)
            if not _holds_only_links(node):
                break
            if node.tag in _BLOCKS:
                found.add(node.mem_id)
    return frozenset(found)


def _around(node: LexborNode) -> Iterator[LexborNode]:
    """Yield the elements that an element is in, the nearest first."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _is_relation(link: LexborNode) -> bool:
    return not _RELATIONS.isdisjoint((link.attributes.get("rel") or "").lower().split())


def _holds_only_links(node: LexborNode) -> bool:
    """Whether all words in an element are those of links to pages around this one, or go with them."""
    parts = list(islice(node.traverse(include_text=True), _MOST_INSIDE + 1))
    texts = ((part, _WORD.findall(part.text_content or "")) for part in parts)
    return len(parts) <= _MOST_INSIDE and all(_goes_with_links(part, words) for part, words in texts if words)


def _goes_with_links(part: LexborNode, words: list[str]) -> bool:
    around = islice(_around(part), _MOST_AROUND)
    link = next((element for element in around if element.tag == "a"), None)
    return _is_relation(link) if link else _WORDS.issuperset(map(str.lower, words))
