"""Who may ask over HTTP, and how much: other origins, users and organisations, slow and greedy callers."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from concord import Concord
from concord.core.errors import NotFound
from concord.web import guard, keys
from concord.web.answers import ROWS
from concord.web.guard import HttpLimits
from concord.web.keys import Grant, Keys, add_token, digest_of
from support import kb_process
from support.mcp_session import BOUND_S, write_docs
from support.web_server import ask, serving

API = "/api/v1"


@pytest.fixture
def user() -> Keys:
    """What lets the user of a server such as `kb ui` starts in."""
    return Keys((Grant("default", digest_of("a token that nobody is told")),))


@pytest.fixture
def private(tmp_path: Path, user: Keys) -> Iterator[str]:
    """A server such as `kb ui` starts."""
    with serving(tmp_path / "home", keys=user) as url:
        yield url


def cookie_of(url: str, **shown: str) -> str:
    """Begin a session and return its cookie."""
    answer = ask(url, f"POST {API}/session", shown)
    assert answer.status == 200
    return answer.headers["set-cookie"].partition(";")[0]


@pytest.mark.promise("http.bounds")
@pytest.mark.parametrize("path", ["/mcp", f"{API}/notes"])
def test_a_body_that_comes_too_slowly_is_answered_with_408_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str
):
    monkeypatch.setattr(guard, "BODY_S", 0.2)
    with serving(tmp_path / "home") as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=BOUND_S) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 100\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
            answer = http.client.HTTPResponse(connection)
            answer.begin()
            assert (answer.status, json.loads(answer.read())["error"]) == (408, "DeadlinePassed")
        assert ask(url, "GET /health").status == 200
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.promise("http.bounds")
def test_a_token_that_takes_too_much_leaves_room_for_another(tmp_path: Path):
    greedy, modest = (add_token(tmp_path / "tokens", org) for org in ("red", "blue"))
    limits = HttpLimits(max_bytes=10_000, max_connections=50, max_per_token=2)
    with serving(tmp_path / "home", limits, tmp_path / "tokens") as url:
        streams = [http.client.HTTPConnection(urlsplit(url).netloc, timeout=BOUND_S) for _ in range(2)]
        for stream in streams:
            stream.request("GET", f"{API}/events", headers={"Authorization": f"Bearer {greedy}"})
            stream.getresponse().readline()
        refused = ask(url, f"GET {API}/jobs", Authorization=f"Bearer {greedy}")
        assert (refused.status, refused.json["error"]) == (429, "TooManyRequests")
        assert ask(url, f"GET {API}/jobs", Authorization=f"Bearer {modest}").status == 200
        for stream in streams:
            stream.close()
        while ask(url, f"GET {API}/jobs", Authorization=f"Bearer {greedy}").status == 429:
            pass


@pytest.mark.promise("mcp.http.token")
def test_with_tokens_only_what_tells_nothing_is_open(tmp_path: Path):
    token = add_token(tmp_path / "tokens", "team")
    with serving(tmp_path / "home", tokens=tmp_path / "tokens") as url:
        for path in ("/", "/page/index.html", "/health"):
            assert ask(url, f"GET {path}").status == 200
        for row in ROWS:
            path = re.sub(r"\{.*?\}", "x", row.path)
            assert ask(url, f"{row.method} {API}{path}").status == 401
        for path in ("/metrics", f"{API}/openapi.json", f"{API}/session", f"{API}/none", "/none"):
            assert ask(url, f"GET {path}").status == 401
        assert ask(url, f"POST {API}/session", {"token": token[:-1]}).status == 401
        assert ask(url, f"GET {API}/session", Cookie=cookie_of(url, token=token)).json["org"] == "team"


@pytest.mark.promise("mcp.http.orgs")
def test_an_organisation_neither_finds_nor_reads_nor_stops_what_is_anothers(tmp_path: Path):
    red, blue = (add_token(tmp_path / "tokens", org) for org in ("red", "blue"))
    docs = write_docs(tmp_path / "docs")
    with serving(tmp_path / "home", tokens=tmp_path / "tokens") as url:
        ours, theirs = Concord(url, token=red), Concord(url, token=blue)
        assert ours.add(docs)["added"] == 3
        document = ours.get("docs/auth.md")["document_id"]
        assert (theirs.sources(), theirs.search("session token")["returned"]) == ([], 0)
        with pytest.raises(NotFound):
            theirs.get(document)
        (job,) = ask(url, f"GET {API}/jobs", Authorization=f"Bearer {red}").json["jobs"]
        told = ask(url, f"GET {API}/jobs", Authorization=f"Bearer {blue}").json["jobs"]
        assert [line["label"] for line in told] == []
        assert ask(url, f"DELETE {API}/jobs/{job['id']}", Authorization=f"Bearer {blue}").status == 404
        metrics = ask(url, "GET /metrics", Authorization=f"Bearer {blue}").body.decode()
        assert 'call="add"' not in metrics


OWN, OTHER, EVIL = "http://{}", "http://127.0.0.1:1", "http://evil.example"


@pytest.mark.promise("http.page", "mcp.http.origin")
@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        ("POST /sync", {"Origin": OWN}, 202),
        ("POST /sync", {}, 202),  # a program, not a page
        ("POST /sync", {"Origin": EVIL}, 403),
        ("POST /sync", {"Origin": "http://[::1]:[x"}, 403),
        ("GET /jobs", {"Origin": OTHER}, 200),  # which its browser lets nobody read
        ("GET /jobs", {"Host": "evil.example"}, 421),
    ],
)
def test_a_page_of_another_origin_changes_nothing(
    tmp_path: Path, request_line: str, headers: dict[str, str], status: int
):
    with serving(tmp_path / "home") as url:
        given = {name: value.format(urlsplit(url).netloc) for name, value in headers.items()}
        method, path = request_line.split()
        answer = ask(url, f"{method} {API}{path}", **given)
        assert answer.status == status
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_that_the_owner_names_may_ask(tmp_path: Path):
    wiki = "https://wiki.example.com"
    with serving(tmp_path / "home", origins=(wiki,)) as url:
        answer = ask(url, f"POST {API}/sync", {}, Origin=wiki)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (202, wiki)
        asked = {"Access_Control_Request_Method": "POST"}
        assert ask(url, f"OPTIONS {API}/sync", Origin=wiki, **asked).status == 200
        assert ask(url, f"OPTIONS {API}/sync", Origin=EVIL, **asked).status == 400
        assert ask(url, f"POST {API}/sync", {}, Origin=EVIL).status == 403


@pytest.mark.promise("http.page")
@pytest.mark.parametrize("path", ["/", "/page/index.html", "/health", f"{API}/stats", f"{API}/none"])
def test_the_page_may_load_nothing_from_elsewhere_nor_be_framed(tmp_path: Path, path: str):
    with serving(tmp_path / "home") as url:
        headers = ask(url, f"GET {path}").headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == ("no-store" if path.startswith((API, "/health")) else "no-cache")


@pytest.mark.promise("http.ui")
def test_a_code_opens_a_session_once_and_soon(private: str, user: Keys, monkeypatch: pytest.MonkeyPatch):
    code = user.new_code()
    cookie = cookie_of(private, code=code)
    assert ask(private, f"GET {API}/stats", Cookie=cookie).status == 200
    monkeypatch.setattr(keys, "CODE_S", -1)
    late = user.new_code()
    for wrong in (code, late, code[:-1], "", "é.é.é"):
        assert ask(private, f"POST {API}/session", {"code": wrong}).status == 401
    assert ask(private, f"GET {API}/stats").status == 401
    assert ask(private, f"GET {API}/stats", Cookie=cookie).status == 200
    assert ask(private, f"DELETE {API}/session", Cookie=cookie, Origin=private).status == 204
    assert ask(private, f"GET {API}/stats", Cookie=cookie).status == 401


@pytest.mark.promise("http.ui")
def test_a_cookie_is_for_browsers_and_changes_things_from_its_own_page_alone(private: str, user: Keys):
    answer = ask(private, f"POST {API}/session", {"code": user.new_code()})
    assert {"HttpOnly", "SameSite=strict"} <= set(answer.headers["set-cookie"].split("; "))
    cookie = answer.headers["set-cookie"].partition(";")[0]
    for headers, status in (({}, 403), ({"Origin": OTHER}, 403), ({"Origin": private}, 202)):
        assert ask(private, f"POST {API}/sync", {}, Cookie=cookie, **headers).status == status
        assert (ask(private, "POST /mcp", {}, Cookie=cookie, **headers).status == 403) == (status == 403)


def opened(home: Path, *args: str, **more: str) -> Any:
    return kb_process.start("ui", *args, env={**kb_process.environment(home), **more})


@pytest.mark.slow
@pytest.mark.promise("http.ui")
def test_kb_ui_serves_its_user_alone(tmp_path: Path):
    process = opened(tmp_path / "home", "--json")
    try:
        url, _, code = json.loads(process.stdout.readline())["url"].partition("/#code=")
        told = ask(url, f"POST {API}/session", {"code": code})
        assert (told.status, told.json["needs_token"]) == (200, True)
        assert ask(url, f"GET {API}/sources").status == ask(url, "POST /mcp", {}).status == 401
        for file in (tmp_path / "home").rglob("ui/*"):
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0
    finally:
        process.send_signal(signal.SIGINT)
    assert kb_process.finish(process)[::2] == (0, "stopped serving\n")


@pytest.mark.slow
@pytest.mark.promise("http.ui")
def test_the_command_line_of_the_browser_tells_nobody_the_code(tmp_path: Path):
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.part\nmv {seen}.part {seen}\n', encoding="utf-8")
    browser.chmod(0o700)
    process = opened(tmp_path / "home", BROWSER=f"{browser} %s &")
    try:
        assert "is open" in process.stderr.readline()
        while not seen.exists():
            os.sched_yield()
        address = seen.read_text(encoding="utf-8")
        assert "code" not in address
        page = Path(urlsplit(address).path).read_text(encoding="utf-8")
        url, code = re.findall(r"(http://127.0.0.1:\d+)/#code=([^\"]+)", page)[0]
        assert ask(url, f"POST {API}/session", {"code": code}).status == 200
    finally:
        process.send_signal(signal.SIGINT)
        kb_process.finish(process)
