"""Markdown files: front matter, titles and the lines of the text."""

from __future__ import annotations

import json
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.extract.text import MarkdownExtractor
from concord.text.document import split_front_matter
from concord.text.markdown import read_markdown
from concord.types import Extracted


def markdown(text: str, name: str = "a.md") -> Extracted:
    return MarkdownExtractor().extract(text.encode(), name)


def test_front_matter_gives_title_tags_and_details_and_keeps_line_numbers():
    extracted = markdown(
        "---\ntitle: The  Title\ntags: [ops, 'how to']\ndate: 2024-01-31\n"
        "nested: {a: [1, 2.5, null]}\n---\n# Heading\n"
    )
    assert (extracted.title, extracted.tags) == ("The Title", ("ops", "how to"))
    assert extracted.details == {"date": "2024-01-31", "nested": {"a": [1, 2.5, None]}}
    assert extracted.text.split("\n")[6] == "# Heading"


def test_front_matter_stays_in_the_text_as_it_stands_in_the_file():
    block = "---\ntitle: T\nticket: ZQX-991  # at last\nowner: Ame\u0301lie\n---\n"
    extracted = markdown(f"{block}\n# Heading\n".replace("\n", "\r\n"))
    assert extracted.text == f"{block}\n# Heading\n".replace("e\u0301", "é")
    assert extracted.text[extracted.body_start :] == "\n# Heading\n"
    assert (extracted.title, extracted.details["ticket"]) == ("T", "ZQX-991")


def test_front_matter_in_toml_counts_as_well():
    extracted = markdown('+++\ntitle = "T"\nkeywords = "a, b"\nwhen = 2024-01-31T12:00:00Z\n+++\r\ntext\r\n')
    assert (extracted.title, extracted.tags) == ("T", ("a", "b"))
    assert extracted.details == {"when": "2024-01-31T12:00:00+00:00"}
    assert extracted.text.split("\n")[5] == "text"


@pytest.mark.parametrize(
    "text",
    [
        "---\n: : [\n---\nbody",
        "---\nnever: closed\nbody",
        "---\na: !!binary aGVsbG8=\n---\nbody",
        "---\na: " + "[" * 3000 + "\n---\nbody",
        "+++\nnot toml\n+++\nbody",
    ],
)  # fmt: skip
def test_front_matter_that_makes_no_sense_is_content(text: str):
    head = split_front_matter(text)
    assert head.text == text
    assert (head.title, head.tags, head.details) == (None, (), {})


@given(st.text(alphabet="-+.\n:[]{}&*!a1 \"'#>|", max_size=60))
@settings(max_examples=300)
def test_any_front_matter_leaves_as_many_lines_as_there_were(block: str):
    text = f"---\n{block}\n---\nrest"
    head = split_front_matter(text)
    assert head.text.count("\n") == text.count("\n")
    json.dumps(head.details, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n\n## The `code` *and* **bold** [link](u) ##\n", "The code and bold link"),
        ("```\n# comment\n```\n\n# Real\n", "Real"),
        ('<h1 align="center">Project</h1>\n', "Project"),
        ("# Learning C# \n", "Learning C#"),
        ("## ##\n# Filled", "Filled"),
        ("no heading", None),
    ],
)
def test_the_first_heading_is_the_title_where_nothing_else_is(text: str, title: str | None):
    assert markdown(text).title == title


HEADINGS = {
    "A *great* tool": "A great tool",
    "**Bold**, ***both*** and **bold with *more* in it**": "Bold, both and bold with more in it",
    "An _old_ way and __two words__": "An old way and two words",
    "Why `2*3*4` and `__init__`": "Why 2*3*4 and __init__",
    "2 * 3 * 4": "2 * 3 * 4",
    "__init__, snake_case_name and _private": "__init__, snake_case_name and _private",
    "f(*args, **kwargs)": "f(*args, **kwargs)",
    "See [the guide](https://example.com/a_(b).html) and [this][ref]": "See the guide and this",
    "![Logo](logo.svg) Concord [![build](https://a.example/b.svg)](https://a.example)": "Logo Concord build",
    "Set up {#set-up}": "Set up",
    "Set up { .wide #set-up }": "Set up",
    "A {name} to be filled in": "A {name} to be filled in",
    "Five \\* stars, 1 < 2 and 3 > 2": "Five * stars, 1 < 2 and 3 > 2",
    "Line<br>break <a id='x'></a>": "Linebreak",
    "The ` key": "The ` key",
    "Learning C# #": "Learning C#",
    f"Status [![of all]({'long/' * 60})]({'address/' * 60})": "Status of all",
    "word " * 60: ("word " * 60)[:199],
}


@pytest.mark.parametrize(("raw", "words"), HEADINGS.items())
def test_a_title_has_the_words_of_the_first_heading_whatever_marks_they_have(raw: str, words: str):
    for text in (f"# {raw}\n\ntext\n", f"{raw.removesuffix(' #')}\n===\n\ntext\n"):
        extracted = markdown(text)
        (section,) = read_markdown(extracted.text)
        assert (extracted.title, section.heading) == (words, (words,))


def test_headings_of_many_marks_are_read_quickly():
    lines = "\n".join(f"# {mark * 500}" for mark in ("*a", "_a ", "`", "[", "[](", "<a", "`a``", "{#") * 50)
    start = process_time()
    markdown(lines)
    read_markdown(lines)
    assert process_time() - start < 5
