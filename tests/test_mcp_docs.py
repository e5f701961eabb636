"""`docs/mcp.md` names what there is: every tool with its arguments, every client, every setting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from concord.clients.entries import CLIENTS
from concord.core.arguments import DEFAULT_TOKENS
from concord.core.settings import SETTINGS
from concord.mcp.table import OTHER_S, SEARCH_S, TOOLS
from concord.web.answers import ROWS
from concord.web.guard import BODY_S
from concord.web.server import HEADERS_S
from concord.web.words import STATUSES
from support.mcp_session import write_docs
from support.web_server import serving

HTTP_PAGE = (Path(__file__).parent.parent / "docs" / "http.md").read_text(encoding="utf-8")
PAGE = (Path(__file__).parent.parent / "docs" / "mcp.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("row", TOOLS, ids=lambda row: row.name)
def test_a_tool_is_in_the_manual_with_its_arguments(row):
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{row.name}` |"))
    named = line.split("|")[2]
    assert [name for name in row.names if f"`{name}`" not in named] == []


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_is_in_the_manual_with_its_key_and_its_projects_file(name: str):
    client = CLIENTS[name]
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    assert f"`{client.section}`" in line
    assert (f"`{client.project_file}`" if client.project_file else "–") in line


def test_the_settings_of_the_server_are_named():
    ours = [setting.key for setting in SETTINGS if setting.key.startswith(("mcp.", "serve."))]
    assert [key for key in ours if f"`{key}`" not in PAGE + HTTP_PAGE] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.path}")
def test_a_request_is_in_the_manual_with_its_path_and_every_other_is_a_request(row):
    told = re.findall(r"`((?:GET|POST|PATCH|DELETE) /[^`]+)`", HTTP_PAGE.partition("## Requests")[2])
    assert f"{row.method} {row.path.replace(':path', '')}" in told
    known = {f"{known.method} {known.path.replace(':path', '')}" for known in ROWS}
    beside = {
        "GET /openapi.json",
        "GET /health",
        "GET /metrics",
        *(line for line in told if "/session" in line),
    }
    assert set(told) - beside <= known


@pytest.mark.parametrize(
    "status", sorted({*(status for _, status in STATUSES), 401, 405, 408, 413, 415, 421, 429})
)
def test_a_status_is_in_the_manual(status: int):
    assert re.search(rf"^\| [\d, ]*\b{status}\b", HTTP_PAGE, re.MULTILINE)


def test_the_example_of_the_client_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (block,) = re.findall(r"```python\n(.*?)```", HTTP_PAGE, re.DOTALL)
    docs = write_docs(tmp_path / "docs")
    with serving(tmp_path / "home") as url:
        block = block.replace("http://127.0.0.1:8420", url).replace("/home/me/docs", str(docs))
        exec(compile(block, "docs/http.md", "exec"), {})
    assert "docs/auth.md" in capsys.readouterr().out


def test_the_numbers_are_those_of_the_program():
    assert DEFAULT_TOKENS < 2500
    assert (SEARCH_S, OTHER_S) == (10, 15)
    assert (HEADERS_S, BODY_S) == (10, 30)
