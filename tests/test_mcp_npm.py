"""Other people's clients: the MCP Inspector, the conformance suite and Gemini CLI, where npm has put them.

    npm i @modelcontextprotocol/inspector@2 @modelcontextprotocol/conformance@0.2.0-alpha.12
    npm i @google/gemini-cli @anthropic-ai/mcpb
    KB_TEST_NPM=$PWD python -m pytest tests/test_mcp_npm.py

The conformance suite needs Node 22 or newer. Its other scenarios call tools and prompts that only a
demonstration server has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mcp_session import BOUND_S, environment, serving, write_docs

NPM = Path(os.environ.get("KB_TEST_NPM", "/nowhere")) / "node_modules" / ".bin"
SCENARIOS = {
    "2025-11-25": (
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
    ),
    "2026-07-28": (
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "caching",
        "http-header-validation",
        "sep-2164-resource-not-found",
        "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params",
    ),
}


def program(name: str) -> str:
    """Return a program that npm installed, or skip the test."""
    found = shutil.which(name, path=str(NPM))
    if found is None:
        pytest.skip(f"no {name} in KB_TEST_NPM/node_modules/.bin")
    return found


def output_of(*command: str, cwd: Path, **more: str) -> str:
    done = ended(*command, cwd=cwd, **more)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def ended(*command: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    variables = {**environment(cwd / "home"), **more}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**variables, "PATH": f"{NPM}{os.pathsep}{variables['PATH']}"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=BOUND_S,
        check=False,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_docs(tmp_path / "docs")
    return tmp_path


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program("conformance")
    place = tmp_path_factory.mktemp("conformance")
    write_docs(place / "docs")
    with serving(place / "home", place) as url:
        yield url


@pytest.mark.promise("mcp.conformance")
@pytest.mark.parametrize(
    ("version", "scenario"), [(version, name) for version, names in SCENARIOS.items() for name in names]
)
def test_the_conformance_suite_passes_where_it_applies(
    tmp_path: Path, address: str, version: str, scenario: str
):
    suite = (program("conformance"), "server", "--url", address.replace("127.0.0.1", "localhost"))
    output_of(*suite, "--spec-version", version, "--scenario", scenario, cwd=tmp_path)


@pytest.mark.promise("mcp.conformance")
def test_of_the_stateless_scenario_only_what_needs_a_demonstration_tool_is_left(tmp_path: Path, address: str):
    suite = (program("conformance"), "server", "--url", address.replace("127.0.0.1", "localhost"))
    told = ended(*suite, "--spec-version", "2026-07-28", "--scenario", "server-stateless", cwd=tmp_path)
    faults = [line for line in told.stdout.splitlines() if line.lstrip().startswith("Error:")]
    assert "Passed: " in told.stdout
    assert all("does not list the diagnostic tool" in fault for fault in faults), faults


def test_the_bundle_for_claude_desktop_is_what_its_makers_tool_takes(tmp_path: Path):
    maker = Path(__file__).parent.parent / "scripts" / "make_bundle.py"
    wheel, bundle = tmp_path / "concord_kb-1-py3-none-any.whl", tmp_path / "bundle"
    wheel.touch()
    output_of(sys.executable, str(maker), str(wheel), str(bundle), cwd=tmp_path)
    told = output_of(program("mcpb"), "validate", str(bundle / "manifest.json"), cwd=tmp_path)
    assert "validation passes" in told
    packed = tmp_path / "concord.mcpb"
    output_of(program("mcpb"), "pack", str(bundle), str(packed), cwd=tmp_path)
    assert packed.stat().st_size > 0
