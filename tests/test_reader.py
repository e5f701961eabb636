"""A small model reads the best passages with the question: what it finds, and what if it is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from concord import KnowledgeBase
from concord.embed.bundled import BundledEmbedder
from concord.mcp.packing import pack_answer
from concord.search import reader_model
from concord.search.calibration import Calibration, shipped_calibration
from concord.search.reader_model import ReaderModel, best_window
from concord.types import Answer
from concord.wire import answer_to_json
from support.kb_command import Kb

GUIDE = """# Tokens

Whoever logs in gets an access token, which is valid for fifteen minutes.

# Harbour

The harbour of Norvik was dredged in 1987. The work was led by the engineer Ragnhild Moen.
"""
ANSWERED = "Who led the dredging of the harbour of Norvik?"
MISSED = "What did the dredging of the harbour of Norvik cost?"
SCHEMA = json.loads((Path(__file__).parents[1] / "docs/answer.schema.json").read_text(encoding="utf-8"))
Ask = Callable[..., Answer]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_READER_ENABLED", "true")
    monkeypatch.setenv("KB_READER_BUDGET_MS", "20000")
    monkeypatch.setenv("KB_SEARCH_DEADLINE_MS", "60000")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask a question of the guide, with settings."""
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")

    def asked(
        text: str, file: str = "", *, wait_for_model: bool = True, explain: bool = False, **settings: Any
    ) -> Answer:
        if file:
            (folder / "guide.md").unlink(missing_ok=True)
            (folder / file).write_text(GUIDE, encoding="utf-8")
        with KnowledgeBase.open(**settings) as knowledge:
            knowledge.add(folder)
            return knowledge.search(text, wait_for_model=wait_for_model, explain=explain)

    return asked


def reasons(answer: Answer) -> list[str]:
    return [part.reason for part in answer.degraded if part.strategy == "reader"]


def test_the_words_that_answer_are_shown_with_their_own_place(ask: Ask):
    answer = ask(ANSWERED)
    assert answer.answerable
    assert answer.answer
    assert "Ragnhild Moen" in answer.answer.text
    line, start, end = answer.answer.start_line, answer.answer.start_column, answer.answer.end_column
    assert GUIDE.splitlines()[line - 1][(start or 0) - 1 : end] == answer.answer.text
    assert answer.answer.citation == f"docs/guide.md:{line}:{start}-{end}"


def test_their_citation_reads_the_passage_around_them(kb: Kb, tmp_path: Path):
    (tmp_path / "guide.md").write_text(GUIDE, encoding="utf-8")
    found = kb("search", ANSWERED, "--in", "guide.md", "--json").json
    assert kb("get", found["answer"]["citation"], "--json").json["text"].endswith(GUIDE.splitlines()[6])
    jsonschema.validate(found, SCHEMA)


def test_they_stand_above_the_hits_and_in_the_middle_of_the_snippet(kb: Kb, tmp_path: Path):
    padding = " ".join(f"The quay has {number} bollards." for number in range(40))
    (tmp_path / "guide.md").write_text(f"{padding} {GUIDE.splitlines()[6]} {padding}", encoding="utf-8")
    shown = kb("search", ANSWERED, "--in", "guide.md").out
    first, place, *rest = shown.splitlines()
    assert "Ragnhild Moen" in first
    assert place.strip().startswith("guide.md:1:")
    assert "Ragnhild Moen" in " ".join(rest)


def test_a_question_whose_topic_is_there_and_whose_answer_is_not_is_trusted_less(ask: Ask):
    answered, missed = ask(ANSWERED), ask(MISSED)
    assert answered.answerable
    assert not missed.answerable
    assert missed.answer is None
    without = ask(MISSED, reader__enabled=False)
    assert (missed.confidence_score or 0) < (without.confidence_score or 0)


def test_where_nothing_answers_the_text_says_what_is_nearest(kb: Kb, tmp_path: Path):
    (tmp_path / "guide.md").write_text(GUIDE, encoding="utf-8")
    run = kb("search", MISSED, "--in", "guide.md")
    assert "nothing here answers this; nearest: " in run.err
    found = kb("search", MISSED, "--in", "guide.md", "--json").json
    assert (found["answerable"], found["answer"]) == (False, None)


def test_an_ai_tool_gets_the_words_in_either_form(ask: Ask):
    reply = pack_answer(ask(ANSWERED), 2_000)
    assert "Ragnhild Moen" in reply.structured["answer"]["text"]
    jsonschema.validate(reply.structured, SCHEMA)
    bar = next(line for line in reply.text.splitlines() if line.startswith("| "))
    assert "Ragnhild Moen" in bar
    assert "nothing here answers this; nearest: " in pack_answer(ask(MISSED), 2_000).text


@pytest.mark.parametrize(
    ("question", "file", "is_missed"),
    [
        ("Wer leitete die Arbeiten am Hafen von Norvik damals?", "", True),
        ("港を浚渫したのは誰ですか？", "", True),
        ("Hafenmeister Norvik Zahlungsziel Ausbaggerung", "", False),
        (ANSWERED, "guide.py", False),
    ],
    ids=["German", "Japanese", "no question", "code"],
)
def test_what_it_does_not_read_is_answered_as_without_it_and_a_question_says_so(
    ask: Ask, question: str, file: str, is_missed: bool
):
    with_it, without = ask(question, file), ask(question, file, reader__enabled=False)
    assert [reason for reason in reasons(with_it) if "English" in reason] == reasons(with_it)
    assert bool(reasons(with_it)) == is_missed
    assert with_it.confidence_score == without.confidence_score
    assert [hit.score for hit in with_it.hits] == [hit.score for hit in without.hits]


def test_one_that_is_late_is_named_and_the_others_judge(ask: Ask):
    late = ask(ANSWERED, reader__budget_ms=1)
    assert reasons(late) == ["no answer within 1 ms"]
    assert late.confidence_score == ask(ANSWERED, reader__enabled=False).confidence_score


def test_one_whose_files_are_missing_is_named(ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(reader_model, "DATA", tmp_path)
    (reason,) = reasons(ask(ANSWERED))
    assert "its files are missing" in reason


def test_a_cold_one_is_not_waited_for_by_a_server(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader_model, "shared_model", lambda threads: ReaderModel())
    assert reasons(ask(ANSWERED, wait_for_model=False, embed__provider="none")) == [
        "it is still loading; ask again in a moment"
    ]


def test_words_alone_load_no_reader(kb: Kb, tmp_path: Path):
    (tmp_path / "guide.md").write_text(GUIDE, encoding="utf-8")
    found = kb("search", ANSWERED, "--in", "guide.md", "--fts-only", "--json").json
    assert (found["answer"], found["degraded"]) == (None, [])


def test_a_long_passage_is_read_where_it_speaks_of_the_question():
    tokens = [*range(1000, 1400), 7, 8, 9, *range(2000, 2400)]
    begin = best_window(tokens, [7, 8, 9], 200)
    assert begin <= 400 < 403 <= begin + 200
    assert best_window([1, 2, 3], [7], 200) == 0


def shipped() -> Calibration:
    found = shipped_calibration(BundledEmbedder.identity)
    assert found
    return found


def test_whoever_settles_the_matter_is_the_only_one_read(ask: Ask, monkeypatch: pytest.MonkeyPatch):
    counts = list[int]()
    read = ReaderModel.read

    def counted(self: ReaderModel, question: str, texts: Any) -> Any:
        counts.append(len(texts))
        return read(self, question, texts)

    monkeypatch.setattr(ReaderModel, "read", counted)
    assert ask("Who was the engineer that led the work?").answer
    assert sum(counts) == 1 or shipped().reader.settled is None


def test_the_answer_on_the_wire_is_null_where_there_is_none(ask: Ask):
    wire = answer_to_json(ask(MISSED))
    assert wire["answer"] is None
    jsonschema.validate(wire, SCHEMA)
