"""`kb mcp` as a relay: what a client sees of an engine that it shares with others, and that may be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from concord.core.config import load_settings
from concord.engine import client
from support.engines import NO_ENGINE, engines, running, wait_until
from support.mcp_session import BOUND_S, KB, environment, write_docs
from test_mcp_stdio import HELLO, READY

pytestmark = pytest.mark.slow


class Agent:
    """An MCP client, line by line."""

    def __init__(self, home: Path, cwd: Path, *flags: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [*KB, *flags, "mcp"],
            env=environment(home, **variables),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self._number = 1
        self.send(HELLO)
        assert self.receive()["id"] == 1
        self.send(READY)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next answer, past notifications."""
        assert self.process.stdout
        while "id" not in (line := json.loads(self.process.stdout.readline())):
            pass
        found: dict[str, Any] = line
        return found

    def ask(self, tool: str, **arguments: Any) -> int:
        self._number += 1
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": self._number, "method": "tools/call", "params": params})
        return self._number

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its structured content, its words if it refused, or the protocol's error."""
        number = self.ask(tool, **arguments)
        answer = self.receive()
        assert answer["id"] == number
        if "error" in answer:
            return {"error": answer["error"]["message"]}
        result: dict[str, Any] = answer["result"]
        return {"refused": result["content"][0]["text"]} if result["isError"] else result["structuredContent"]

    def loads(self, *libraries: str) -> set[str]:
        """Return those of some libraries that the process has in memory."""
        maps = Path(f"/proc/{self.process.pid}/maps").read_text(encoding="utf-8")
        return {library for library in libraries if library in maps}

    def close(self) -> None:
        """Say that there is nothing more to come."""
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(BOUND_S) == 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait(BOUND_S)
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):
                stream.close() if stream else None


@contextmanager
def agents(*made: Agent) -> Iterator[tuple[Agent, ...]]:
    try:
        yield made
    finally:
        for agent in made:
            agent.end()


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose engine ends with the test; its name is short enough for a socket in it."""
    write_docs(tmp_path / "a" / "docs")
    write_docs(tmp_path / "b" / "docs")
    with tempfile.TemporaryDirectory() as short, engines(Path(short)):
        yield Path(short, "home")


def only(home: Path) -> int:
    (process,) = running(home.parent)
    return process


@pytest.mark.promise("I.relay.light", "I.engine.one")
def test_clients_share_one_engine_and_load_nothing_themselves(home: Path, tmp_path: Path):
    with agents(Agent(home, tmp_path / "a"), Agent(home, tmp_path / "a")) as (one, other):
        assert one.call("kb_add_source", path="docs")["added"] == 3
        assert other.call("kb_search", query="session token")["returned"] > 0
        assert len(running(home.parent)) == 1
        assert one.loads("pydantic_core", "apsw", "numpy", "onnxruntime") == set()
        one.close()
        other.close()


@pytest.mark.promise("I.relay.own")
def test_roots_jobs_and_latencies_are_each_clients_own(home: Path, tmp_path: Path):
    with agents(Agent(home, tmp_path / "a"), Agent(home, tmp_path / "b")) as (one, other):
        assert (
            "outside the folders" in one.call("kb_add_source", path=str(tmp_path / "b" / "docs"))["refused"]
        )
        assert other.call("kb_add_source", path=str(tmp_path / "b" / "docs"))["added"] == 3
        assert one.call("kb_get", citation="docs/auth.md")["path"].endswith("docs/auth.md")
        assert "kb_get" in one.call("kb_stats")["latencies_ms"]
        assert "kb_get" not in other.call("kb_stats")["latencies_ms"]


@pytest.mark.promise("I.relay.reconnects", "I.engine.dies")
def test_an_engine_that_is_killed_is_an_error_for_open_requests_and_the_next_ones_work(
    home: Path, tmp_path: Path
):
    with agents(Agent(home, tmp_path / "a")) as (agent,):
        assert agent.call("kb_add_source", path="docs")["added"] == 3
        failed: list[str] = []
        for _ in range(2):
            process = only(home)
            os.kill(process, signal.SIGSTOP)
            open_ones = {agent.ask("kb_search", query="token"), agent.ask("kb_list")}
            time.sleep(1)  # so that the relay has passed them on: what it has not is for the next engine
            os.kill(process, signal.SIGKILL)
            answers = [agent.receive(), agent.receive()]
            assert {answer["id"] for answer in answers} == open_ones
            failed += [answer["error"]["message"] for answer in answers if "error" in answer]
            assert agent.call("kb_search", query="session token")["returned"] > 0
            assert only(home) != process
        assert failed
        assert all("send the request again" in message for message in failed)


@pytest.mark.promise("I.engine.dies")
def test_of_fifty_calls_of_five_clients_none_is_lost_while_the_engine_is_killed(home: Path, tmp_path: Path):
    with agents(*(Agent(home, tmp_path / "a") for _ in range(5))) as clients:
        assert clients[0].call("kb_add_source", path="docs")["added"] == 3
        kept: list[str] = []
        so_far = iter(range(1, 51))

        def call(agent: Agent, tool: str, **arguments: Any) -> dict[str, Any]:
            answer = agent.call(tool, **arguments)
            if next(so_far) in (10, 25, 40):
                os.kill(only(home), signal.SIGKILL)
            return answer

        def work(numbered: tuple[int, Agent]) -> list[dict[str, Any]]:
            number, agent = numbered
            answers = []
            for turn in range(5):
                answers.append(call(agent, "kb_search", query="session token"))
                answers.append(call(agent, "kb_note", content=f"Note {number}-{turn} of the crowd."))
                kept.extend([f"Note {number}-{turn}"] if "document_id" in answers[-1] else [])
            return answers

        with ThreadPoolExecutor(5) as crowd:
            answers = [answer for several in crowd.map(work, enumerate(clients)) for answer in several]
        assert len(answers) == 50
        failed = [answer["error"] for answer in answers if "error" in answer]
        assert all("send the request again" in message for message in failed)
        assert len(failed) <= 15  # of each of five, at most the one that it was waiting for
        assert all(agent.call("kb_search", query="session token")["returned"] > 0 for agent in clients)
        listed = {row["title"] for row in clients[0].call("kb_list", source="notes")["documents"]}
        assert all(any(title.startswith(note) for title in listed) for note in kept)
    alone = environment(home, **{NO_ENGINE: "never"})
    # Nothing is damaged: at most, a note that was begun when the engine was killed is offered.
    done = subprocess.run([*KB, "doctor", "--json"], env=alone, capture_output=True)
    assert {finding["check"] for finding in json.loads(done.stdout)["findings"]} <= {"notes"}
    for command in (("sync",), ("doctor", "--fix"), ("doctor",)):
        done = subprocess.run([*KB, *command], env=alone, capture_output=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.promise("I.engine.cancel")
def test_a_client_that_goes_away_stops_the_indexing_it_asked_for(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_docs(tmp_path / "a" / "many", 3_000)
    with agents(Agent(home, tmp_path / "a"), Agent(home, tmp_path / "b")) as (one, other):
        one.ask("kb_add_source", path="many")
        assert wait_until(lambda: other.call("kb_stats")["documents"] > 0)
        one.process.kill()
        monkeypatch.setenv("KB_HOME", str(home))
        monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
        assert wait_until(lambda: (client.ask(load_settings(), "status") or {}).get("clients") == 1)
        stored = other.call("kb_stats")["documents"]
        assert stored < 3_000
        assert other.call("kb_stats")["documents"] == stored


@pytest.mark.promise("I.engine.fallback", "I.engine.never")
@pytest.mark.parametrize("why", ["no folder for a socket", "never"])
def test_where_no_engine_can_be_started_the_client_is_served_all_the_same(
    home: Path, tmp_path: Path, why: str
):
    variables = {NO_ENGINE: "never"} if why == "never" else {}
    (home / "cache").mkdir(parents=True)
    if why != "never":
        (home / "cache" / "engine").write_text("in the way")
    with agents(Agent(home, tmp_path / "a", **variables)) as (agent,):
        assert agent.call("kb_add_source", path="docs")["added"] == 3
        assert agent.loads("pydantic_core") == {"pydantic_core"}
        assert running(home.parent) == []
        agent.close()


def test_a_folder_that_is_configured_and_gone_is_said_before_anything_is_served(home: Path, tmp_path: Path):
    line = [*KB, "mcp"]
    for start in ("search", "never"):
        variables = environment(home, KB_MCP_ROOTS="gone", **{NO_ENGINE: start})
        done = subprocess.run(
            line, env=variables, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"error: gone does not exist")
