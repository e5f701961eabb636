"""What every command prints with --json, what every MCP tool replies, and how mistakes are told, as files."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from concord.cli.main import COMMANDS, main
from concord.cli.quality import models
from concord.core import plugins
from concord.mcp.table import TOOLS
from support.engines import our_variables
from support.golden_files import GOLDEN, RENEW, Normaliser, assert_golden
from support.judged import recipes, things
from support.mcp_session import BOUND_S, in_process, run
from support.other_embedders import TABLE
from support.small_library import UNHURRIED

FILES = GOLDEN / "commands"
SAVED = 1_700_000_000  # when the files of the folder were last changed, in seconds
DETAILS = '{"rota": {"day": "Monday", "people": ["Ada", "Grace"]}, "ticket": 42}'

# File → arguments, in the order in which they run. `@Title` is the id of the document that has the title.
COMMAND_LINES: dict[str, tuple[str, ...]] = {
    "add": ("add", "folder", "--name", "handbook", "--tags", "team"),
    "add-again": ("add", "folder"),
    "add-several": ("add", "folder/boiler.txt", "judged", "--no-embed", "--untrusted"),
    "sync-one": ("sync", "judged"),
    "remove": ("remove", "judged"),
    "note": ("note", "The staging password is rotated on Mondays.", "--title", "Rotation", "--tags", "ops",
             "--details", DETAILS, "--summary", "When it changes", "--context", "runbook",
             "--highlight", "Mondays", "--alias", "key rotation"),
    "note-supersedes": ("note", "It is rotated on Fridays now.", "--title", "Friday", "--supersedes",
                        "@Rotation"),
    "note-edit": ("note", "--edit", "@Friday", "--tags", "ops,security"),
    "note-other": ("note", "Milk is in the fridge.", "--title", "Milk"),
    "note-remove": ("note", "--remove", "@Milk"),
    "note-export": ("note", "--export", "notes.jsonl"),
    "note-import": ("note", "--import", "notes.jsonl"),
    "search": ("search", "how long is a session token valid"),
    "search-fts-only": ("search", "token", "--fts-only"),
    "search-vec-only": ("search", "releases go out", "--vec-only", "--top", "3"),
    "search-hybrid-explain": ("search", "kubectl rollout", "--mode", "hybrid", "--explain", "--top", "2"),
    "search-explain": ("search", "error E4012", "--explain", "--top", "2"),
    "search-fusion": ("search", "refresh token", "--fusion", "weighted", "--top", "2"),
    "search-phrase": ("search", '"lentil soup" -docker'),
    "search-filtered": ("search", "deploy", "--tags", "ops", "--type", "markdown", "--path", "folder/ops",
                        "--until", "2024-01-01"),
    "search-superseded": ("search", "rotated", "--include-superseded", "--source", "notes"),
    "search-in": ("search", "boiler pressure", "--in", "folder"),
    "search-budget": ("search", "token", "--max-tokens", "300"),
    "search-nothing": ("search", "xyzzy", "--fts-only"),
    "explain": ("explain", "refresh token", "folder/login.md"),
    "explain-absent": ("explain", "lentil", "folder/retry.go", "--fts-only"),
    "get": ("get", "folder/login.md:6-9", "--context", "1"),
    "get-whole": ("get", "folder/login.md", "--whole"),
    "get-note": ("get", "@Friday"),
    "get-history": ("get", "@Rotation", "--history"),
    "list": ("list",),
    "links": ("links", "@Rotation"),
    "related": ("related", "@Rotation", "--top", "2"),
    "list-orphans": ("list", "handbook", "--orphans"),
    "list-documents": ("list", "handbook"),
    "list-notes": ("list", "notes"),
    "feedback": ("feedback", "folder/login.md:6-9", "good", "--query", "refresh token"),
    "stats": ("stats",),
    "sync": ("sync",),
    "models": ("models",),
    "models-list": ("models", "list"),
    "models-add": ("models", "add", "turned"),
    "models-use": ("models", "use", "2", "--force"),
    "models-remove": ("models", "remove", "1"),
    "backfill": ("backfill",),
    "doctor": ("doctor",),
    "doctor-fix": ("doctor", "--fix"),
    "backup": ("backup", "copy.db"),
    "recover": ("recover",),
    "migrate": ("migrate", "--to", "json://{folder}/moved"),
    "eval": ("eval", "judged"),
    "error-calibrate": ("calibrate", "judged"),
    "config": ("config",),
    "config-key": ("config", "search.default_top"),
    "install": ("install", "cursor", "--scope", "project"),
    "install-again": ("install", "cursor", "--scope", "project"),
    "install-uninstall": ("install", "cursor", "--scope", "project", "--uninstall"),
    "serve-new-token": ("serve", "--new-token", "team"),
    "engine": ("engine", "status"),
    "error-no-command": ("serch", "token"),
    "error-no-option": ("search", "token", "--treshold", "1"),
    "error-both-modes": ("search", "token", "--fts-only", "--vec-only"),
    "error-top": ("search", "token", "--top", "0"),
    "error-since": ("search", "token", "--since", "yesterday"),
    "error-source": ("search", "token", "--source", "handbok"),
    "error-no-folder": ("add", "nowhere"),
    "error-get": ("get", "folder/nothing.md:1-2"),
    "error-remove": ("remove", "nowhere"),
    "error-remove-notes": ("remove", "notes"),
    "error-details": ("note", "text", "--details", "[1]"),
    "error-config": ("config", "search.defualt_top"),
    "error-store": ("--store", "floppy://a", "stats"),
    "error-models": ("models", "use", "nothing-like-it"),
    "error-install": ("install", "notepad"),
    "error-eval": ("eval", "nowhere"),
    "error-migrate": ("migrate", "--to", "sqlite://moved"),
}  # fmt: skip
CALIBRATE = ("calibrate", "things", "--unanswerable", "recipes")  # takes seconds

TOOL_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "mcp-add": ("kb_add_source", {"path": "{folder}/folder", "name": "handbook", "tags": ["team"]}),
    "mcp-note": ("kb_note", {"content": "The staging password is rotated on Mondays.", "title": "Rotation",
                             "tags": ["ops"], "details": json.loads(DETAILS),
                             "fields": {"summary": "When it changes", "aliases": ["key rotation"]}}),
    "mcp-note-supersedes": ("kb_note", {"content": "Rotated on Fridays now.", "title": "Friday",
                                        "supersedes": "@Rotation"}),
    "mcp-search": ("kb_search", {"query": "how long is a session token valid", "max_tokens": 25_000}),
    "mcp-search-words": ("kb_search", {"query": "E4012", "mode": "fts5", "max_tokens": 25_000}),
    "mcp-search-meaning": ("kb_search", {"query": "releases", "mode": "semantic", "limit": 2,
                                         "max_tokens": 25_000}),
    "mcp-search-nothing": ("kb_search", {"query": "xyzzy", "mode": "fts5"}),
    "mcp-get": ("kb_get", {"citation": "folder/login.md:6-9", "context": 1}),
    "mcp-get-id": ("kb_get", {"document_id": "@Friday"}),
    "mcp-list": ("kb_list", {}),
    "mcp-list-documents": ("kb_list", {"source": "handbook"}),
    "mcp-sync": ("kb_sync", {}),
    "mcp-stats": ("kb_stats", {}),
    "mcp-error-citation": ("kb_get", {"citation": "folder/nothing.md"}),
    "mcp-error-source": ("kb_search", {"query": "token", "source": "handbok"}),
    "mcp-error-argument": ("kb_search", {"query": "token", "colour": "red"}),
    "mcp-error-root": ("kb_add_source", {"path": "/"}),
    "mcp-error-remove": ("kb_remove_source", {"source": "nowhere"}),
    "mcp-remove": ("kb_remove_source", {"source": "handbook"}),
}  # fmt: skip


class Scene:
    """A folder with the frozen files in it, and what was replied there so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.normalised = Normaliser(folder)
        self.ids: dict[str, str] = {}  # title → id of the document
        for name in ("folder", "judged"):
            shutil.copytree(FILES / name, folder / name)
        for path in folder.rglob("*"):
            os.utime(path, (SAVED, SAVED))

    def argument(self, given: Any) -> Any:
        if not isinstance(given, str):
            return given
        return self.ids[given[1:]] if given.startswith("@") else given.replace("{folder}", str(self.folder))

    def reply(self, told: dict[str, Any], content: Any) -> dict[str, Any]:
        """Return a reply as it is compared; documents in it can be named from now on."""
        if isinstance(content, dict) and "title" in content:
            self.ids[content["title"]] = content["document_id"]
        normalised: dict[str, Any] = self.normalised({**told, "json": content})
        return normalised


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """File → what its command line printed; they run one after the other in one home."""
    scene = Scene(tmp_path_factory.mktemp("printed"))
    with environment(scene):
        return {name: _printed(scene, line) for name, line in COMMAND_LINES.items()}


@contextmanager
def environment(scene: Scene) -> Iterator[None]:
    """Run commands in a scene's folder, with a home, a second model and all the time they want."""
    unhurried = {f"KB_{name.replace('__', '_').upper()}": str(value) for name, value in UNHURRIED.items()}
    homes = {"HOME": str(scene.folder), "KB_HOME": str(scene.folder / "home")}
    with pytest.MonkeyPatch.context() as patched:
        for name in set(our_variables()) - {RENEW}:
            patched.delenv(name)
        patched.delenv("KB_OCR_ENGINE", raising=False)  # no scene has a scan
        for name, text in {
            **homes,
            "KB_EMBED_PROVIDER": "hashing",
            "KB_READER_ENABLED": "false",
            **unhurried,
        }.items():
            patched.setenv(name, text)
        patched.setitem(plugins.TABLES["embedders"], "turned", TABLE["turned"])
        patched.chdir(scene.folder)
        yield


def _printed(scene: Scene, line: tuple[str, ...]) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*map(scene.argument, line), "--json"])
    told = {"command": " ".join(("kb", *line)), "status": status, "stderr": err.getvalue().splitlines()}
    return scene.reply(told, json.loads(out.getvalue()))


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """File → what its tool replied; they are called one after the other in one session."""
    scene = Scene(tmp_path_factory.mktemp("called"))
    replies: dict[str, Any] = {}
    settings: dict[str, Any] = {
        **UNHURRIED,
        "reader__enabled": False,
        "limits_s": {row.name: BOUND_S for row in TOOLS},
    }

    async def session() -> None:
        async with in_process(scene.folder / "home", **settings) as client:
            listed = (await client.list_tools()).model_dump(mode="json", by_alias=True)
            replies["mcp-tools"] = {tool["name"]: scene.normalised(tool) for tool in listed["tools"]}
            for name, (tool, arguments) in TOOL_CALLS.items():
                replies[name] = await _called(client, scene, tool, arguments)

    run(session)
    return replies


async def _called(client: Client, scene: Scene, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    given = {name: scene.argument(value) for name, value in arguments.items()}
    result = await client.call_tool(tool, given)
    text = [getattr(block, "text", "").splitlines() for block in result.content]
    told = {"tool": tool, "arguments": arguments, "is_error": result.is_error, "text": text}
    return scene.reply(told, result.structured_content)


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_a_command_prints_the_json_in_its_file(printed: dict[str, Any], name: str):
    assert_golden(FILES / f"{name}.json", printed[name])


@pytest.mark.slow
def test_calibrating_prints_the_json_in_its_file(tmp_path: Path):
    scene = Scene(tmp_path)
    things(scene.folder / "things", queries=50)
    recipes(scene.folder / "recipes")
    with environment(scene):
        assert_golden(FILES / "calibrate.json", _printed(scene, CALIBRATE))


@pytest.mark.parametrize("name", ["mcp-tools", *TOOL_CALLS])
def test_a_tool_replies_as_in_its_file(called: dict[str, Any], name: str):
    assert_golden(FILES / f"{name}.json", called[name])


def test_every_command_and_every_tool_has_a_file():
    lines = [*COMMAND_LINES.values(), CALIBRATE]
    assert {line[0] for line in lines} >= set(COMMANDS) - {"mcp", "ui"}
    assert {line[1] for line in lines if line[0] == "models" and len(line) > 1} >= set(models.commands)
    assert {tool for tool, _ in TOOL_CALLS.values()} == {row.name for row in TOOLS}


def test_every_file_has_a_command_or_a_tool():
    names = {path.stem for path in FILES.glob("*.json")}
    assert names == {*COMMAND_LINES, *TOOL_CALLS, "mcp-tools", "calibrate"}


@pytest.mark.parametrize("renews", ["", "1"])
def test_a_key_that_is_renamed_is_named_also_when_files_are_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renews: str
):
    monkeypatch.setenv(RENEW, renews)
    (tmp_path / "reply.json").write_text('{"results": [{"path": "a.md", "score": 1}]}', encoding="utf-8")
    with pytest.raises(AssertionError, match=r"reply lacks keys of reply\.json: \['\.results\[\]\.score'\]"):
        assert_golden(tmp_path / "reply.json", {"results": [{"path": "a.md", "points": 1}]})
