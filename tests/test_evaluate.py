"""Evaluation: are the figures those of the rankings, and of what a search really returns?"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

import ir_measures
import pytest
from msgspec.structs import replace

from concord import KnowledgeBase, __version__
from concord.answering.retrieve import SearchTools
from concord.embedders.hashing import HashingEmbedder
from concord.errors import BadValue, NotFound
from concord.quality.collection import read_collection
from concord.quality.evaluate import MEASURES, MODES, evaluate, write_runs
from concord.quality.latency import SAMPLE, by_mode, percentiles
from concord.quality.reliability import (
    LabelPrecision,
    answerability,
    auroc,
    falls,
    gibberish,
    precisions,
    reliability,
)
from concord.quality.report import reliability_plot
from concord.strategies.semantic import Semantic
from concord.types import Vector
from judged import recipes, things, write_collection

pytestmark = pytest.mark.slow

# Collections.


def test_a_collection_has_the_queries_that_its_judgements_name(tmp_path: Path):
    folder = write_collection(
        tmp_path, {"d": "text"}, {"a": "first", "b": "second", "c": "third"}, [("a", "d", 1), ("b", "d", 0)]
    )
    collection = read_collection(folder)
    assert collection.queries == {"a": "first", "b": "second"}
    assert collection.judged == {"a": "first"}


def test_a_sample_is_the_same_each_time_and_keeps_the_order(tmp_path: Path):
    collection = read_collection(things(tmp_path))
    some = collection.sampled(7).judged
    assert len(some) == 7
    assert some == collection.sampled(7).judged
    assert list(some) == [query for query in collection.judged if query in some]
    assert collection.sampled(7).judged.items() <= collection.sampled(20).judged.items()
    assert collection.sampled(None) is collection


def test_a_split_is_chosen_by_name_and_a_wrong_name_lists_the_right_ones(tmp_path: Path):
    for split, query in (("train", "a"), ("test", "b")):
        write_collection(tmp_path, {"d": "text"}, {"a": "one", "b": "two"}, [(query, "d", 1)], split)
    assert list(read_collection(tmp_path).queries) == ["b"]
    assert list(read_collection(tmp_path, "train").queries) == ["a"]
    with pytest.raises(NotFound) as fault:
        read_collection(tmp_path, "dev")
    assert "train" in str(fault.value.hint)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("queries.jsonl", "{not json}\n", "line 1"),
        ("queries.jsonl", '{"text": "no id"}\n', "line 1"),
        ("queries.jsonl", "\n\n[1, 2]\n", "line 3"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq0\td0\n", "line 2"),
        ("qrels/test.tsv", "q0\td0\tmuch\nq0\td0\tmuch\n", "line 2"),
        ("qrels/test.tsv", "stranger\td0\t1\n", "no query"),
        ("queries.jsonl", b"\xff\xfe\x00", "cannot read"),
    ],
)
def test_a_file_that_is_not_of_the_layout_is_named_with_its_line(
    tmp_path: Path, file: str, content: str | bytes, told: str
):
    folder = things(tmp_path)
    (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadValue) as fault:
        read_collection(folder)
    assert told in fault.value.message
    assert fault.value.hint


def test_a_folder_without_a_collection_says_what_it_needs(tmp_path: Path):
    with pytest.raises(NotFound) as fault:
        read_collection(tmp_path)
    assert "corpus.jsonl" in str(fault.value.hint)


# Measures.


@pytest.mark.promise("B.eval.modes")
def test_every_mode_has_every_measure_and_each_is_a_share(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(things(tmp_path / "set"))
    assert set(found.measures) == set(MODES)
    assert all(set(values) == set(MEASURES) for values in found.measures.values())
    assert all(0 <= value <= 1 for values in found.measures.values() for value in values.values())
    assert found.measures["bm25"]["P@1"] > 0.8
    assert (found.documents, found.queries, sum(found.kinds.values())) == (30, 60, 60)


# Latency.


class Counting(HashingEmbedder):
    """Notes which queries it is asked to embed."""

    def __init__(self) -> None:
        super().__init__({}, Path())
        self.queries: list[str] = []

    def embed_query(self, text: str) -> Vector:
        """Note the query."""
        self.queries.append(text)
        return super().embed_query(text)


def counting(tools: SearchTools) -> tuple[SearchTools, Counting]:
    """Return tools whose model notes what it is asked."""
    embedder = Counting()
    semantic = Semantic(tools.store.vectors, embedder)
    words = [one for one in tools.strategies if one.family == "lexical"]
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
        by_mode(texts, noted, lambda stage, at, total: done.append((at, total)), 60_000)
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


def test_no_percentile_lies_beyond_what_was_measured():
    assert percentiles([5.0, 1.0, 3.0, 2.0, 4.0]) == {"p50": 3.0, "p95": pytest.approx(4.8)}
    assert percentiles([2.0]) == {"p50": 2.0, "p95": 2.0}
    assert percentiles([]) == {}


# Rankings.


@pytest.mark.promise("B.eval.auto")
def test_the_run_of_auto_begins_with_what_a_search_returns(knowledge: KnowledgeBase, tmp_path: Path):
    folder = things(tmp_path / "set")
    found = knowledge.measuring.evaluate(folder, limit=5)
    collection = read_collection(folder).sampled(5)
    with knowledge.measuring.indexed_apart(collection, lambda *_: None) as tools:
        from concord.search import search
        from concord.types import Request

        for query_id, text in collection.judged.items():
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
    measure = ir_measures.parse_measure("nDCG@10")
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
    assert not found.calibrated


# Confidence.


def test_what_is_promised_as_often_as_it_comes_true_has_no_calibration_error():
    held = reliability([(0.25, True), (0.25, False), (0.25, False), (0.25, False), (1.0, True)])
    assert (held.n, held.ece) == (5, 0)
    assert held.brier == pytest.approx((0.75**2 + 3 * 0.25**2) / 5)
    broken = reliability([(0.9, False), (0.9, False), (0.1, False), (0.1, False)])
    assert broken.ece == pytest.approx((0.9 + 0.1) / 2)
    assert [one.n for one in broken.bins if one.n] == [2, 2]
    assert reliability([]).ece == reliability([]).ece_by_chance == 0


def test_the_error_by_chance_is_what_true_probabilities_show_when_cases_are_few():
    draw = random.Random(7)
    promised = [draw.random() ** 0.2 for _ in range(300)]
    drawn = [reliability((one, draw.random() < one) for one in promised) for _ in range(200)]
    by_chance = drawn[0].ece_by_chance
    assert 0.01 < by_chance < 0.05
    assert mean(one.ece for one in drawn) == pytest.approx(by_chance, rel=0.15)
    assert reliability([(1.0, True), (0.0, False)]).ece_by_chance == 0


def test_labels_come_best_first_with_how_often_they_are_right():
    found = precisions([("low", False), ("very_high", True), ("low", True), ("fts_only", True)])
    assert found == (("very_high", 1, 1.0), ("low", 2, 0.5), ("fts_only", 1, 1.0))


def test_precision_falls_where_enough_cases_say_so():
    assert falls([LabelPrecision("very_high", 90, 0.9), LabelPrecision("high", 60, 0.7)])
    assert not falls([LabelPrecision("very_high", 90, 0.6), LabelPrecision("high", 60, 0.7)])
    assert falls([LabelPrecision("very_high", 10, 0.6), LabelPrecision("high", 60, 0.7)])


def test_the_area_under_the_curve_counts_ties_half():
    assert auroc([0.9, 0.8], [0.1]) == 1
    assert auroc([0.5], [0.5]) == 0.5
    assert auroc([0.1], [0.9]) == 0
    assert auroc([], [0.9]) == 0.5


@pytest.mark.promise("B.eval.answerability", "B.gibberish")
def test_queries_of_another_collection_are_told_from_its_own(knowledge: KnowledgeBase, tmp_path: Path):
    found = knowledge.measuring.evaluate(
        things(tmp_path / "set"), unanswerable=[recipes(tmp_path / "recipes")]
    )
    known = found.answerability["recipes"]
    assert (known.foreign, len(found.foreign["recipes"])) == (3, 3)
    assert 30 < known.own <= 60
    assert known.auroc > 0.9
    assert found.gibberish.highest < found.gibberish.own_median


def test_other_collections_of_one_name_are_told_apart(knowledge: KnowledgeBase, tmp_path: Path):
    others = [recipes(tmp_path / part / "recipes") for part in ("north", "south")]
    found = knowledge.measuring.evaluate(things(tmp_path / "set"), unanswerable=others)
    assert [*found.answerability] == [str(other) for other in others]


def test_nothing_asked_is_nothing_flagged():
    assert answerability([], []).own_flagged == 0
    assert gibberish([], []).highest == 0


@pytest.mark.promise("B.eval.answerability")
@pytest.mark.parametrize("command", ["eval", "calibrate"])
def test_a_collection_is_not_taken_for_one_that_it_cannot_answer(kb, tmp_path: Path, command: str):
    things(tmp_path / "set")
    (tmp_path / "link").symlink_to(tmp_path / "set")
    status, out, err = kb(command, "set", "--unanswerable", "link")
    assert (status, out) == (2, "")
    assert "answered by its own documents" in err
    assert "another collection" in err


# The command and the report.


def test_kb_eval_prints_a_table_for_people(kb, tmp_path: Path):
    things(tmp_path / "set")
    recipes(tmp_path / "recipes")
    status, out, _ = kb("eval", "set", "--limit", "20", "--unanswerable", "recipes")
    assert status == 0
    assert "30 documents" in out
    assert all(re.search(rf"^{mode} ", out, re.MULTILINE) for mode in MODES)
    assert all(measure in out for measure in MEASURES)
    assert "uncalibrated" in out
    assert re.search(r"^latency of auto, over all of them: p50 \d+\.\d ms, p95 \d", out, re.MULTILINE)
    assert f"by mode; times are of at most {SAMPLE} queries, asked once more in each\nmode" in out
    assert re.search(r"^mode .* p50 ms +p95 ms$", out, re.MULTILINE)
    assert re.search(r"^type .* p50 ms +p95 ms$", out, re.MULTILINE)
    assert all(re.search(rf"^{mode} .* \d+\.\d +\d+\.\d$", out, re.MULTILINE) for mode in MODES)
    assert re.search(r"^recipes +3 ", out, re.MULTILINE)


@pytest.mark.promise("B.eval.report")
def test_kb_eval_writes_json_runs_and_a_page_that_needs_nothing_else(kb, tmp_path: Path):
    things(tmp_path / "set")
    status, out, _ = kb("eval", "set", "--limit", "9", "--run", "runs", "--report", "out/page.html", "--json")
    assert status == 0
    told = json.loads(out)
    assert told["queries"] == 9
    assert told["model"].startswith("hashing/")
    assert set(told["mode_latency_ms"]) == set(MODES)
    assert all({"p50", "p95"} == one["latency_ms"].keys() for one in told["query_types"].values())
    assert told["calibration"]["score"]["n"] >= 9
    assert {"ece", "brier", "bins"} <= told["calibration"]["confidence_score"].keys()
    assert (tmp_path / "runs" / "auto.run").read_text().split()[1] == "Q0"
    page = (tmp_path / "out" / "page.html").read_text()
    assert page.count("<svg") == 2
    assert not re.search(r"(?:src|href)=", page)
    assert page.count("<th>p95 ms</th>") == 1
    assert told["model"] in page
    assert f"Concord {__version__}, 20" in page


def test_a_plot_is_well_formed_also_without_a_single_case():
    for found in (reliability([]), reliability([(0.3, True), (0.95, True), (1.0, False)])):
        assert ElementTree.fromstring(reliability_plot(found)).tag.endswith("svg")


def test_kb_eval_of_a_folder_that_is_not_there_is_an_error_with_a_hint(kb):
    status, out, err = kb("eval", "nowhere")
    assert (status, out) == (2, "")
    assert "corpus.jsonl" in err


def test_a_report_that_cannot_be_written_is_an_error_and_no_traceback(kb, tmp_path: Path):
    things(tmp_path / "set")
    (tmp_path / "file").write_text("in the way")
    status, _, err = kb("eval", "set", "--limit", "2", "--report", "file/page.html")
    assert status == 2
    assert "cannot write" in err
