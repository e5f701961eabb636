"""What defines a name comes first: code, a heading, or an entry of a manual; also where words ask for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from concord import KnowledgeBase
from concord.answering.tools import SearchTools
from concord.cli.hits import show
from concord.errors import StoreError
from concord.ranking.named.asked_names import asked_names
from concord.search import search
from concord.storage import LexicalIndex
from concord.strategies.lexical import ExactWords, RelaxedWords
from concord.text.heading_names import headed_at, is_heading_of
from concord.text.term_lines import explained_at
from concord.types import Answer, AnyOf, Match, Phrase, Request, Scored
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
        ("where is the Retry exception defined in celery?", "Retry", ("celery",)),
        ("where is Retry declared in the celery.app", "Retry", ("celery.app",)),
        ("where is the Pool class implemented", "Pool", ()),
        ("implementation of the Lagged error in broadcast", "Lagged", ("broadcast",)),
        ("BaseClient implementation", "BaseClient", ()),
        ("what does max_connections do?", "max_connections", ()),
        ("What is the default value of `max_connections`?", "max_connections", ()),
        ("keepAlive option", "keepAlive", ()),
        ("the parameter wal_level", "wal_level", ()),
        ("what does subprocess.run do", "run", ("subprocess",)),
        ("what does parse_args do in argparse", "parse_args", ("argparse",)),
        ("default of http2.max_streams in nginx", "max_streams", ("http2", "nginx")),
        ("what does wait_for return", "wait_for", ()),
        ("which exceptions does wait_for raise?", "wait_for", ()),
        ("wait_for parameters", "wait_for", ()),
        ("how does wait_for work", "wait_for", ()),
        ("wait_for(x, timeout=max(1, n))", "wait_for", ()),
        ("connect(host, port=22)", "connect", ()),
        ("where is WAIT_MS set", "WAIT_MS", ()),
        ("KeepAlive=", "KeepAlive", ()),
        ("what does Type= do", "Type", ()),
        ("asyncio python wait_for", "wait_for", ("asyncio",)),
        ("tasks.py wait_for", "wait_for", ("tasks.py",)),
        ("tasks.py connect", "connect", ("tasks.py",)),
        ("where is bantime configured?", "bantime", ()),
        ("default bantime", "bantime", ()),
        ("what is the default value of port", "port", ()),
        ("[nginx-http-auth] jail", "nginx-http-auth", ("jail",)),
    ],
)
def test_a_query_asks_for_the_definition_of_one_name(query: str, name: str, owners: tuple[str, ...]):
    (asked,) = asked_names(query)
    assert (asked.name, asked.owners) == (name, owners)


@pytest.mark.parametrize(
    "query", ["wait_for|add_int", "wait_for add_int", "wait_for and add_int", "wait_for vs add_int?"]
)
def test_a_query_may_ask_for_several_names(query: str):
    assert [asked.name for asked in asked_names(query)] == ["wait_for", "add_int"]


@pytest.mark.parametrize(
    "query",
    [
        "class action lawsuit",
        "how is it defined",
        "3.2",
        "what does open do",  # no word of prose
        "what does open return",
        "open parameters",
        "what does wal_level mean for max_wal_senders",  # two
        "max_connections reached after the last restart",  # more is asked for
        "where is " + "a." * 40 + "b set",  # nothing has so many parts, each of which would be looked for
        "[" + "a." * 40 + "b]",
        "is wait_for faster than add_int",
        "what does 3.2.1 do",
        "what does --jobs do",
    ],
)
def test_a_query_that_asks_for_more_or_for_a_word_asks_for_no_definition(query: str):
    assert asked_names(query) == ()


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
        '| <a id="wait_for">wait_for</a> | how long |',
        "| [`wait_for`](../tasks.md#wait_for) | how long |",
        "wait_for (integer)\n\nHow long.",
        "wait_for\n\nHow long.",
        "`wait_for`:\n    How long.",
        "       wait_for\n           How long.",
        "       wait_for=\n           How long.",
        "OPTIONS\n       wait_all=, wait_for=seconds\n              How long.",
    ],
)
def test_a_line_whose_term_is_a_name_explains_it(entry: str):
    text = f"Much is said before.\n\n{entry}\n\nMore."
    at = explained_at("wait_for", text)
    assert at is not None
    assert "wait_for" in text[at:].partition("\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        "Call wait_for (see below)\n\nfor more.",
        "- `wait_for` is faster now",
        "- wait_for",
        "- `wait_for_all`: how long",
        "| how long | `wait_for` |",
        "- [wait_for](#wait_for)",
        ".. note:: wait_for",
        ".. function:: wait(wait_for)",
        ".. attribute:: wait_for.timeout",
        "Example::\n\n    wait_for(x)\n\nMore.",
        "wait_for(x)\n\nMore.",
        "first\nwait_for\nlast",
        "The last line:\n\nwait_for\n",
        "    which is why\n    wait_for\n        is indented",
        "    An example:\n\n        wait_for=3\n\n    Mind the number.",
    ],
)
def test_a_line_that_mentions_a_name_explains_it_not(text: str):
    assert explained_at("wait_for", text) is None


@pytest.mark.parametrize(
    ("owner", "heading", "is_of"),
    [
        ("", "wait_for", True),
        ("", "wait_for()", True),
        ("", "asyncio.wait_for(aw, timeout[, loop])", True),
        ("", ".wait_for()", True),
        ("asyncio", "wait_for", True),
        ("asyncio", "asyncio.wait_for(aw)", True),
        ("asyncio", "pool.wait_for(aw)", False),
        ("asyncio", "my_asyncio.wait_for(aw)", False),
        ("", "wait_for_all()", False),
        ("", "How wait_for works", False),
        ("", "wait_for and its friends", False),
    ],
)
def test_a_heading_is_a_name_alone_with_its_parameters_or_with_its_owner(owner, heading, is_of):
    assert is_heading_of("wait_for", owner, heading) == is_of


def test_a_name_is_defined_under_its_heading_inside_a_passage_of_several_sections():
    section = '### `{}` <a id="{}"></a>\n\n+ Default: `{}`\n\nHow long at most.\n'
    text = "\n".join(
        section.format(name, name, at) for at, name in enumerate(("bodyLimit", "wait_for", "poll"))
    )
    at = headed_at("wait_for", "", text)
    assert at == text.index("### `wait_for`")
    assert headed_at("wait", "", text) is None
    assert headed_at("wait_for", "", f"```\n{text}```\n") is None  # an example


def test_where_a_name_is_defined_is_found_among_many_pages_about_it(tmp_path: Path):
    for at in range(60):
        write(
            tmp_path / "kit" / f"page{at}.md",
            f"# Retries {at}\n\nA retry in the kit is defined as retry {at}.\n",
        )
    write(
        tmp_path / "kit" / "errors.py",
        "class Lost(Exception):\n    pass\n\n\nclass Retry(Exception):\n    pass\n",
    )
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "kit")
        for query in ("where is Retry defined in kit", "where is the Retry exception defined?"):
            assert kb.search(query).hits[0].document.path == "kit/errors.py", query


def test_of_a_page_called_by_a_name_its_beginning_comes_first(tmp_path: Path):
    pages = tmp_path / "docs"
    for at in range(8):
        text = f"# Guide {at}\n\n" + "Call waitFor twice: waitFor, waitFor and waitFor. " * 4
        write(pages / f"guide{at}.md", f"{text}\n\n| API | allowed |\n|---|---|\n| other | no |\n")
    more = "\n\n".join(f"## Part {at}\n\n" + "waitFor is often called. " * 30 for at in range(4))
    write(pages / "waitFor.md", f"---\ntitle: waitFor\n---\n\nWaits until something happens.\n\n{more}\n")
    with opened(tmp_path) as kb:
        kb.add(pages)
        hit = kb.search("what does waitFor do").hits[0]
    assert (hit.document.path, hit.chunk.index) == ("docs/waitFor.md", 0)


def test_on_a_web_page_a_term_has_its_parameters():
    page = "Before.\n\nasync asyncio.wait_for(aw, timeout)\n\nWaits."
    assert explained_at("wait_for", page, is_page=True) == page.index("async")
    assert explained_at("wait_for", page) is None


@pytest.mark.parametrize(
    "text",
    ["\n" * 20_000 + "x_y", ".. data:: " + "a." * 20_000 + "x_y_", "x_y_" * 20_000, "a, " * 20_000 + "x_y"],
)
def test_a_long_text_is_read_in_one_pass(text: str):
    assert explained_at("x_y", text) is None


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


NAMED = """\
class Message:
    def add_int(self, number):
        \"\"\"Take the number.\"\"\"
        self.packet.write(number)

    def add_bytes(self, block):
        \"\"\"Take the block, whatever is in it.\"\"\"
        self.packet.write(block)
"""
# Many hold the parts of the names, and their neighbours' words, but not the names.
NOISE = "# what does it return, which exceptions raise: add one int, bytes to add, parameters\n\n\n"


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def code(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    root = tmp_path_factory.mktemp("code")
    write(root / "wire" / "message.py", NAMED)
    write(
        root / "wire" / "calls.py", "m.add_bytes(what, does, return)\nm.add_bytes(raise_, parameters)\n" * 3
    )
    for number in range(60):
        write(root / "wire" / f"other_{number}.py", NOISE * (1 + number % 3) + f"number = {number}\n")
    with opened("memory://" if request.param == "memory" else root) as kb:
        kb.add(root / "wire")
        yield kb


@pytest.mark.parametrize(
    "query",
    [
        "add_bytes",
        "add_bytes(b, timeout=3)",
        "wire python add_bytes",
        "what does add_bytes return",
        "which exceptions does add_bytes raise",
        "add_bytes parameters",
        "message.py add_bytes",
        "where is add_bytes defined",
        "add_bytes|add_int",
        "add_bytes and add_int",
    ],
)
def test_a_definition_comes_first_whatever_words_ask_for_it_and_its_line_is_shown(
    code: KnowledgeBase, query: str
):
    first = code.search(query, mode="fts5").hits[0]
    assert first.document.path == "wire/message.py"
    assert "def add_bytes" in first.snippet


def test_words_beside_a_name_that_are_not_of_its_place_ask_for_something_else(code: KnowledgeBase):
    answer = code.search("add_bytes neighbours", mode="fts5", explain=True)
    assert all(hit.explanation["lifted"] is None for hit in answer.hits)


def test_a_definition_far_down_is_read_though_the_best_passages_have_none(tmp_path: Path):
    for number in range(30):
        write(tmp_path / "code" / f"use_{number}.py", f"value(MAX_PACKET, {number})\n" * 3)
    write(tmp_path / "code" / "limits.py", "MAX_PACKET = 7\n" + "x = y\n" * 60)
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "code")
        first = kb.search("value of MAX_PACKET", mode="fts5", top=3).hits[0]
    assert (first.document.path, "MAX_PACKET = 7" in first.snippet) == ("code/limits.py", True)


def test_words_that_a_text_has_as_they_were_asked_are_no_name(tmp_path: Path):
    write(tmp_path / "d" / "app.py", "income = 3\n\n\ndef income_of(it):\n    return income\n")
    write(tmp_path / "d" / "income.md", "# Foundation\n\nThe source of income of the foundation are gifts.\n")
    with opened("memory://") as kb:
        kb.add(tmp_path / "d")
        assert kb.search("source of income", mode="fts5").hits[0].document.path == "d/income.md"


def routes(tmp_path: Path) -> Path:
    """Write a project where sixty files mention Route more often than the one that defines it."""
    project = tmp_path / "project"
    project.mkdir()
    for at in range(60):
        uses = "".join(f"    Route(Route.of({n}), Route)\n" for n in range(9))
        (project / f"use{at}.py").write_text(f"def call{at}(Route):\n{uses}", "utf-8")
    steps = "".join(f"    def step_{n}(self):\n        return self.stops[{n}].name\n\n" for n in range(9))
    (project / "road.py").write_text(f"class Route:\n{steps}", "utf-8")
    return project


def test_a_definition_is_found_among_very_many_passages_that_mention_the_name_more_often(tmp_path: Path):
    project = routes(tmp_path)
    for query in ("class Route", "where is Route defined"):
        with opened(tmp_path) as kb:
            kb.add(project)
            assert kb.search(query).hits[0].document.path.endswith("road.py"), query


class WithoutPhrases:
    """A lexical index that finds words, and does something else when phrases are looked for."""

    def __init__(self, index: LexicalIndex, instead: Callable[[], object]) -> None:
        self._index, self._instead = index, instead

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)

    def search(self, match: Match, *given: Any) -> list[Scored]:
        if isinstance(match, AnyOf) and all(isinstance(part, Phrase) for part in match.parts):
            self._instead()
        return self._index.search(match, *given)


def searched(kb: KnowledgeBase, query: str, instead: Callable[[], object], deadline_ms: float) -> Answer:
    index = kb.store.lexical
    store: Any = SimpleNamespace(
        catalog=kb.store.catalog, vectors=kb.store.vectors, lexical=WithoutPhrases(index, instead)
    )
    used = SearchTools(store, [ExactWords(index), RelaxedWords(index)], kb.settings, "default")
    return search(Request(query, mode="fts5", deadline_ms=deadline_ms), used)


def test_the_search_for_a_definition_may_be_late_or_fail_and_the_answer_is_there_all_the_same(tmp_path: Path):
    release = threading.Event()

    def fail() -> None:
        raise StoreError("the disk is full")

    with opened("memory://") as kb:
        kb.add(routes(tmp_path))
        try:
            late = searched(kb, "Route", release.wait, 1500)
        finally:
            release.set()
        failed = searched(kb, "Route", fail, 60_000)
    assert [(one.strategy, one.reason) for one in late.degraded] == [
        ("fts_definition", "no answer within 1500 ms")
    ]
    assert [(one.strategy, one.reason) for one in failed.degraded] == [("fts_definition", "the disk is full")]
    assert late.hits
    assert failed.hits


def test_an_ordinary_word_is_looked_for_as_a_definition_only_where_code_mentions_it(tmp_path: Path):
    for at in range(60):
        write(tmp_path / "prose" / f"{at}.md", f"A route of type {at}, by road: route after route.\n")
    with opened("memory://") as kb:
        kb.add(tmp_path / "prose")
        assert "fts_definition" not in kb.search("route", mode="fts5").timings_ms
        kb.add(routes(tmp_path))
        assert "fts_definition" in kb.search("route", mode="fts5").timings_ms


def test_what_is_found_by_a_keyword_and_a_name_is_found_by_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with opened(tmp_path) as kb:
        kb.add(routes(tmp_path))
        answer = kb.search("Route", mode="fts5")
    assert answer.hits[0].found_by == ("fts_definition",)
    show(answer)
    assert "words (fts_definition)" in capsys.readouterr().out


def test_a_long_definition_is_found_among_short_passages_that_only_look_like_one(tmp_path: Path):
    project = routes(tmp_path)
    for at in range(40):
        (project / f"note{at}.py").write_text(f"# Of class route {at}.\n", "utf-8")
    with opened(tmp_path) as kb:
        kb.add(project)
        assert kb.search("Route", mode="fts5").hits[0].document.path.endswith("road.py")
