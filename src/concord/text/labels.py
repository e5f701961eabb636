"""Which lines only name the heading below them, for others to point to? They belong to its section.

Sphinx has them above nearly every heading (`.. _pool-timeout:`, `.. setting:: POOL_TIMEOUT`), Markdown as
anchors. If they ended the section before, that section would be found for a name that it says nothing about:
it came second for `DOWNLOAD_DELAY` and `task_acks_late` in the manuals of Scrapy and Celery.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from concord.text.outline import Block
from concord.text.titles import without_roles

# .. _name: with nothing behind it; an address there is a link's, and names nothing here.
_TARGET = re.compile(r"\.\. _(?:`[^`\n]++`|[^:`\n]++(?::[^:`\n]++)*+):[ \t]*+$")
_NAMING = re.compile(r"\.\. [a-zA-Z][\w:+-]*?::[ \t]++(?P<name>\S.*)$")
# Entries of the index at a book's end, and the list of headings that is put there: neither is text.
_ENTRIES = re.compile(r"^\.\. (?:index|contents)::.*(?:\n[ \t]+\S.*)*", re.MULTILINE)
_ANCHOR = re.compile(
    r"""<(?P<tag>a|span|div)\s+(?:name|id)=["']?[^"'<>\s]++["']?\s*+(?:/>|>\s*+</(?P=tag)>)\s*+$"""  # HTML
    r"|\[\]\(\)\{\s*#[^\s{}]++\s*\}\s*+$"  # [](){#name} of MkDocs
    r"|\([\w.:-]++\)=\s*+$",  # (name)= of MyST
    re.IGNORECASE,
)
# Of AsciiDoc: [[name]], [#name], [appendix]
_ATTRIBUTES = re.compile(r"\[(?:\[[^\[\]\n]++\]|[^\[\]\n]++)\][ \t]*+$")
_MARKUP = re.compile(r"[`*]+")
_LONGEST = 400  # characters of lines that name something


def labels_of(text: str, title: str, markup: str | None = None) -> Callable[[Block], bool]:
    """Return a test for blocks that hold nothing but names of the heading below them."""
    return partial(_is_label, text, title, markup)


def _is_label(text: str, title: str, markup: str | None, block: Block) -> bool:
    start, end = block.start, block.end
    if block.kind != "prose" or end - start > _LONGEST or text[start] not in ".<[(":
        return False
    lines = _ENTRIES.sub("", text[start:end]).split("\n")
    return all(_names(line, title, markup) for line in lines if line.strip())


def _names(line: str, title: str, markup: str | None) -> bool:
    if _TARGET.match(line) or _ANCHOR.match(line) or markup == "asciidoc" and _ATTRIBUTES.match(line):
        return True
    found = _NAMING.match(line)
    return found is not None and _bare(title).startswith(_bare(found["name"]))


def _bare(title: str) -> str:
    return _MARKUP.sub("", without_roles(title)).strip()
