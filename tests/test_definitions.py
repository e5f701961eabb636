"""What defines a name comes first: code, a heading, or an entry of a manual; also where words ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.ranking.definitions import asked_name
from concord.text.term_lines import explains
from support.recorders import write
from support.small_library import library, opened, titles


@pytest.mark.parametrize(
    ("query", "name", "owners"),
    [
        ("getconn", "getconn", ()),
        ("pool.acquire()", "acquire", ("pool",)),
        ("std::sort", "sort", ("std",)),
        ("def getconn", "getconn", ()),
        ("where is the class StaticFiles defined?", "StaticFiles", ()),
        ("definition of rmtree", "rmtree", ()),
        ("BaseClient implementation", "BaseClient", ()),
        ("what does max_connections do?", "max_connections", ()),
        ("What is the default value of `max_connections`?", "max_connections", ()),
        ("keepAlive option", "keepAlive", ()),
        ("the parameter wal_level", "wal_level", ()),
        ("what does subprocess.run do", "run", ("subprocess",)),
        ("what does parse_args do in argparse", "parse_args", ("argparse",)),
        ("default of http2.max_streams in nginx", "max_streams", ("http2", "nginx")),
    ],
)
def test_a_query_asks_for_the_definition_of_one_name(query: str, name: str, owners: tuple[str, ...]):
    asked = asked_name(query)
    assert asked is not None
    assert (asked.name, asked.owners) == (name, owners)


@pytest.mark.parametrize(
    "query",
    [
        "class action lawsuit",
        "how is it defined",
        "3.2",
        "what does open do",  # no word of prose
        "default value of port",
        "what does wal_level mean for max_wal_senders",  # two
        "max_connections reached after restart",  # more is asked for
        "postgresql max_connections",
        "what does 3.2.1 do",
        "what does --jobs do",
    ],
)
def test_a_query_that_asks_for_more_or_for_a_word_asks_for_no_definition(query: str):
    assert asked_name(query) is None


@pytest.mark.parametrize(
    "entry",
    [
        ".. function:: wait_for(aw, timeout)",
        "   .. py:method:: Task.wait_for(aw)",
        ".. c:function:: int *wait_for(int aw)",
        ".. function:: wait(aw)\n              wait_for(aw)",
        "* **wait_for** `number` (optional) - How long.",
        "- `wait_for`: how long",
        "  + **`pool.wait_for`** (number)",
        "- `wait_for`",
        "| `wait_for` | 30 | how long |",
        "wait_for (integer)\n\nHow long.",
        "wait_for\n\nHow long.",
        "`wait_for`:\n    How long.",
    ],
)
def test_a_line_whose_term_is_a_name_explains_it(entry: str):
    assert explains("wait_for", f"Much is said before.\n\n{entry}\n\nMore.")


@pytest.mark.parametrize(
    "text",
    [
        "Call wait_for (see below)\n\nfor more.",
        "- `wait_for` is faster now",
        "- wait_for",
        "- `wait_for_all`: how long",
        "| how long | `wait_for` |",
        ".. note:: wait_for",
        ".. function:: wait(wait_for)",
        ".. attribute:: wait_for.timeout",
        "Example::\n\n    wait_for(x)\n\nMore.",
        "wait_for(x)\n\nMore.",
        "first\nwait_for\nlast",
        "The last line:\n\nwait_for\n",
    ],
)
def test_a_line_that_mentions_a_name_explains_it_not(text: str):
    assert not explains("wait_for", text)


def test_on_a_web_page_a_term_has_its_parameters():
    page = "Before.\n\nasync asyncio.wait_for(aw, timeout)\n\nWaits."
    assert explains("wait_for", page, is_page=True)
    assert not explains("wait_for", page)


@pytest.mark.parametrize(
    "text", ["\n" * 20_000 + "x_y", ".. data:: " + "a." * 20_000 + "x_y_", "x_y_" * 20_000]
)
def test_a_long_text_is_read_in_one_pass(text: str):
    assert not explains("x_y", text)


SETTINGS = {
    "Tuning": "wal_level and wal_level: with wal_level set, do default to the value of wal_level.",
    "Reference": "fsync (boolean)\n\nWhether to be safe.\n\nwal_level (enum)\n\nHow much is written.",
    "Changes": "- `wal_level` does what it does by default\n- wal_level has a value",
}


@pytest.mark.parametrize(
    "query", ["wal_level", "what does wal_level do", "default value of wal_level", "wal_level setting"]
)
@pytest.mark.parametrize("mode", ["auto", "fts5"])
def test_the_entry_of_a_setting_comes_before_what_mentions_it(query: str, mode: str):
    assert titles(library(SETTINGS).search(query, mode=mode))[:1] == ["Reference"]


def test_a_term_of_a_definition_list_on_a_page_is_an_entry(tmp_path: Path):
    term = "<p>Much.</p><dl><dt><code>wal_level</code> (<em>enum</em>)</dt><dd>How much is written.</dd></dl>"
    write(tmp_path / "docs" / "reference.html", f"<h1>Reference</h1>{term}")
    write(tmp_path / "docs" / "tuning.md", SETTINGS["Tuning"])
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "docs")
        first = kb.search("what does wal_level do").hits[0]
    assert first.document.path == "docs/reference.html"


def test_of_entries_of_one_name_that_of_its_owner_comes_first():
    pages = {
        "asyncio": ".. function:: run(main)\n\n   Run it, and run subprocess and run more.",
        "subprocess": ".. function:: run(args)\n\n   Start a program.",
        "Guide": "subprocess.run is what to run; subprocess.run does run, subprocess.run.",
    }
    for query in ("subprocess.run", "what does subprocess.run do"):
        assert titles(library(pages).search(query))[:1] == ["subprocess"]
