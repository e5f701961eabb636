"""The MCP tools as an agent meets them, in both eras of the protocol: schemas, answers, pages, refusals."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp.shared.exceptions import MCPError

from concord import KnowledgeBase
from concord.core.arguments import MIN_TOKENS
from concord.core.config import load_settings
from concord.mcp.table import ANSWER, RESULT
from concord.reading.budget import tokens
from concord.types import DOCUMENT_TYPES, MODES
from support.mcp_session import ERAS, call, in_process, refusal, run, said, text_of, write_docs

SCHEMA = json.loads(
    (Path(__file__).parent.parent / "docs" / "answer.schema.json").read_text(encoding="utf-8")
)
EIGHT = {
    "kb_search": ("query", "mode", "limit", "tags", "type", "source", "path", "since", "until", "deadline_ms",
                  "max_tokens", "include_superseded", "min_generation"),
    "kb_get": ("citation", "citations", "document_id", "level", "context", "max_tokens", "cursor"),
    "kb_add_source": ("path", "name", "patterns", "tags"),
    "kb_list": ("source", "cursor"),
    "kb_sync": ("source",),
    "kb_remove_source": ("source",),
    "kb_stats": (),
    "kb_note": ("content", "title", "tags", "details", "fields", "supersedes"),
}  # fmt: skip


@pytest.mark.promise("000.mcp.tools", "000.mcp.tool-definition", "mcp.tools.eight")
@pytest.mark.parametrize("era", ERAS)
def test_there_are_eight_tools_with_the_arguments_of_the_design(tmp_path: Path, era: str):
    async def scene() -> None:
        async with in_process(tmp_path / "home", era) as client:
            listed = (await client.list_tools()).tools
        assert {tool.name: tuple(tool.input_schema["properties"]) for tool in listed} == EIGHT
        for tool in listed:
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema or {})
            assert tool.output_schema["type"] == "object"  # type: ignore[index]
            assert tool.title
            assert 40 < len(tool.description or "") < 2048
            assert tool.annotations is not None
            assert "$ref" not in json.dumps(tool.input_schema)
        search = listed[0]
        given = search.input_schema["properties"]
        assert search.input_schema["required"] == ["query"]
        assert given["query"]["type"] == "string"
        assert (given["mode"]["enum"], given["mode"]["default"]) == (list(MODES), "auto")
        limit = given["limit"]
        assert (limit["type"], limit["default"], limit["minimum"], limit["maximum"]) == ("integer", 10, 1, 50)
        assert given["type"]["enum"] == list(DOCUMENT_TYPES)
        assert "data, never" in (search.description or "")

    run(scene)


@pytest.mark.promise("000.mcp.response")
@pytest.mark.parametrize("era", ERAS)
def test_a_search_answers_with_the_wire_contract_and_citations_in_text(tmp_path: Path, era: str):
    async def scene() -> None:
        async with in_process(tmp_path / "home", era) as client:
            await call(client, "kb_add_source", path=str(write_docs(tmp_path / "docs")))
            result = await client.call_tool("kb_search", {"query": "session token"})
        answer = result.structured_content
        jsonschema.validate(answer, SCHEMA)
        best = answer["results"][0]
        assert best["path"] == "docs/auth.md"
        assert "session token" in best["text"]
        assert best["citation"] in said(result)
        assert "| The login checks the session token on every request." in said(result)
        for key in ("confidence", "strategies_matched", "query_type", "search_time_ms"):
            assert key in answer

    run(scene)


@pytest.mark.promise("mcp.sources.about", "mcp.trust.framed")
def test_what_a_source_is_about_is_told_and_what_it_holds_is_called_data(tmp_path: Path):
    home = tmp_path / "home"
    hashing = {"KB_HOME": str(home), "KB_EMBED_PROVIDER": "hashing"}
    with KnowledgeBase(load_settings({}, hashing)) as kb:
        kb.add(write_docs(tmp_path / "docs"), about="How our service works", embed=False)

    async def scene() -> None:
        async with in_process(home) as client:
            asked: dict[str, dict[str, Any]] = {
                "kb_search": {"query": "session token", "max_tokens": MIN_TOKENS * 2},
                "kb_get": {"citation": "docs/auth.md"},
                "kb_list": {},
            }
            for tool, arguments in asked.items():
                result = await client.call_tool(tool, arguments)
                first, notice = next(iter(result.structured_content.items()))
                assert (first, "data, never instructions" in notice) == ("notice", True)
                if tool != "kb_get":
                    assert "How our service works" in said(result)
                    assert "How our service works" in json.dumps(result.structured_content)

    run(scene)


def test_the_lean_output_schema_names_the_keys_of_the_documented_one():
    assert ANSWER["required"] == SCHEMA["required"]
    assert RESULT["required"] == SCHEMA["$defs"]["result"]["required"]


def test_every_filter_of_the_tool_narrows_the_search(tmp_path: Path):
    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            for file in write_docs(tmp_path / "docs").iterdir():
                os.utime(file, (1.6e9, 1.6e9))
            await call(client, "kb_add_source", path=str(tmp_path / "docs"), tags=["ops"])
            await call(client, "kb_note", content="The token of the note.", tags=["memo"])
            searches: dict[str, dict[str, Any]] = {
                "tags": {"tags": ["memo"]},
                "type": {"type": "note"},
                "source": {"source": "notes"},
                "path": {"path": "notes/"},
                "since": {"since": "1h"},
            }
            for asked in searches.values():
                answer = await call(client, "kb_search", query="token", **asked)
                assert {result["type"] for result in answer["results"]} == {"note"}
            then = await call(client, "kb_search", query="token", until="2020-12-31")
            assert {result["type"] for result in then["results"]} == {"markdown"}
            assert (await call(client, "kb_search", query="token", limit=1))["returned"] == 1

    run(scene)


@pytest.mark.parametrize("era", ERAS)
def test_a_document_is_read_in_pages_that_together_hold_all_of_it(tmp_path: Path, era: str):
    folder = tmp_path / "docs"
    folder.mkdir()
    lines = [f"Line {number} speaks of otter {number}." for number in range(1, 401)]
    (folder / "long.md").write_text("# Long\n\n" + "\n\n".join(lines) + "\n", encoding="utf-8")

    async def scene() -> None:
        async with in_process(tmp_path / "home", era) as client:
            await call(client, "kb_add_source", path=str(folder))
            pages = [await call(client, "kb_get", citation="docs/long.md", max_tokens=MIN_TOKENS)]
            while cursor := pages[-1]["next_cursor"]:
                pages.append(await call(client, "kb_get", cursor=cursor, max_tokens=MIN_TOKENS))
        text = "\n".join(page["text"] for page in pages)
        assert len(pages) > 5
        assert all(text.count(f"{line}\n") + text.endswith(line) == 1 for line in lines)
        assert all(tokens(json.dumps(page, ensure_ascii=False)) <= MIN_TOKENS for page in pages)
        assert all(page["freshness"] == "fresh" for page in pages)

    run(scene)


def test_a_note_is_found_at_once_by_its_words_and_by_its_fields(tmp_path: Path):
    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            first = await call(
                client,
                "kb_note",
                content="The staging password rotates on Mondays.",
                title="Rotation",
                details={"cpu": {"model": "386DX33"}},
                fields={"summary": "weekly", "aliases": ["quokka"], "highlights": ["Monday morning"]},
            )
            for words in ("rotates", "quokka", "weekly"):
                found = await call(client, "kb_search", query=words, mode="fts5")
                assert [hit["document_id"] for hit in found["results"]] == [first["document_id"]]
            second = await call(
                client, "kb_note", content="It rotates on Fridays now.", supersedes=first["document_id"]
            )
            found = await call(client, "kb_search", query="rotates", mode="fts5")
            assert [hit["document_id"] for hit in found["results"]] == [second["document_id"]]
            result = await client.call_tool(
                "kb_search", {"query": "rotates", "mode": "fts5", "include_superseded": True}
            )
            told = {
                one["document_id"]: one.get("superseded_by") for one in result.structured_content["results"]
            }
            assert told == {first["document_id"]: second["document_id"], second["document_id"]: None}
            assert said(result).count(f"\nsuperseded by {second['document_id']}\n") == 1

    run(scene)


@pytest.mark.promise("mcp.repeat-safe")
def test_a_note_that_is_sent_again_is_kept_once(tmp_path: Path):
    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            sent = [await call(client, "kb_note", content="Once.", tags=["a"]) for _ in range(3)]
            other = await call(client, "kb_note", content="Once.", tags=["b"])
            assert len({kept["document_id"] for kept in sent}) == 1
            assert other["document_id"] != sent[0]["document_id"]
            assert (await call(client, "kb_stats"))["documents"] == 2
            with KnowledgeBase(load_settings({}, {"KB_HOME": str(tmp_path / "home")})) as elsewhere:
                elsewhere.remove("notes", force=True)
            ids: list[str] = []

            async def keep() -> None:
                ids.append((await call(client, "kb_note", content="Once.", tags=["a"]))["document_id"])

            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(keep)
            assert len({*ids}) == (await call(client, "kb_stats"))["documents"] == 1
            assert (await call(client, "kb_get", document_id=ids[0]))["text"] == "Once."

    run(scene)


@pytest.mark.promise("mcp.repeat-safe")
def test_adding_syncing_and_removing_can_be_repeated(tmp_path: Path):
    docs = write_docs(tmp_path / "docs")

    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            first = await call(client, "kb_add_source", path=str(docs))
            again = await call(client, "kb_add_source", path=str(docs))
            assert (first["added"], again["added"], again["unchanged"]) == (3, 0, 3)
            assert (await call(client, "kb_sync"))["unchanged"] == 3
            await call(client, "kb_remove_source", source="docs")
            assert "no source called" in await refusal(client, "kb_remove_source", source="docs")

    run(scene)


@pytest.mark.promise("freshness.own-writes")
def test_a_generation_that_is_reached_is_answered_from_and_one_that_is_not_is_told_of(tmp_path: Path):
    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            kept = await call(client, "kb_note", content="A note about herons.")
            generation = kept["generation"]
            found = await call(client, "kb_search", query="herons", min_generation=generation)
            assert (found["generation"] >= generation, found["note"]) == (True, None)
            early = await call(
                client, "kb_search", query="herons", min_generation=generation + 100, deadline_ms=400
            )
            assert f"not yet at {generation + 100}" in early["note"]
            assert "generation" in {part["strategy"] for part in early["degraded"]}
            assert early["returned"] == 1
            asked = {"query": "herons", "min_generation": generation + 100, "deadline_ms": 400}
            assert said(await client.call_tool("kb_search", asked)).count("not yet at") == 1

    run(scene)


@pytest.mark.promise("mcp.resources")
@pytest.mark.parametrize("era", ERAS)
def test_documents_are_resources_that_can_be_listed_and_read(tmp_path: Path, era: str):
    folder = write_docs(tmp_path / "docs", 5)
    (folder / "naïve file.md").write_text("# Odd\n\nA name with a blank and an accent.\n", encoding="utf-8")

    async def scene() -> None:
        async with in_process(tmp_path / "home", era) as client:
            await call(client, "kb_add_source", path=str(folder))
            listed = (await client.list_resources()).resources
            (template,) = (await client.list_resource_templates()).resource_templates
            texts = {resource.uri: text_of(await client.read_resource(resource.uri)) for resource in listed}
            part = await client.read_resource("kb://documents/docs/auth.md:1-5")
            named = await call(client, "kb_get", citation="kb://documents/docs/na%C3%AFve%20file.md")
            with pytest.raises(MCPError, match="nothing indexed is called"):
                await client.read_resource("kb://documents/docs/none.md")
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource("file:///etc/passwd")
        assert template.uri_template == "kb://documents/{+citation}"
        assert "session token" in texts["kb://documents/docs/auth.md"]
        assert "a blank and an accent" in texts["kb://documents/docs/na%C3%AFve%20file.md"]
        assert len(texts) == 6
        assert "Login" in text_of(part)
        assert "a blank and an accent" in named["text"]  # kb_get takes a URI for a citation, too

    run(scene)


def test_a_long_listing_of_documents_comes_in_pages(tmp_path: Path):
    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            await call(client, "kb_add_source", path=str(write_docs(tmp_path / "docs", 60)))
            result = await client.call_tool("kb_list", {"source": "docs"})
            listed = result.structured_content or {}
            assert (listed["total"], listed["returned"]) == (60, len(listed["documents"]))
            assert listed["next_cursor"] in said(result)
            paths = [resource["path"] for resource in listed["documents"]]
            while listed["next_cursor"]:
                assert tokens(json.dumps(listed, ensure_ascii=False)) < 2500
                listed = await call(client, "kb_list", source="docs", cursor=listed["next_cursor"])
                paths += [resource["path"] for resource in listed["documents"]]
            assert paths == sorted(set(paths))
            assert len(paths) == 60
            assert "not a cursor" in await refusal(client, "kb_list", source="docs", cursor="nonsense")

    run(scene)


@pytest.mark.promise("mcp.bad-input")
@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("kb_search", {}, "needs 'query'"),
        ("kb_search", {"query": "x", "tags": [""]}, "'tags[0]' should be str of length >= 1"),
        ("kb_search", {"query": "x", "mode": "magic"}, "one of auto, hybrid, semantic, fts5"),
        ("kb_search", {"query": "x", "max_tokens": 10}, "should be int >= 500"),
        ("kb_search", {"query": "x", "source": "nowhere"}, "no source called 'nowhere'"),
        ("kb_add_source", {"path": "/etc"}, "outside the folders"),
        ("kb_add_source", {"path": "not-there"}, "there is no 'not-there'"),
        ("kb_note", {"content": "   "}, "needs some text"),
        ("kb_stats", {"verbose": True}, "no argument 'verbose'"),
    ],
)
def test_a_wrong_call_is_refused_in_words_and_the_server_lives_on(
    tmp_path: Path, tool: str, arguments: dict[str, object], told: str
):
    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            refused = await refusal(client, tool, **arguments)
            assert told in refused
            assert re.match(r"Error \((BadValue|NotAllowed|NotFound)\): ", refused)
            assert "\nHint: " in refused
            assert (await call(client, "kb_stats"))["generation"] == 0

    run(scene)


@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_tool_is_a_protocol_error_that_lists_the_known_ones(tmp_path: Path, era: str):
    async def scene() -> None:
        async with in_process(tmp_path / "home", era) as client:
            with pytest.raises(MCPError, match="there is no tool 'kb_serch'; the tools are: kb_search"):
                await client.call_tool("kb_serch", {"query": "x"})
            assert await call(client, "kb_stats")

    run(scene)


@pytest.mark.promise("I.get.several", "mcp.budget.max-tokens")
@pytest.mark.parametrize("asked", [{"citations": ["docs/**", "docs/none.md"]}, {"citation": "docs/*.md"}])
def test_several_are_read_at_once_within_one_budget_and_none_can_pass_for_another(tmp_path: Path, asked: Any):
    docs = write_docs(tmp_path / "docs")
    for number in range(9):
        (docs / f"long{number}.md").write_text(
            f"# Long {number}\n\n" + 'Of "words" \n' * 900, encoding="utf-8"
        )

    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            await call(client, "kb_add_source", path=str(docs))
            for most in (MIN_TOKENS * 2, 2_400, 9_000):
                result = await client.call_tool("kb_get", {**asked, "max_tokens": most})
                found, text = result.structured_content or {}, said(result)
                assert len(json.dumps(found, ensure_ascii=False).encode()) <= most * 3
                assert len(text.encode()) <= most * 3
                parts = [found, *found["further"]]
                cited = [part["citation"] for part in parts]
                assert all(f"\n{citation} | " in f"\n{text}" for citation in cited)
                assert "\n# Long" not in text
                for part in parts:
                    if cursor := part["next_cursor"]:
                        assert (await call(client, "kb_get", cursor=cursor))["path"] == part["path"]
            missing = {row["citation"]: row["reason"] for row in found["unread"]}
            assert (
                "docs/none.md" not in asked.get("citations", ())
                or "nothing indexed" in missing["docs/none.md"]
            )
            assert "nothing indexed" in await refusal(client, "kb_get", citations=["no.md", "none/*.md"])

    run(scene)


def test_null_a_list_of_one_and_lists_as_json_text_are_read_as_what_they_mean(tmp_path: Path):
    docs = write_docs(tmp_path / "docs")
    needed: dict[str, dict[str, Any]] = {
        "kb_search": {"query": "token", "limit": "3"},
        "kb_get": {"citation": "docs/auth.md"},
        "kb_add_source": {"path": str(docs), "patterns": "auth*", "tags": "ops"},
        "kb_note": {"content": "An ibis.", "tags": '["bird", "b"]', "fields": {"aliases": "wader"}},
        "kb_remove_source": {"source": "docs"},
    }

    async def scene() -> None:
        async with in_process(tmp_path / "home") as client:
            added = await call(client, "kb_add_source", **needed["kb_add_source"])
            assert added["added"] == 1
            for tool, names in EIGHT.items():
                if tool != "kb_remove_source":
                    await call(client, tool, **{**dict.fromkeys(names), **needed.get(tool, {})})
            for tool, arguments in needed.items():
                name = next(iter(arguments))
                assert f"needs {name!r}" in await refusal(client, tool, **{name: None})
            assert (await call(client, "kb_search", query="token", tags="ops"))["returned"] == 1
            assert (await call(client, "kb_search", query="wader", tags='["bird"]'))["returned"] == 1
            await call(
                client, "kb_remove_source", **{**dict.fromkeys(EIGHT["kb_remove_source"]), "source": "docs"}
            )

    run(scene)
