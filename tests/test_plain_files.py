"""Plain text, data and source code: what of them is text, title and type."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.extract.text import CodeExtractor, MarkdownExtractor, PlainExtractor
from concord.types import Extracted


def code(text: str, name: str) -> Extracted:
    return CodeExtractor().extract(text.encode(), name)


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.rst", "====\nThe Title\n====\n\nText", None),
        ("a.rst", ".. comment\n\nThe Title\n=========\n\nText", "The Title"),
        ("a.rst", ":mod:`os` --- Interfaces\n========================\n\nText", "os --- Interfaces"),
        ("a.adoc", "= The Title\nAuthor\n\ntext", "The Title"),
        ("a.org", "#+TITLE: The Title\n* Heading", "The Title"),
        ("a.txt", "The Title\n=========\n", None),
    ],
)
def test_light_markup_has_its_title_read(name: str, text: str, title: str | None):
    assert PlainExtractor().extract(text.encode(), name).title == title


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.py", '#!/usr/bin/python\n# coding: utf-8\n\n"""Reads files.\n\nMore."""\n', "Reads files."),
        ("a.go", "// Package a counts things.\npackage a\n", "Package a counts things."),
        ("b.js", "/*\n * Copyright X\n * Free to use\n */\n\n/** Draws pages. */\nlet x", "Draws pages."),
        ("c.sh", "#!/bin/sh\n# Backs up the database.\nset -e\n", "Backs up the database."),
        ("d.sql", "-- Users and roles\ncreate table u ();", "Users and roles"),
        ("e.c", "#include <stdio.h>\n// not about the file\n", None),
        ("f.py", "import os\n'''not the docstring'''\n", None),
        ("g.rs", "", None),
    ],
)  # fmt: skip
def test_code_is_titled_by_its_name_and_what_it_says_of_itself(name: str, text: str, title: str | None):
    extracted = code(text, name)
    assert extracted.title == (f"{name}: {title}" if title else name)
    assert (extracted.type, extracted.text) == ("code", text)


def test_code_knows_its_language():
    assert code("x = 1", "a.py").language == "python"
    assert code("#!/usr/bin/ruby\n", "tool").language == "ruby"


@given(st.binary(max_size=400), st.sampled_from(["a.md", "a.py", "a.js", "a.rst", "a.json", "a", "a.sql"]))
@settings(max_examples=200)
def test_no_bytes_can_break_a_text_extractor(data: bytes, name: str):
    for extractor in (MarkdownExtractor(), PlainExtractor(), CodeExtractor()):
        text = extractor.extract(data, name).text
        assert text.encode("utf-8") is not None
