"""The wire contract: every answer validates, every key is there, budgets hold."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.core.values import iso_time
from concord.index.notes import Note
from concord.reading.budget import BYTES_PER_TOKEN
from concord.text.json_safe import json_safe, to_text
from concord.types import (
    MODES,
    Answer,
    Chunk,
    Degraded,
    Document,
    Hit,
    Request,
    Source,
)
from concord.wire import answer_to_json

SCHEMA = json.loads(
    (Path(__file__).parent.parent / "docs" / "answer.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

DOCS = Source("s1", "docs", "/home/me/docs", "directory", "docs", created_at=1.0, synced_at=1700000000.0)
AUTH = Document("d1", "s1", "docs/guide/auth.md", "markdown", "Authentication", tags=("ops",))


def hit(rank: int, text: str = "a passage", **changes: object) -> Hit:
    chunk = Chunk(100 + rank, "d1", rank, text, 0, len(text), 12, 31, heading=("Auth", "Login"))
    made = Hit(
        chunk=chunk,
        document=AUTH,
        source=DOCS,
        rank=rank,
        score=1 / (60 + rank),
        passage_score=1 / (60 + rank),
        scores={"rrf": 1 / (60 + rank), "bm25": 7.1, "cosine": None},
        found_by=("fts_exact", "fts_relaxed"),
        best_rank=rank,
        agreement=None,
        confidence=None,
        snippet=text[:240],
        citation="docs/guide/auth.md:12-31",
    )
    return replace(made, **changes)


def answer(*hits: Hit, **changes: object) -> Answer:
    made = Answer(
        request=Request("how does login work"),
        mode="auto",
        hits=hits,
        total_hits=57,
        fusion="rrf",
        org="default",
        generation=12,
        strategies_matched=("fts_exact",),
        degraded=(Degraded("semantic", "no answer within 5 ms"),),
        timings_ms={"understand": 0.1234567},
        search_time_ms=12.3456789,
    )
    return replace(made, **changes)


def size(wire: object) -> int:
    return len(to_text(wire).encode())


def test_the_schema_is_itself_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_full_answer_validates_and_says_what_it_was_given():
    wire = answer_to_json(answer(hit(1), hit(2)))
    VALIDATOR.validate(wire)
    first = wire["results"][0]
    assert set(first) == set(SCHEMA["$defs"]["result"]["properties"]) - {"explanation"}
    assert (wire["returned"], wire["total_hits"], wire["search_time_ms"]) == (2, 57, 12.346)
    assert first["file"] == "/home/me/docs/guide/auth.md"
    assert (first["chunk_id"], first["heading"], first["tags"]) == ("101", ["Auth", "Login"], ["ops"])
    assert first["scores"] == {"rrf": 1 / 61, "bm25": 7.1, "cosine": None}
    assert wire["degraded"] == [{"strategy": "semantic", "reason": "no answer within 5 ms"}]


@pytest.mark.promise("003.agreement.answer")
def test_what_later_stages_fill_in_validates_too():
    full = hit(
        1,
        confidence="very_high",
        agreement=1.0,
        freshness="changed",
        moved_from=3,
        also_at=("docs/copy.md:1-3",),
        warnings=("reads like an instruction",),
    )
    wire = answer_to_json(
        answer(
            full,
            query_type="conceptual",
            confidence="high",
            confidence_score=0.83,
            answerable=True,
            calibrated=True,
            note="two words were misspelt",
            suggestions=("login flow",),
            omitted={"deleted": 1, "below_threshold": 2, "below_min_score": 3},
        )
    )
    VALIDATOR.validate(wire)
    assert wire["agreement_scores"] == {"101": 1.0}


def test_a_budget_gives_texts_to_the_best_results_first():
    hits = [hit(rank, "passage " * 100) for rank in range(1, 6)]
    bare = size(answer_to_json(answer(*(hit(rank, "passage " * 100) for rank in range(1, 6))), max_tokens=1))
    wire = answer_to_json(answer(*hits), max_tokens=2200)
    assert bare < size(wire) <= 2200 * BYTES_PER_TOKEN
    has_text = [result["text"] is not None for result in wire["results"]]
    assert has_text == sorted(has_text, reverse=True)
    assert 0 < sum(has_text) < 5


@settings(max_examples=60)
@given(
    st.lists(st.text(st.characters(), max_size=400), max_size=8),  # surrogates included
    st.integers(1, 4000),
    st.text(st.characters(), max_size=50),
)
def test_any_text_makes_valid_json_within_the_budget(texts: list[str], max_tokens: int, query: str):
    hits = [hit(rank, text) for rank, text in enumerate(texts, 1)]
    wire = answer_to_json(answer(*hits, request=Request(query)), max_tokens=max_tokens)
    VALIDATOR.validate(wire)
    assert json.loads(to_text(wire).encode("utf-8")) == wire
    assert len(wire["results"]) <= 1 or size(wire) <= max_tokens * BYTES_PER_TOKEN


def test_json_text_hides_and_steers_nothing():
    text = to_text({"a": "\x1b[2J\x9b31m\u202e\u2066\U000e0041 é 👩‍🚀"})
    assert text == '{"a":"\\u001b[2J\\u009b31m\\u202e\\u2066\\udb40\\udc41 é 👩‍🚀"}'
    assert json.loads(text)["a"] == "\x1b[2J\x9b31m\u202e\u2066\U000e0041 é 👩‍🚀"


def test_what_json_cannot_say_is_said_differently():
    odd = {
        "nan": math.nan,
        "inf": math.inf,
        "path": Path("a"),
        3: ("x", "\udc80"),
        "ok": [True, None, 1, 0.5],
    }
    assert json_safe(odd) == {
        "nan": None,
        "inf": None,
        "path": "a",
        "3": ["x", "?"],
        "ok": [True, None, 1, 0.5],
    }


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1700000000.4, "2023-11-14T22:13:20Z"), (None, None), (0.0, None), (1e18, None), (math.inf, None)],
)
def test_times_are_iso_in_utc_or_null(seconds: float | None, text: str | None):
    assert iso_time(seconds) == text


@pytest.fixture
def knowledge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "auth.md").write_text("# Login\n\nA token is issued after login.\n", encoding="utf-8")
    with KnowledgeBase.open(store__url="memory://", embed__provider="hashing") as opened:
        opened.add(folder)
        opened.note(Note("the token expires on Mondays", tags=("ops",)))
        yield opened


@pytest.mark.parametrize("mode", [None, *MODES])
@pytest.mark.parametrize("text", ["token", "when does the token expire", "zebra", "", '"', "\udc80"])
def test_answers_of_every_mode_validate(knowledge: KnowledgeBase, mode: str | None, text: str):
    for include in (False, True):
        found = knowledge.search(text, mode=mode, include_superseded=include)
        wire = answer_to_json(found, explain=include)
        VALIDATOR.validate(wire)
        assert wire["returned"] == len(found.hits)
