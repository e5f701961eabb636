"""`kb mcp` as a client starts it: a real process, the official client, and clients that misbehave."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from concord.mcp.table import TOOLS
from support.engines import engines
from support.mcp_session import BOUND_S, ERAS, KB, call, environment, over_stdio, refusal, run, write_docs

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True, params=["in its own process", "through an engine"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All that is promised here holds with and without an engine."""
    with nullcontext() if "own" in request.param else engines(tmp_path_factory.getbasetemp()):
        yield


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def stats(number: int) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": "kb_stats", "arguments": {}},
    }


class Raw:
    """A server spoken to line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdin
        assert process.stdout
        self.stdin, self.stdout = process.stdin, process.stdout

    def send(self, *messages: object) -> None:
        for message in messages:
            self.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
        self.stdin.flush()

    def receive(self) -> dict[str, Any]:
        line: dict[str, Any] = json.loads(self.stdout.readline())
        return line

    def stderr(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read()


@contextmanager
def raw(tmp_path: Path, **more: str) -> Iterator[Raw]:
    process = subprocess.Popen(
        [*KB, "mcp"],
        env=environment(tmp_path / "home", **more),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        yield Raw(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(BOUND_S)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream and not stream.closed:
                stream.close()


@pytest.mark.promise("mcp.session")
@pytest.mark.parametrize("era", ERAS)
def test_an_agent_adds_syncs_searches_reads_notes_and_removes(tmp_path: Path, era: str):
    docs = write_docs(tmp_path / "docs")

    async def scene() -> None:
        async with over_stdio(tmp_path / "home", tmp_path, era) as client:
            assert (await call(client, "kb_search", query="otters"))["returned"] == 0
            added = await call(client, "kb_add_source", path="docs", tags=["team"])
            assert (added["state"], added["added"], added["failed"]) == ("done", 3, [])
            (docs / "otters.md").write_text("# Otters\n\nOtters hold hands while asleep.\n", encoding="utf-8")
            synced = await call(client, "kb_sync", source="docs")
            assert (synced["added"], synced["unchanged"]) == (1, 3)
            found = await call(
                client, "kb_search", query="otters asleep", min_generation=synced["generation"]
            )
            best = found["results"][0]
            assert best["path"] == "docs/otters.md"
            assert "semantic" in best["found_by"]
            read = await call(client, "kb_get", citation=best["citation"])
            assert "hold hands" in read["text"]
            kept = await call(client, "kb_note", content="Otters are the team's mascot.", tags=["team"])
            found = await call(client, "kb_search", query="team mascot", tags=["team"])
            assert found["results"][0]["document_id"] == kept["document_id"]
            assert {row["source"] for row in (await call(client, "kb_list"))["sources"]} == {"docs", "notes"}
            removed = await call(client, "kb_remove_source", source="docs")
            assert removed["documents_deleted"] == 4
            assert (await call(client, "kb_stats"))["documents"] == 1
            assert "outside the folders" in await refusal(client, "kb_add_source", path="/etc")

    run(scene)


def test_stdout_carries_the_protocol_alone_and_stderr_is_quiet(tmp_path: Path):
    with raw(tmp_path, KB_NONSENSE="1") as server:
        server.send(HELLO)
        answers = [server.receive()]
        server.send(READY, stats(2))
        answers.append(server.receive())
        server.stdin.close()
        assert server.process.wait(BOUND_S) == 0
        assert [answer["id"] for answer in answers] == [1, 2]
        assert server.stdout.read() == ""
        assert "KB_NONSENSE" in server.stderr()


def test_what_is_no_message_is_answered_as_an_error_and_the_server_lives_on(tmp_path: Path):
    with raw(tmp_path) as server:
        server.send(HELLO)
        assert server.receive()["id"] == 1
        server.send("this is no JSON", "[]", '{"jsonrpc": "1.0"}', "42", '{"id": 3', "\ufffd\x00")
        codes = [server.receive()["error"]["code"] for _ in range(6)]
        assert codes == [-32700, -32600, -32600, -32600, -32700, -32700]
        server.send(READY, {"jsonrpc": "2.0", "id": 9, "method": "no/such"}, stats(10))
        answers = {answer["id"]: answer for answer in (server.receive(), server.receive())}
        assert answers[9]["error"]["code"] == -32601
        assert answers[10]["result"]["isError"] is False
        server.stdin.close()
        assert server.process.wait(BOUND_S) == 0
        assert server.stderr() == ""


def answer_to(server: Raw, **message: Any) -> dict[str, Any]:
    server.send({"jsonrpc": "2.0", **message})
    return server.receive()


@pytest.fixture(scope="module")
def greeted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    """One server for the tests that only ask."""
    with raw(tmp_path_factory.mktemp("asked")) as server:
        server.send(HELLO, READY)
        assert server.receive()["id"] == 1
        yield server


@pytest.mark.parametrize("odd", [1.5, None, "\ud800"])
def test_a_request_whose_id_no_answer_can_carry_is_refused_and_not_left_waiting(greeted: Raw, odd: object):
    greeted.send({"jsonrpc": "2.0", "id": odd, "method": "ping"}, {**stats(5), "method": "ping"})
    said, next_one = greeted.receive(), greeted.receive()
    assert (said["id"], said["error"]["code"]) == (None, -32600)
    assert "string or an integer" in said["error"]["message"]
    assert next_one["id"] == 5


@pytest.mark.parametrize("number", [10**20, "", "\U0001f600"])
def test_a_request_is_answered_under_its_own_id(greeted: Raw, number: object):
    assert answer_to(greeted, id=number, method="ping") == {"jsonrpc": "2.0", "id": number, "result": {}}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"method": "tools/call", "params": []}, -32602),
        ({"method": 5}, -32600),
        ({}, -32600),
        ({"method": "ping", "jsonrpc": "1.0"}, -32600),
        ({"method": "no/such \ud800"}, -32601),
    ],
)
def test_a_request_that_is_wrong_is_answered_under_its_own_id(greeted: Raw, wrong: dict[str, Any], code: int):
    said = answer_to(greeted, id=6, **wrong)
    assert (said["id"], said["error"]["code"]) == (6, code)


@pytest.mark.parametrize("levels", [100, 400, 5_000])
def test_a_request_that_is_nested_too_deeply_is_told_so_and_the_server_lives_on(greeted: Raw, levels: int):
    deep = "[" * levels + '"]}"' + "]" * levels
    greeted.send(f'{{"jsonrpc":"2.0","method":"ping","params":{{"id":1,"x":{deep}}},"id":9}}')
    said = greeted.receive()
    assert said["id"] == (9 if levels < 1_000 else None)  # as deep as Python reads
    assert ("nested too deeply" in said.get("error", {}).get("message", "")) == (levels > 100)


@pytest.mark.promise("mcp.bad-input")
@pytest.mark.parametrize("tool", [row.name for row in TOOLS])
def test_an_error_is_text_alone_because_the_output_schema_has_no_place_for_it(greeted: Raw, tool: str):
    params = {"name": tool, "arguments": {"nonsense": 1}}
    result = answer_to(greeted, id=10, method="tools/call", params=params)["result"]
    assert result["isError"] is True
    assert "structuredContent" not in result
    (block,) = result["content"]
    assert block["text"].startswith("Error (BadValue): ")
    assert f"{tool} has no argument 'nonsense'" in block["text"]
    assert f"\nHint: {tool} takes: " in block["text"]


def test_notifications_and_answers_get_no_answer_whatever_their_id(greeted: Raw):
    greeted.send({**READY, "id": None})
    greeted.send({"jsonrpc": "2.0", "id": 77, "result": {}})
    greeted.send({"jsonrpc": "2.0", "method": "concord/refused", "params": {"id": 1}})
    assert answer_to(greeted, id=78, method="ping")["id"] == 78
    assert answer_to(greeted, id=79, result=5)["id"] is None  # none of the client's own requests


def test_a_call_before_hello_is_refused_and_hello_still_works(tmp_path: Path):
    with raw(tmp_path) as server:
        server.send(stats(1))
        assert "error" in server.receive()
        server.send({**HELLO, "id": 2}, READY, stats(3))
        assert [server.receive()["id"], server.receive()["id"]] == [2, 3]


@pytest.mark.promise("mcp.vanish")
def test_a_client_that_vanishes_in_the_middle_of_a_call_leaves_no_server_behind(tmp_path: Path):
    with raw(tmp_path) as server:
        server.send(HELLO, READY)
        server.receive()
        server.send(stats(2))
        server.stdin.close()
        server.stdout.close()
        assert server.process.wait(BOUND_S) == 0
        assert server.stderr() == ""


@pytest.mark.promise("mcp.vanish")
def test_a_client_that_stops_reading_ends_the_server_though_its_stdin_stays_open(tmp_path: Path):
    with raw(tmp_path) as server:
        server.send(HELLO, READY)
        server.receive()
        server.stdout.close()
        server.send(stats(2))
        assert server.process.wait(BOUND_S) == 0
        assert server.stderr() == ""


def test_a_signal_ends_the_server_without_a_traceback(tmp_path: Path):
    with raw(tmp_path) as server:
        server.send(HELLO, READY, stats(2))
        server.receive()
        server.receive()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(BOUND_S) in (0, -signal.SIGTERM)
        assert server.stderr() == ""


def test_a_store_that_can_never_be_ends_the_server_before_it_says_hello(tmp_path: Path):
    with raw(tmp_path, KB_STORE_URL="bogus") as server:
        assert server.process.wait(BOUND_S) == 2
        assert server.stdout.read() == ""
        said = server.stderr()
        assert said.startswith("error: ")
        assert "hint: " in said


def test_a_folder_of_mine_that_is_configured_may_be_indexed_too(tmp_path: Path):
    (tmp_path / "started-here").mkdir()
    docs = write_docs(tmp_path / "elsewhere" / "docs")

    async def scene() -> None:
        home, cwd = tmp_path / "home", tmp_path / "started-here"
        async with over_stdio(home, cwd) as client:
            assert "outside" in await refusal(client, "kb_add_source", path=str(docs))
        async with over_stdio(home, cwd, KB_MCP_ROOTS=str(docs.parent)) as client:
            assert (await call(client, "kb_add_source", path=str(docs)))["added"] == 3

    run(scene)
