"""Evaluation: are the figures those of the rankings, and of what a search really returns?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import ir_measures
import pytest
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.core.errors import BadValue
from concord.embed.hashing import HashingEmbedder
from concord.index import embedding
from concord.index.reading import READER_VERSION
from concord.quality.collection import read_collection
from concord.quality.evaluate import MODES, SAMPLE, evaluate, latency_by_mode, write_runs
from concord.quality.metrics import MEASURES
from concord.search.legs import Semantic
from concord.search.pipeline import search
from concord.search.tools import Tools
from concord.types import Request, Vector
from contract.stored import vectors_of
from support.folders import NOWHERE
from support.judged import things, write_collection

pytestmark = pytest.mark.slow


@pytest.mark.promise("B.eval.modes")
def test_every_mode_has_every_measure_and_each_is_a_share(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(things(tmp_path / "set"))
    assert set(found.measures) == set(MODES)
    assert all(set(values) == set(MEASURES) for values in found.measures.values())
    assert all(0 <= value <= 1 for values in found.measures.values() for value in values.values())
    assert found.measures["bm25"]["P@1"] > 0.8
    assert (found.documents, found.queries, sum(found.kinds.values())) == (30, 60, 60)


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


def test_what_another_version_has_cut_is_cut_anew_and_equal_chunks_keep_their_vectors(
    knowledge: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = things(tmp_path / "set")
    with monkeypatch.context() as older:
        older.setattr("concord.quality.collection.READER_VERSION", READER_VERSION - 1)
        with knowledge.measuring.indexed_apart(read_collection(folder), lambda *_: None) as tools:
            first = next(iter(tools.store.catalog.documents()))
            tools.store.catalog.put_documents([(first, [])])[0]  # of which it made nothing
    embedded: list[int | None] = []
    found = knowledge.measuring.evaluate(
        folder, progress=lambda stage, _, total: embedded.append(total) if stage == "embed" else None
    )
    assert found.chunks == 30
    assert set(embedded) == {1}


def test_documents_that_left_the_collection_leave_its_index(knowledge: KnowledgeBase, tmp_path: Path):
    folder = things(tmp_path / "set")
    assert knowledge.measuring.evaluate(folder).documents == 30
    lines = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
    (folder / "corpus.jsonl").write_text("".join(lines[:20]))
    assert knowledge.measuring.evaluate(folder).documents == 20


def test_an_evaluation_leaves_the_knowledge_base_as_it_was(knowledge: KnowledgeBase, tmp_path: Path):
    knowledge.measuring.evaluate(things(tmp_path / "set"), limit=3)
    assert knowledge.sources() == []


def test_without_an_embedder_words_alone_are_measured(knowledge: KnowledgeBase, tmp_path: Path):
    with KnowledgeBase.open(embed__provider="none") as words:
        found = words.measuring.evaluate(things(tmp_path / "set"), limit=10)
    assert found.measures["bm25"]["P@1"] > 0.5
    assert found.measures["semantic"]["nDCG@10"] == 0


def test_relevant_documents_that_the_collection_does_not_hold_are_counted(
    knowledge: KnowledgeBase, tmp_path: Path
):
    folder = things(tmp_path / "set")
    assert knowledge.measuring.evaluate(folder, limit=3).missing == 0
    lines = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
    (folder / "corpus.jsonl").write_text("".join(lines[:20]))
    assert knowledge.measuring.evaluate(folder).missing == 10


def test_a_document_that_is_nothing_but_a_title_is_found_by_it(knowledge: KnowledgeBase, tmp_path: Path):
    folder = things(tmp_path / "set")
    plain = knowledge.measuring.evaluate(folder)
    rows = (folder / "corpus.jsonl").read_text()
    (folder / "corpus.jsonl").write_text(rows.replace('"title": "", "text"', '"title"'))
    assert knowledge.measuring.evaluate(folder).runs == plain.runs


@pytest.mark.parametrize("rows", ["", '{"_id": "d0", "contents": "under another key"}\n'])
def test_documents_without_a_word_are_no_collection(knowledge: KnowledgeBase, tmp_path: Path, rows: str):
    folder = things(tmp_path / "set")
    (folder / "corpus.jsonl").write_text(rows)
    with pytest.raises(BadValue) as fault:
        knowledge.measuring.evaluate(folder)
    assert "no document" in fault.value.message


def test_a_document_that_is_there_twice_counts_once_and_two_of_one_id_are_refused(
    knowledge: KnowledgeBase, tmp_path: Path
):
    folder = things(tmp_path / "set")
    rows = (folder / "corpus.jsonl").read_text()
    (folder / "corpus.jsonl").write_text(rows + rows)
    assert knowledge.measuring.evaluate(folder, limit=3).documents == 30
    (folder / "corpus.jsonl").write_text(rows + '{"_id": "d3", "text": "Something else."}\n')
    with pytest.raises(BadValue) as fault:
        knowledge.measuring.evaluate(folder)
    assert "'d3'" in fault.value.message


def test_ids_with_spaces_are_one_column_of_a_run_file(knowledge: KnowledgeBase, tmp_path: Path):
    folder = write_collection(
        tmp_path / "set", {"a b": "A red lantern.", "c": "Rain."}, {"q 1": "red lantern"}, [("q 1", "a b", 1)]
    )
    write_runs(knowledge.measuring.evaluate(folder).runs, tmp_path / "runs")
    first = next(iter(ir_measures.read_trec_run(str(tmp_path / "runs" / "auto.run"))))
    assert (first.query_id, first.doc_id) == ("q%201", "a%20b")


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


def test_two_evaluations_of_one_collection_at_once_share_the_work(
    knowledge: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(embedding, "EMBED_WINDOW", 8)  # of 30: what the other one does is seen only then
    folder = things(tmp_path / "set")
    others: list[object] = []

    def meanwhile(stage: str, *_: object) -> None:
        if stage == "embed" and not others:
            others.append("begun")
            with KnowledgeBase.open() as other:
                others.append(other.measuring.evaluate(folder, limit=3).chunks)

    assert knowledge.measuring.evaluate(folder, limit=3, progress=meanwhile).chunks == 30
    assert others == ["begun", 30]


class Counting(HashingEmbedder):
    """Notes which queries it is asked to embed."""

    def __init__(self) -> None:
        super().__init__({}, NOWHERE)
        self.queries: list[str] = []

    def embed_query(self, text: str) -> Vector:
        """Note the query."""
        self.queries.append(text)
        return super().embed_query(text)


def counting(tools: Tools) -> tuple[Tools, Counting]:
    """Return tools whose model notes what it is asked."""
    embedder = Counting()
    semantic = Semantic(vectors_of(tools.store), embedder)
    words = [one for one in tools.strategies if one.leg == "lexical"]
    return replace(tools, strategies=[*words, semantic], similarity=semantic), embedder


@pytest.mark.promise("B.eval.latency")
def test_every_mode_and_every_query_type_has_its_latency(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(things(tmp_path / "set"))
    assert list(found.latency_by_mode) == list(MODES)
    assert set(found.latency_by_kind) == set(found.kinds)
    for one in (found.latency_ms, *found.latency_by_mode.values(), *found.latency_by_kind.values()):
        assert 0 < one["p50"] <= one["p95"]


@pytest.mark.promise("B.eval.latency")
def test_the_model_is_loaded_before_anything_is_timed_and_every_mode_embeds_anew(
    knowledge: KnowledgeBase, tmp_path: Path
):
    collection = read_collection(things(tmp_path / "set")).sampled(9)
    with knowledge.measuring.indexed_apart(collection, lambda *_: None) as tools:
        noted, embedder = counting(tools)
        evaluate(collection, noted, lambda *_: None)
    texts = [*collection.judged.values()]
    assert embedder.queries[: 1 + len(texts)] == [texts[0], *texts]  # once for nobody, then for the figures
    times = Counter(embedder.queries)
    assert times[texts[1]] == len(MODES)  # once, and in all modes but bm25


def test_no_more_than_a_sample_is_timed_and_it_is_from_everywhere(knowledge: KnowledgeBase, tmp_path: Path):
    collection = read_collection(things(tmp_path / "set"))
    done: list[tuple[int, int | None]] = []
    with knowledge.measuring.indexed_apart(collection, lambda *_: None) as tools:
        noted, embedder = counting(tools)
        texts = [f"where is the {at}" for at in range(120)]
        latency_by_mode(texts, noted, lambda stage, at, total: done.append((at, total)))
    asked = set(embedder.queries)
    assert len(asked) <= SAMPLE
    assert {text.split()[-1] for text in asked} >= {"0", "60", "117"}
    assert done[-1] == (len(asked), len(asked))


def test_words_are_timed_without_a_model_and_meaning_only_where_there_is_one(
    knowledge: KnowledgeBase, tmp_path: Path
):
    with KnowledgeBase.open(embed__provider="none") as words:
        found = words.measuring.evaluate(things(tmp_path / "set"), limit=3)
    assert set(found.latency_by_mode) == set(MODES) - {"semantic"}
    assert found.model is None
