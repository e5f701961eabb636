"""Evaluation: are the figures those of the rankings, and of what a search really returns?"""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest

from concord import KnowledgeBase
from concord.quality.collection import read_collection
from concord.quality.evaluate import MODES, write_runs
from concord.quality.metrics import MEASURES
from concord.search.pipeline import search
from concord.types import Request
from support.judged import things

pytestmark = pytest.mark.slow


@pytest.mark.promise("B.eval.modes")
def test_every_mode_has_every_measure_and_each_is_a_share(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(things(tmp_path / "set"))
    assert set(found.measures) == set(MODES)
    assert all(set(values) == set(MEASURES) for values in found.measures.values())
    assert all(0 <= value <= 1 for values in found.measures.values() for value in values.values())
    assert found.measures["bm25"]["P@1"] > 0.8
    assert (found.documents, found.queries, sum(found.kinds.values())) == (
        30,
        60,
        60,
    )


@pytest.mark.promise("B.eval.auto")
def test_the_run_of_auto_begins_with_what_a_search_returns(knowledge: KnowledgeBase, tmp_path: Path):
    folder = things(tmp_path / "set")
    found = knowledge.measuring.evaluate(folder, limit=5)
    some = read_collection(folder).sampled(5)
    with knowledge.measuring.indexed_apart(some, lambda *_: None) as tools:
        for query_id, text in some.judged.items():
            returned = [hit.document.id for hit in search(Request(text), tools).hits]
            run = found.runs["auto"][query_id]
            assert sorted(run, key=lambda document: -run[document])[: len(returned)] == returned


@pytest.mark.promise("B.eval.runs")
def test_the_run_files_give_the_same_figures_to_another_reader(knowledge: KnowledgeBase, tmp_path: Path):
    folder = things(tmp_path / "set")
    found = knowledge.measuring.evaluate(folder)
    write_runs(found.runs, tmp_path / "runs")
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == sorted(
        f"{mode}.run" for mode in MODES
    )
    qrels = list(
        ir_measures.read_trec_qrels(
            "".join(
                f"{query} 0 {document} {relevance}\n"
                for query, judged in read_collection(folder).qrels.items()
                for document, relevance in judged.items()
            )
        )
    )
    measure = ir_measures.nDCG @ 10
    for mode in MODES:
        run = ir_measures.read_trec_run(str(tmp_path / "runs" / f"{mode}.run"))
        again = ir_measures.calc_aggregate([measure], qrels, run)[measure]
        assert again == pytest.approx(found.measures[mode]["nDCG@10"])


@pytest.mark.promise("B.eval.cached")
def test_a_second_run_embeds_nothing_and_finds_the_same(knowledge: KnowledgeBase, tmp_path: Path):
    folder = things(tmp_path / "set")
    stages: list[str] = []
    first = knowledge.measuring.evaluate(folder, progress=lambda stage, *_: stages.append(stage))
    assert "embed" in stages
    stages.clear()
    second = knowledge.measuring.evaluate(folder, progress=lambda stage, *_: stages.append(stage))
    assert "embed" not in stages
    assert second.runs == first.runs


def test_an_evaluation_leaves_the_knowledge_base_as_it_was(knowledge: KnowledgeBase, tmp_path: Path):
    knowledge.measuring.evaluate(things(tmp_path / "set"), limit=3)
    assert knowledge.sources() == []


def test_questions_that_nothing_answers_need_no_documents_of_their_own(
    knowledge: KnowledgeBase, tmp_path: Path
):
    (tmp_path / "strange").mkdir()
    rows = '{"_id": "1", "text": "who won the cup"}\n{"_id": "2", "text": "how tall is it"}\n{"_id": "3"}\n'
    (tmp_path / "strange" / "queries.jsonl").write_text(rows)
    found = knowledge.measuring.evaluate(
        things(tmp_path / "set"), limit=9, unanswerable=[tmp_path / "strange"]
    )
    assert found.answerability["strange"].foreign == 2


@pytest.mark.promise("B.eval.latency")
def test_every_mode_has_its_latency(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(things(tmp_path / "set"))
    assert list(found.mode_latency_ms) == list(MODES)
    for latency in (found.latency_ms, *found.mode_latency_ms.values()):
        assert 0 < latency["p50"] <= latency["p95"]
