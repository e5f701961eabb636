"""The bundle for Claude Desktop: its manifest names what there is, and what it starts is our server."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from concord.clients.launching import GREETING
from concord.mcp.table import TOOLS
from support.mcp_session import BOUND_S, environment, write_docs

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def make_bundle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_bundle", ROOT / "scripts" / "make_bundle.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.promise("I.bundle")
def test_a_bundle_starts_the_server_and_lets_it_index_the_folders_it_is_given(
    tmp_path: Path, make_bundle: ModuleType
):
    wheel = tmp_path / "concord_kb-1-py3-none-any.whl"
    wheel.touch()
    bundle = tmp_path / "bundle"
    make_bundle.put_together(wheel, bundle)
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    assert {tool["name"] for tool in manifest["tools"]} == {row.name for row in TOOLS}
    sources = tomllib.loads((bundle / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]["sources"]
    assert (bundle / sources["concord-kb"]["path"]).exists()

    docs = write_docs(tmp_path / "docs")
    call = {"name": "kb_add_source", "arguments": {"path": str(docs)}}
    lines: list[dict[str, Any]] = [
        GREETING,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    server = subprocess.Popen(
        [sys.executable, str(bundle / manifest["server"]["entry_point"]), str(docs)],
        cwd="/",  # where Claude Desktop starts its servers
        env=environment(tmp_path / "home"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin
    assert server.stdout
    server.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    server.stdin.flush()
    answers = {}
    while 2 not in answers:
        answer = json.loads(server.stdout.readline())
        answers[answer.get("id")] = answer
    assert answers[2]["result"]["structuredContent"]["added"] == 3
    server.stdin.close()
    assert server.wait(BOUND_S) == 0
    server.stdout.close()
