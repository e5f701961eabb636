"""Headings of text without markup: those of outlines and of releases, and none that only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.plain import read_plain

LIST = "* one\n\n* two\n\n* three\n  goes on\n\n"


def headings(text: str) -> list[tuple[str, ...]]:
    return [section.heading for section in read_plain(text)]


def heading_of(words: str, text: str) -> tuple[str, ...]:
    """Return the heading under which words stand."""
    at = text.index(words)
    return next(section.heading for section in read_plain(text) if section.start <= at < section.end)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "Changes with nginx 1.15.5                    02 Oct 2018",
            "Changes with nginx 1.15.4     25 Sep 2018",
        ),
        ("Changes with Apache 2.4.58", "Changes with Apache 2.4.57"),
        ("Changes with Apache HTTP Server 2.4.58", "Changes with Apache HTTP Server 2.4.57"),
    ],
)
def test_changes_with_a_release_are_told_under_it(first: str, second: str):
    text = f"{first}\n\n  *) Bugfix: pears.\n\n{second}\n\n  *) Feature: plums.\n\n  Changes with care.\n"
    assert heading_of("pears", text) == (" ".join(first.split()),)
    assert heading_of("with care", text) == (" ".join(second.split()),)


def test_a_heading_with_only_a_deeper_one_below_it_is_no_section_of_its_own():
    text = "Fruit\n=====\n\nPears\n-----\n\ngreen\n\nPlums\n-----\n\nblue\n"
    assert headings(text) == [("Fruit", "Pears"), ("Fruit", "Plums")]
    assert headings("Top\n===\n\nInstall\n-------\n\nwords\n") == [("Top", "Install")]


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("Version 3.2.1 (2020-01-01)", "Version 3.2.0 (2019-12-01)"),
        ("3.2.1 / 2020-01-01", "3.2.0 / 2019-12-01"),
        ("v1.5.4 (Feb 2023)", "v1.5.3 (dev version, unpublished)"),
        ("* Version 2.5.4 - April 21, 2022", "* Version 2.5.3 - November 5, 2021"),
        ("Changes in 1.2.13 (13 Oct 2022)", "Changes in 1.2.12 (27 Mar 2022)"),
        ("-" * 40 + "\nVersion 2.36.1", "-" * 40 + "\nVersion 2.36"),
    ],
)
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_the_names_of_releases_are_headings(newer: str, older: str, gap: str):
    text = f"What is new\n\n{newer}{gap}- one\n- two\n\n{older}{gap}- three\n"
    first, second = heading_of("two", text), heading_of("three", text)
    assert (len(first), len(second)) == (1, 1)
    assert (first, second) == tuple((" ".join(title.strip("-*\n .:").split()),) for title in (newer, older))


@pytest.mark.parametrize(
    "text",
    [
        LIST,
        "* Fruit\n\n** Apple\n\nOnly one such place.\n",
        "3.14\n2.71\n\n1.41\n1.73\n",
        "Version 1.0 (2019-01-01)\nVersion 1.1 (2020-01-01)\nVersion 1.2 (2021-01-01)\n\nThat is the list.\n",
        "/*\n * Copyright 2020\n *\n * Version 1.0\n */\n\nint main(void) {\n}\n",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str):
    assert headings(text) == [()]


LINES = st.sampled_from(
    ["* one", "** two", "*** three.", "Version 1.2", "v1.3 (2020)", "-----------", "words", "", "", "  more"]
)


@given(st.lists(LINES, max_size=40).map("\n".join))
@settings(max_examples=300)
def test_sections_are_the_whole_text_one_after_the_other(text: str):
    blocks = [block for section in read_plain(f"Heading\n=======\n\n{text}") for block in section.blocks]
    assert all(before.end == block.start for before, block in zip(blocks, blocks[1:], strict=False))
    assert not text or blocks[-1].end == len(text) + 17
