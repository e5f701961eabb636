"""Nobody waits for a strategy that is late, neither the answer nor the exit of the process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import concord
from concord.core import plugins
from concord.core.errors import BackendDown, DeadlinePassed
from concord.core.protocols import Strategy
from concord.search.legs import ExactWords, RelaxedWords, Tools
from concord.search.pipeline import search
from concord.types import Leg, Query, RankedList, Request, Scored
from support.engines import plain_environment
from support.small_library import library

TESTS = Path(__file__).parent


class Waiting:
    """A strategy that answers when it is told to."""

    leg: Leg = "semantic"

    def __init__(self, name: str = "semantic") -> None:
        self.name = name
        self.started = threading.Event()
        self.go_on = threading.Event()

    def search(self, query: Query) -> RankedList:
        self.started.set()
        self.go_on.wait()
        return RankedList(self.name, self.leg, [Scored(1, 0.9)])


class Broken:
    """A strategy that fails."""

    def __init__(self, name: str, fault: Exception) -> None:
        self.name = name
        self.leg: Leg = "semantic" if name == "semantic" else "lexical"
        self._fault = fault

    def search(self, query: Query) -> RankedList:
        raise self._fault


def tools(*strategies: Strategy) -> Tools:
    kb = library()
    words: list[Strategy] = [ExactWords(kb.store.words), RelaxedWords(kb.store.words)]
    mine = {strategy.name for strategy in strategies}
    chosen = [*(word for word in words if word.name not in mine), *strategies]
    return Tools(kb.store, chosen, kb.settings, "default")


@pytest.mark.promise("003.deadline", "000.degrade.semantic")
def test_a_late_strategy_is_named_with_its_reason_and_stops_nobody():
    late = Waiting()
    try:
        answer = search(Request("login token", deadline_ms=800), tools(late))
    finally:
        late.go_on.set()
    assert [hit.document.title for hit in answer.hits] == ["Login"]
    assert [(part.strategy, part.reason) for part in answer.degraded] == [
        ("semantic", "no answer within 800 ms")
    ]
    assert "semantic" not in answer.strategies_matched
    assert "semantic" not in answer.timings_ms


@pytest.mark.promise("000.degrade.lexical")
def test_nothing_found_while_a_search_for_words_failed_is_an_error():
    broken = Broken("fts_relaxed", BackendDown("the disk is gone"))
    assert search(Request("login"), tools(broken)).hits  # all of its words are somewhere
    with pytest.raises(BackendDown, match="the disk is gone"):
        search(Request("login zeppelin", mode="fts5"), tools(broken))


def test_meaning_alone_that_comes_too_late_is_an_error_and_not_nothing_found():
    late = Waiting()
    try:
        with pytest.raises(DeadlinePassed, match="no answer within 20 ms") as fault:
            search(Request("login", mode="semantic", deadline_ms=20), tools(late))
    finally:
        late.go_on.set()
    assert "deadline" in (fault.value.hint or "")


RUN = """
import sys
from concord.core import plugins
from concord.cli.main import main
plugins.TABLES["embedders"]["hung"] = "support.hung_embedder:HungEmbedder"
sys.exit(main(sys.argv[1:]))
"""


def kb(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run `kb` with an embedder that hangs on every query; the time limit is what the test is about."""
    environment = {
        **plain_environment(),
        "KB_HOME": str(home),
        "KB_EMBED_PROVIDER": "hung",
        "PYTHONPATH": f"{Path(concord.__file__).parent.parent}{os.pathsep}{TESTS}",
    }
    return subprocess.run(
        [sys.executable, "-c", RUN, *args],
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.promise("003.deadline.exit")
def test_a_finished_command_never_waits_for_a_hung_strategy(tmp_path: Path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Login\n\nA token is issued after login.\n", encoding="utf-8")
    assert kb(tmp_path / "home", "add", str(folder)).returncode == 0
    done = kb(tmp_path / "home", "search", "token", "--deadline-ms", "2000", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["results"][0]["path"] == "docs/a.md"
    assert answer["degraded"] == [{"strategy": "semantic", "reason": "no answer within 2000 ms"}]
    assert "hung" not in plugins.TABLES["embedders"]
