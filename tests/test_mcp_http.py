"""MCP over HTTP: real sockets, the official client, and callers that must not get in or get too much."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from click.testing import CliRunner
from mcp.client import Client
from mcp.client.session import ListRootsFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl

from concord.cli.main import kb
from concord.core import plugins
from concord.core.errors import BadValue, Unavailable
from concord.mcp.table import TOOLS
from concord.web import guard
from concord.web import server as web
from concord.web.guard import MCP, HttpLimits
from concord.web.keys import add_token, grant_for, read_grants
from support import kb_process, web_server
from support.gated_embedder import GatedEmbedder
from support.mcp_session import (
    BOUND_S,
    ERAS,
    KB,
    call,
    environment,
    refusal,
    run,
    serving,
    write_docs,
)
from support.web_server import PLENTY, hello

HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def post(
    url: str, body: bytes = b"", method: str = "POST", path: str = "", **headers: str
) -> tuple[int, str]:
    """Send one request as it is, and return the status and the body."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=BOUND_S)
    try:
        given = {**HEADERS, **{key.replace("_", "-"): value for key, value in headers.items()}}
        connection.request(method, path or parts.path, body or hello(), given)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8")
    finally:
        connection.close()


@contextmanager
def in_thread(
    home: Path, limits: HttpLimits = PLENTY, tokens: Path | None = None, **settings: Any
) -> Iterator[str]:
    """Serve MCP from a thread of this process, so that limits can be made small."""
    with web_server.serving(home, limits, tokens, **settings) as url:
        yield f"{url}{MCP}"


@asynccontextmanager
async def client_of(
    url: str, era: str = "legacy", token: str = "", roots: ListRootsFnT | None = None
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=BOUND_S) as web,
        Client(streamable_http_client(url, http_client=web), mode=era, list_roots_callback=roots) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One `kb serve` for the tests that only ask."""
    place = tmp_path_factory.mktemp("served")
    write_docs(place / "docs")
    with serving(place / "home", place) as url:
        yield url


@pytest.mark.promise("mcp.http.session")
@pytest.mark.parametrize("era", ERAS)
def test_an_agent_works_over_http_in_either_era(server: str, era: str):
    async def scene() -> None:
        async with client_of(server, era) as client:
            assert len((await client.list_tools()).tools) == 8
            added = await call(client, "kb_add_source", path="docs")
            assert added["added"] + added["unchanged"] == 3
            found = await call(client, "kb_search", query="session token")
            assert found["results"][0]["path"] == "docs/auth.md"
            assert "session token" in (await call(client, "kb_get", citation="docs/auth.md"))["text"]
            assert (await client.list_resources()).resources
            assert "outside" in await refusal(client, "kb_add_source", path="/etc")
            for row in TOOLS:
                assert "has no argument 'nonsense'" in await refusal(client, row.name, nonsense=1)

    run(scene)


@pytest.mark.promise("mcp.http.host")
@pytest.mark.parametrize("host", ["evil.example:80", "127.0.0.1.evil.example"])
def test_a_request_for_another_host_is_refused(server: str, host: str):
    assert post(server, Host=host)[0] == 421


@pytest.mark.promise("mcp.http.origin")
@pytest.mark.parametrize("origin", ["https://localhost.evil.example", "null"])
def test_a_request_of_another_origin_is_refused(server: str, origin: str):
    assert post(server, Origin=origin)[0] == 403


def test_requests_of_this_machine_are_taken(server: str):
    port = urlsplit(server).port
    assert post(server)[0] == 200
    assert post(server, Host=f"localhost:{port}", Origin=f"http://localhost:{port}")[0] == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_guard_stands_before_every_path_and_method(server: str, method: str):
    assert post(server, method=method, path="/other", Host="evil.example")[0] == 421
    assert post(server, method=method, path="/other")[0] == 404


@pytest.mark.parametrize("era", ["", "MCP-Protocol-Version: 2026-07-28\r\n"])
def test_a_caller_that_hangs_up_in_the_middle_leaves_the_server_standing_and_its_log_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, era: str
):
    with in_thread(tmp_path / "home") as url:
        parts = urlsplit(url)
        body = hello()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n{era}"
            f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        for sent in (head[:20], head, head + body[:10], head + body):
            with socket.create_connection((parts.hostname, parts.port), timeout=BOUND_S) as connection:
                connection.sendall(sent)
        assert post(url)[0] == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.promise("mcp.http.bounds")
def test_a_request_that_is_too_long_is_refused(tmp_path: Path):
    with in_thread(tmp_path / "home", HttpLimits(max_bytes=2_000, max_connections=20)) as url:
        assert post(url, hello(padding="x" * 3_000))[0] == 413
        assert post(url, hello(padding="x" * 3_000), MCP_Protocol_Version="2026-07-28")[0] == 413
        assert post(url)[0] == 200


@pytest.mark.promise("mcp.http.bounds")
@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_caller_that_is_too_slow_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
):
    monkeypatch.setattr(web, "HEADERS_S", 0.1)
    monkeypatch.setattr(guard, "BODY_S", 0.1)
    with in_thread(tmp_path / "home") as url:
        parts = urlsplit(url)
        with socket.create_connection((parts.hostname, parts.port), timeout=BOUND_S) as connection:
            connection.sendall(sent)
            while connection.recv(4096):
                pass
        assert post(url)[0] == 200


@pytest.mark.promise("mcp.http.bounds")
def test_too_many_callers_at_once_are_told_to_come_back(tmp_path: Path):
    with in_thread(tmp_path / "home", HttpLimits(max_bytes=2_000, max_connections=3)) as url:
        parts = urlsplit(url)
        held = [socket.create_connection((parts.hostname, parts.port), timeout=BOUND_S) for _ in range(4)]
        try:
            assert post(url)[0] == 503
        finally:
            for connection in held:
                connection.close()
        while post(url)[0] == 503:  # until the server has noticed that they have gone
            pass
        assert post(url)[0] == 200


@pytest.mark.promise("mcp.http.token")
def test_with_tokens_every_request_needs_one(tmp_path: Path):
    token = add_token(tmp_path / "tokens", "team")
    with in_thread(tmp_path / "home", tokens=tmp_path / "tokens") as url:
        for wrong in (
            "",
            "Bearer",
            "Bearer ",
            "Bearer wrong",
            f"Basic {token}",
            f"Bearer {token}x",
            "Bearer é",
        ):
            headers: dict[str, Any] = {"Authorization": wrong} if wrong else {}
            status, said = post(url, **headers)
            assert status == 401
            assert "token" in json.loads(said)["message"]
        assert post(url, Authorization=f"Bearer {token}")[0] == 200
        assert post(url, Authorization=f"Bearer {token}", Host="evil.example")[0] == 421


@pytest.mark.promise("mcp.http.orgs")
@pytest.mark.parametrize("era", ERAS)
def test_a_token_sees_its_own_organisation_alone(tmp_path: Path, era: str):
    red, blue = (add_token(tmp_path / "tokens", org) for org in ("red", "blue"))

    async def scene() -> None:
        async with client_of(url, era, red) as client:
            await call(client, "kb_note", content="The red team's secret is a walrus.")
            assert (await call(client, "kb_search", query="walrus"))["org"] == "red"
        async with client_of(url, era, blue) as client:
            found = await call(client, "kb_search", query="walrus")
            assert (found["org"], found["returned"]) == ("blue", 0)
            assert (await call(client, "kb_list"))["sources"] == []
            assert (await client.list_resources()).resources == []

    with in_thread(tmp_path / "home", tokens=tmp_path / "tokens") as url:
        run(scene)


@pytest.mark.promise("mcp.http.orgs")
@pytest.mark.parametrize("era", ERAS)
def test_an_organisation_neither_sees_nor_joins_nor_stops_the_jobs_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
):
    monkeypatch.setitem(plugins.TABLES["embedders"], "gated", "support.gated_embedder:GatedEmbedder")
    GatedEmbedder.close_gates(working=True)
    red, blue = (add_token(tmp_path / "tokens", org) for org in ("red", "blue"))
    docs = str(write_docs(tmp_path / "docs"))
    reports: list[dict[str, Any]] = []

    async def add(client: Client) -> None:
        reports.append(await call(client, "kb_add_source", path=docs))

    async def labels(client: Client) -> list[str]:
        return [job["label"] for job in (await call(client, "kb_stats"))["jobs"]]

    async def scene() -> None:
        async with client_of(url, era, red) as ours, client_of(url, era, blue) as theirs:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(add, ours)
                assert await anyio.to_thread.run_sync(GatedEmbedder.working.reached.wait, BOUND_S)
                assert (await labels(ours), await labels(theirs)) == ([docs], [])
                async with anyio.create_task_group() as stopped:
                    stopped.start_soon(theirs.call_tool, "kb_add_source", {"path": docs})
                    while not await labels(theirs):
                        await anyio.lowlevel.checkpoint()
                    assert (await labels(ours), await labels(theirs)) == ([docs], [docs])
                    stopped.cancel_scope.cancel()
                GatedEmbedder.working.open.set()
            (report,) = reports
            assert (report["state"], report["added"], report["pending"]) == ("done", 3, 0)

    with in_thread(tmp_path / "home", tokens=tmp_path / "tokens", embed__provider="gated") as url:
        run(scene)


@pytest.mark.promise("mcp.http.orgs", "mcp.roots")
def test_the_folders_of_an_organisation_and_of_its_clients_are_closed_to_another(tmp_path: Path):
    red, blue = (add_token(tmp_path / "tokens", org) for org in ("red", "blue"))
    work, shared, own = (write_docs(tmp_path / name / "docs").parent for name in ("work", "shared", "own"))
    announced = write_docs(tmp_path / "announced")

    async def roots(context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri())) for folder in (announced, work)])

    async def scene() -> None:
        async with (
            client_of(url, token=red, roots=roots) as ours,
            client_of(url, token=blue, roots=roots) as theirs,
        ):
            assert (await call(ours, "kb_add_source", path=str(work / "docs")))["added"] == 3
            refused = await refusal(theirs, "kb_add_source", path=str(work / "docs"))
            assert f"outside the folders that may be indexed ({shared}, {own})" in refused
            assert (await call(theirs, "kb_add_source", path=str(shared / "docs")))["added"] == 3
            assert (await call(theirs, "kb_add_source", path=str(own / "docs")))["added"] == 3
            assert "outside" in await refusal(ours, "kb_add_source", path=str(own / "docs"))
            for client in (ours, theirs):
                assert "outside" in await refusal(client, "kb_add_source", path=str(announced))

    allowed = os.pathsep.join([str(shared), f"blue={own}"])
    settings = {"KB_SERVE_TOKENS": str(tmp_path / "tokens"), "KB_MCP_ROOTS": allowed, "KB_ORG": "red"}
    with serving(tmp_path / "home", work, **settings) as url:
        run(scene)


@pytest.mark.promise("mcp.http.loopback")
def test_another_address_needs_a_token_before_anything_is_opened_and_a_loopback_one_none(tmp_path: Path):
    add_token(tmp_path / "tokens", "team")
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(BadValue, match="needs a token"):
            web.require_tokens(host, ())
        web.require_tokens(host, read_grants(tmp_path / "tokens"))
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        web.require_tokens(host, ())


def refused_start(tmp_path: Path, **more: str) -> str:
    """Run a `kb serve` that must not start, and return what it says."""
    done = subprocess.run(
        [*KB, "serve", "--port", "0"],
        env=environment(tmp_path / "home", **more),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=BOUND_S,
        check=False,
    )
    assert done.returncode == 2
    assert "serving MCP" not in done.stderr
    return done.stderr


@pytest.mark.promise("mcp.http.loopback", "mcp.http.token")
@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"KB_STORE_URL": "sqlite://relative"}, "names no SQLite store"),
        ({"KB_SERVE_HOST": "0.0.0.0"}, "needs a token"),
        ({"KB_SERVE_TOKENS": "/no/such/tokens"}, "no file of tokens at /no/such/tokens"),
    ],
)
def test_a_server_that_can_never_do_what_is_asked_for_does_not_start(
    tmp_path: Path, variables: dict[str, str], told: str
):
    said = refused_start(tmp_path, **variables)
    assert told in said
    assert "hint: " in said


@pytest.mark.promise("mcp.http.token")
@pytest.mark.parametrize("text", ["# red 0123456789abcdef\n\n", None])
def test_a_token_file_without_a_token_or_a_link_that_leads_nowhere_is_no_open_server(
    tmp_path: Path, text: str | None
):
    path = tmp_path / "home" / "tokens"
    path.parent.mkdir()
    if text is None:
        path.symlink_to("/not/mounted/tokens")
    else:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
    for named in ({}, {"KB_SERVE_TOKENS": str(path)}):
        said = refused_start(tmp_path, **named)
        assert f"no token in {path}" in said
        assert "--new-token" in said


def test_a_program_learns_the_address_from_one_line_of_json(tmp_path: Path):
    with subprocess.Popen(
        [*KB, "serve", "--port", "0", "--json"],
        env=environment(tmp_path / "home"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], BOUND_S)[0], "nothing is said while it runs"
            said = json.loads(process.stdout.readline())
            assert said == {"url": said["url"], "needs_token": False}
            assert post(said["url"])[0] == 200
        finally:
            process.terminate()
        assert process.stdout.read() == ""


def test_ctrl_c_ends_the_server_well_as_soon_as_it_has_said_its_address(tmp_path: Path):
    process = kb_process.start("serve", "--port", "0", "--json", env=environment(tmp_path / "home"))
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["url"]
    process.send_signal(signal.SIGINT)
    status, _, err = kb_process.finish(process)
    assert (status, err.splitlines()[-1]) == (0, "stopped serving")


def test_an_address_that_is_taken_or_none_is_an_error_with_a_hint():
    with web.listen("127.0.0.1", 0) as listener:
        with pytest.raises(Unavailable) as fault:
            web.listen("127.0.0.1", listener.getsockname()[1])
        assert "serve.port" in (fault.value.hint or "")
    with pytest.raises(BadValue):
        web.listen("no.such.host.invalid", 0)


def test_a_token_file_is_for_its_owner_alone(tmp_path: Path):
    path = tmp_path / "keys" / "tokens"
    token = add_token(path, "team")
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(token) >= 32
    path.chmod(0o644)
    with pytest.raises(BadValue, match="others can read"):
        read_grants(path)


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_kb_serve_makes_a_token_and_serves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags):
    monkeypatch.setenv("KB_HOME", str(tmp_path))
    result = CliRunner().invoke(kb, ["serve", "--new-token", "team", *flags])
    assert result.exit_code == 0
    token = json.loads(result.stdout)["token"] if flags else result.stdout.strip()
    (grant,) = read_grants(tmp_path / "tokens")
    assert grant_for(f"Bearer {token}", (grant,)) == grant
    assert grant.org == "team"
