"""A query that names a file, or a line of one, shows what stands there first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord import KnowledgeBase
from concord.text.citations import places_in
from support.recorders import write
from support.small_library import opened


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("shop/client.py:311", [("shop/client.py", (311, 311))]),
        ("data.json:1:4097-5376", [("data.json", (1, 1))]),
        ("why does client.py#L311-L320 fail", [("client.py", (311, 320))]),
        ("what is on line 311 of client.py?", [("client.py", (311, 311))]),
        ("filter.d/exim-spam.conf", [("filter.d/exim-spam.conf", None)]),
        ("why does example.com:80 refuse TLS", []),  # a port
        ("how do I roll this out? auth.md:1 only has an example of it", []),  # mentioned in a question
        ("http://localhost:8080/", []),
    ],
)
def test_places_are_read_as_programs_and_people_write_them(text: str, named: list[tuple[str, object]]):
    assert [(place.path, place.lines) for place in places_in(text)] == named


@given(st.text(st.sampled_from("ab./\\:#L19 \n-"), max_size=200))
def test_any_text_names_some_places_or_none(text: str):
    assert not any(place.is_reversed for place in places_in(text))


CLIENT = "".join(f"def step_{n}(session):\n    return session.send({n})\n\n\n" for n in range(120))


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    write(tmp_path / "code" / "shop" / "client.py", CLIENT)
    write(tmp_path / "code" / "shop" / "__init__.py", '"""The client of the shop: shop, client, py."""\n')
    write(tmp_path / "code" / "etc" / "jail.conf", "# bans by filter.d/exim-spam.conf\nbantime = 10m\n")
    write(tmp_path / "code" / "etc" / "filter.d" / "exim-spam.conf", "[Definition]\nfailregex = rejected\n")
    made = opened("memory://")
    made.add(tmp_path / "code")
    return made


@pytest.mark.parametrize(
    "query",
    [
        "shop/client.py:301",
        "code/shop/client.py:301-304",
        "client.py line 301",
        'File "/usr/lib/python3/site-packages/shop/client.py", line 301, in step_75',
        "client.py#L301",
    ],
)
def test_the_passage_that_has_the_line_comes_first(kb: KnowledgeBase, query: str):
    first = kb.search(query).hits[0]
    assert first.document.path == "code/shop/client.py"
    assert first.chunk.start_line <= 301 <= first.chunk.end_line
    assert "def step_75" in first.snippet


@pytest.mark.xfail(reason="a passage that holds the path is boosted past the file of that name", strict=True)
def test_a_file_that_is_named_comes_before_what_mentions_it(kb: KnowledgeBase):
    assert kb.search("filter.d/exim-spam.conf").hits[0].document.path == "code/etc/filter.d/exim-spam.conf"
    assert kb.search("exim-spam.conf").hits[0].document.path == "code/etc/filter.d/exim-spam.conf"


def test_a_place_that_is_not_there_or_is_filtered_out_changes_nothing(kb: KnowledgeBase):
    for query in ("shop/client.py:99999", "nowhere.py:3"):
        assert "place" not in kb.search(query).strategies_matched
    held = kb.search("shop/client.py:301", path="code/etc/**").hits
    assert {hit.document.path for hit in held} <= {"code/etc/jail.conf", "code/etc/filter.d/exim-spam.conf"}
    assert "place" not in kb.search("shop/client.py:301", type="markdown").strategies_matched


def test_a_path_that_begins_elsewhere_is_found_by_its_end(kb: KnowledgeBase):
    deep = "/home/u/work/team/product/backend/service/app/main/src/shop/client.py:301"
    assert kb.search(deep).hits[0].document.path == "code/shop/client.py"
    assert "place" not in kb.search("/usr/lib/other/client.py:301").strategies_matched
