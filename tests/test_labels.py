"""What only names the heading below it belongs to that heading's section."""

from __future__ import annotations

import pytest

from concord.text.chunk import ChunkSize, chunk
from concord.text.markdown import read_markdown
from concord.text.plain import read_plain
from concord.types import DocumentType, Extracted, Section

MANUAL = """\
.. _guide-settings:

========
Settings
========

.. contents::
    :local:
    :depth: 1

.. _settings-reference:

Reference
=========

.. setting:: TASK_LIMIT

``TASK_LIMIT``
--------------

Default: none.

.. setting:: TASK_DELAY
.. index::
   single: delay; task

``TASK_DELAY``
--------------

Default: one second.

.. _a site: https://example.org/

.. versionadded:: 3.1

Others
------

There are more.
"""
PAGE = """\
# Settings

Some words.

<a name="limit"></a>

## Limit

How many there may be.

(delay-setting)=

## Delay

How long to wait, see <a href="#limit">the limit</a>.
"""


def under(heading: str, sections: list[Section], text: str) -> str:
    """Return the text of the section under a heading."""
    return next(
        text[section.start : section.end] for section in sections if section.heading[-1:] == (heading,)
    )


def test_labels_and_directives_that_name_a_heading_stand_in_its_section():
    sections = read_plain(MANUAL)
    assert under("``TASK_LIMIT``", sections, MANUAL).count("TASK_DELAY") == 0
    assert under("``TASK_DELAY``", sections, MANUAL).startswith(".. setting:: TASK_DELAY\n.. index::")


def test_a_heading_with_labels_alone_below_it_belongs_to_the_next_one():
    first, *others = read_plain(MANUAL)
    assert first.heading == ("Settings", "Reference", "``TASK_LIMIT``")
    assert (first.start, others[-1].end) == (0, len(MANUAL))


def test_links_and_directives_about_what_is_above_stay_there():
    text = under("``TASK_DELAY``", read_plain(MANUAL), MANUAL)
    assert text.rstrip().endswith(".. versionadded:: 3.1")
    assert "https://example.org" in text


def test_anchors_of_markdown_stand_in_the_section_that_they_name():
    sections = read_markdown(PAGE)
    assert under("Limit", sections, PAGE).startswith('<a name="limit"></a>')
    assert under("Delay", sections, PAGE).startswith("(delay-setting)=")
    assert under("Settings", sections, PAGE).rstrip().endswith("Some words.")


def test_anchors_and_attributes_of_asciidoc_stand_in_the_section_that_they_name():
    text = "= Settings\n\nWords.\n\n[[limit]]\n== Limit\n\nMany.\n\n[#delay]\n[appendix]\n== Delay\n\nLong.\n"
    sections = read_plain(text, "asciidoc")
    assert under("Settings", sections, text) == "= Settings\n\nWords.\n\n"
    assert under("Limit", sections, text) == "[[limit]]\n== Limit\n\nMany.\n\n"
    assert under("Delay", sections, text).startswith("[#delay]\n[appendix]\n")


@pytest.mark.parametrize(("text", "type"), [(MANUAL, "text"), (PAGE, "markdown")])
def test_no_chunk_ends_with_the_name_of_the_next(text: str, type: DocumentType):
    pieces = chunk(Extracted(text, type), lambda text: range(0, len(text), 4), ChunkSize(20, 40, 0))
    assert len(pieces) > 2
    assert not any(piece.text.rstrip().endswith(("TASK_DELAY", "</a>", ")=")) for piece in pieces)
