"""The table of operations: JSON in, JSON out, whichever interface asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concord.core.config import load_settings
from concord.core.errors import UsageError
from concord.knowledge import KnowledgeBase
from concord.operations import OPERATIONS
from concord.types import silent


@pytest.fixture
def kb(tmp_path: Path) -> Any:
    settings = load_settings({"embed.provider": "hashing"}, {"KB_HOME": str(tmp_path / "home")})
    (tmp_path / "docs").mkdir()
    for name in ("auth", "deploy"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# {name}\n\nHow to {name} here.\n", encoding="utf-8")
    with KnowledgeBase(settings) as opened:
        yield opened


def run(kb: KnowledgeBase, name: str, **given: Any) -> Any:
    """Run an operation as another process would ask for it, and return what that would get."""
    operation = OPERATIONS[name]
    args = msgspec.json.decode(json.dumps(given), type=operation.arguments)
    return json.loads(json.dumps(operation.run(kb, args, silent)))


def test_everything_can_be_asked_for_and_answered_in_json(kb: KnowledgeBase, tmp_path: Path):
    assert run(kb, "add", path=str(tmp_path / "docs"), tags=["team"])["added"] == 2
    (hit, *_) = run(kb, "search", query="how to deploy", limit=1)["results"]
    assert hit["path"] == "docs/deploy.md"
    assert run(kb, "explain", query="how to deploy", reference=hit["citation"])["rank"] == 1
    assert run(kb, "get", citation=hit["citation"])["document_id"] == hit["document_id"]
    assert "warnings" in run(kb, "get", document_id=hit["document_id"], max_tokens=500)
    assert [row["path"] for row in run(kb, "list", source="docs", cursor="docs/auth.md")["documents"]] == [
        "docs/deploy.md"
    ]
    assert run(kb, "note", content="Deploy on Mondays.", fields={"aliases": ["release"]})["type"] == "note"
    outline = run(kb, "outline", document_id=hit["document_id"])
    assert [section["heading"] for section in outline["sections"]] == [["deploy"]]
    kept = run(kb, "note", content="Deploy on Tuesdays.")["document_id"]
    assert run(kb, "edit_note", document_id=kept, title="When")["title"] == "When"
    assert run(kb, "remove_note", document_id=kept)["brought_back"] == []
    assert [model["active"] for model in run(kb, "models")["models"]] == [True]
    assert run(kb, "sync", source="docs")["unchanged"] == 2
    assert run(kb, "feedback", reference=hit["citation"], opinion="good")["opinion"] == "good"
    assert run(kb, "stats")["documents"] == 3
    assert "has not been measured" in run(kb, "eval_report")["note"]
    assert run(kb, "doctor")["healthy"] is True
    assert run(kb, "backup", path=str(tmp_path / "copy.db"))["documents"] == 3
    assert run(kb, "backfill")["documents"] == 3
    assert run(kb, "migrate", to=f"json://{tmp_path}/moved")["documents"] == 3
    assert run(kb, "remove", source="docs")["documents_deleted"] == 2


def test_a_search_within_a_path_indexes_it_first(kb: KnowledgeBase, tmp_path: Path):
    answer = run(kb, "search", query="deploy", within=str(tmp_path / "docs" / "deploy.md"))
    assert [hit["path"] for hit in answer["results"]] == ["deploy.md"]
    kb.add(tmp_path / "docs")
    with pytest.raises(UsageError, match="a path can be given besides only where all of a source"):
        run(kb, "search", query="deploy", within=str(tmp_path / "docs" / "auth.md"), path="docs/")


def test_what_changes_something_says_so():
    assert {name for name, row in OPERATIONS.items() if row.effect == "destroy"} == {
        "remove",
        "remove_note",
    }
    assert {"search", "explain", "get", "list", "stats"} <= {
        name for name, row in OPERATIONS.items() if row.effect == "read"
    }


@pytest.mark.parametrize(
    ("name", "given"), [("search", {}), ("search", {"query": "x", "limit": 0}), ("stats", {"verbose": True})]
)
def test_arguments_that_do_not_fit_are_refused(name: str, given: dict[str, Any]):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, OPERATIONS[name].arguments)
