"""Globs over citation paths, against a matcher that is slow and plainly right."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.globs import glob_matches, is_prefix, literal_prefix


def plainly_matches(glob: str, path: str) -> bool:
    """Try everything that each wildcard could stand for."""

    @cache
    def matches(g: int, p: int) -> bool:
        if g == len(glob):
            return p == len(path)
        whole_folders = glob.startswith("**/", g) and (g == 0 or glob[g - 1] == "/")
        if whole_folders and matches(g + 3, p):
            return True
        if whole_folders:
            return any(path[q - 1] == "/" and matches(g + 3, q) for q in range(p + 1, len(path) + 1))
        if glob.startswith("**", g):
            stars = len(glob) - g - len(glob[g:].lstrip("*"))
            return any(matches(g + stars, q) for q in range(p, len(path) + 1))
        if glob[g] == "*":
            end = path.find("/", p) if "/" in path[p:] else len(path)
            return any(matches(g + 1, q) for q in range(p, end + 1))
        if p == len(path):
            return False
        return (path[p] == glob[g] or glob[g] == "?" and path[p] != "/") and matches(g + 1, p + 1)

    return matches(0, 0)


@given(
    st.lists(st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "."]), max_size=9).map("".join),
    st.text(alphabet="ab/.", max_size=12),
)
@settings(max_examples=500)
def test_a_glob_matches_what_the_plain_matcher_matches(glob: str, path: str):
    assert glob_matches(glob, path) == plainly_matches(glob, path)


@given(st.text(alphabet="ab/*?", max_size=8), st.text(alphabet="ab/", max_size=8))
def test_what_matches_begins_with_the_literal_prefix(glob: str, path: str):
    if glob_matches(glob, path):
        assert path.startswith(literal_prefix(glob))
    if is_prefix(glob):
        assert glob_matches(glob, path) == path.startswith(literal_prefix(glob))


@pytest.mark.parametrize(
    "glob", ["*a" * 40 + "b", "**a" * 40 + "b", "**/a*" * 20 + "b", "?*" * 40 + "b", "*" * 500]
)
def test_no_glob_takes_for_ever(glob: str):
    assert glob_matches(glob, "a" * 2000) == (set(glob) == {"*"})


def test_brackets_and_dots_are_themselves():
    assert glob_matches("app/[id]/page.*", "app/[id]/page.tsx")
    assert not glob_matches("a.c", "abc")
    assert glob_matches("a\n*", "a\nb")
