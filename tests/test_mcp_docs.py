"""`docs/mcp.md` names what there is: every tool with its arguments, every client, every setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.clients.entries import CLIENTS
from concord.core.arguments import DEFAULT_TOKENS
from concord.core.settings import SETTINGS
from concord.mcp.table import OTHER_S, SEARCH_S, TOOLS
from concord.web.app import IDLE_S
from concord.web.guard import BODY_S
from concord.web.listening import HEADERS_S

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
    assert [key for key in ours if f"`{key}`" not in PAGE] == []


def test_the_numbers_are_those_of_the_program():
    assert DEFAULT_TOKENS < 2500
    assert (SEARCH_S, OTHER_S) == (10, 15)
    assert (HEADERS_S, BODY_S, IDLE_S) == (10, 30, 600)
