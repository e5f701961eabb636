"""Rerankers: one contract for all of them, then what each does of its own, then their place in a search."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from concord import plugins
from concord.answering.second_look import second_look
from concord.config import Paths, find_paths, load_settings
from concord.embedders.hashing import HashingEmbedder
from concord.embedders.onnx_file import FLOAT, INT64, Graph
from concord.errors import BadValue, KBError, Unavailable, UnknownName
from concord.onnx_models import find_model, read_window
from concord.protocols import Reranker
from concord.rerankers.cosine import CosineReranker
from concord.rerankers.cross_encoder import CrossEncoder
from concord.rerankers.weighing import weighed
from concord.search import search
from concord.types import Candidate, ChunkId, Query, Ranked, Request
from small_library import library, survivors, titles, understood

TEXTS: dict[ChunkId, str] = {
    1: "the pool holds ten connections",
    2: "login hands out a token after the password",
    3: "backups are kept for a month",
    4: "a token expires after login",
}
QUERY = "login token"
WILD = ["", " ", "\0", "\ud800", "[SEP] [CLS]", "?!", "日本語", "login " * 5000]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
DOUBT = 1.0  # the logit of a pair that shares no word is -1: each shared word adds 1

Open = Callable[[float], Reranker]


def ranking(scores: Mapping[ChunkId, float]) -> list[Ranked]:
    votes = {i: (Candidate(i, "fts_exact", "lexical", 1, 1.0),) for i in scores}
    return [Ranked(i, score, votes[i]) for i, score in sorted(scores.items(), key=lambda item: -item[1])]


FUSED = ranking({3: 0.0325, 1: 0.0317, 2: 0.0310, 4: 0.0164})


def make_model(
    home: Path,
    outputs: int = 1,
    *,
    segments: bool = True,
    flat: bool = False,
    doubt: float = DOUBT,
    extra: str = "",
) -> Path:
    """A real cross-encoder whose logit is known: how many words query and passage share, less `doubt`.

    Special tokens and unknown words count for nothing. Without segments every pair of equal words is counted.
    """
    graph = Graph()
    names = ["input_ids", "attention_mask", *["token_type_ids"] * segments, *[extra] * bool(extra)]
    ids, mask, *rest = [graph.input(name, INT64, ["batch", "tokens"]) for name in names]
    is_word = graph.node("Greater", [ids, graph.constant("specials", np.array(len(SPECIAL) - 1, np.int64))])
    counted = graph.node("Mul", [graph.node("Cast", [is_word], to=INT64), mask])
    one = graph.constant("one", np.array(1, np.int64))
    left = graph.node("Mul", [counted, graph.node("Sub", [one, rest[0]])]) if segments else counted
    right = graph.node("Mul", [counted, rest[0]]) if segments else counted

    def along(axis: int, name: str) -> str:
        return graph.node("Unsqueeze", [name, graph.constant(f"axis{axis}", np.array([axis], np.int64))])

    same = graph.node("Cast", [graph.node("Equal", [along(1, ids), along(2, ids)])], to=INT64)
    shared = graph.node("Mul", [graph.node("Mul", [same, along(2, left)]), along(1, right)])
    axes = graph.constant("both", np.array([1, 2], np.int64))
    total = graph.node("ReduceSum", [shared, axes], keepdims=0)
    logit = graph.node(
        "Sub",
        [graph.node("Cast", [total], to=FLOAT), graph.constant("doubt", np.array(doubt, np.float32))],
    )
    column = along(1, logit)
    nought = graph.node("Sub", [column, column])
    result = logit if flat else graph.node("Concat", [*[nought] * (outputs - 1), column], axis=1)
    graph.output("logits", result, FLOAT, ["batch"] if flat else ["batch", outputs])
    home.mkdir(parents=True, exist_ok=True)
    (home / "model.onnx").write_bytes(graph.to_bytes())
    write_tokenizer(home / "tokenizer.json")
    return home


def write_tokenizer(path: Path) -> None:
    words = sorted({word for text in TEXTS.values() for word in text.split()})
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.enable_truncation(4)  # as published tokenizers may say; it must not be obeyed
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", length=64)
    tokenizer.save(str(path))


def cosines_of(texts: Mapping[ChunkId, str], home: Path):
    embedder = HashingEmbedder({}, home)

    def similarity(query: str, chunk_ids: Sequence[ChunkId]) -> dict[ChunkId, float]:
        asked = np.frombuffer(embedder.embed_query(query), "<f4")
        vectors = embedder.embed_documents([texts[i] for i in chunk_ids])
        return {i: float(np.frombuffer(v, "<f4") @ asked) for i, v in zip(chunk_ids, vectors, strict=True)}

    return similarity


def options(weight: float = 1.0, model: object = "") -> dict[str, object]:
    return {"rerank.weight": weight, "rerank.model": str(model), "embed.threads": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module", params=["cosine", "cross_encoder"])
def open_reranker(request: pytest.FixtureRequest, model: Path) -> Open:
    """Opens a reranker with a weight."""
    part = plugins.load("rerankers", request.param)
    similarity = cosines_of(TEXTS, model)
    return lambda weight: part(options(weight, model), similarity)


# The contract.


def test_the_same_chunks_come_back_best_first_with_their_votes(open_reranker: Open):
    better = open_reranker(0.5).rerank(QUERY, FUSED, TEXTS)
    assert {one.chunk_id: one.votes for one in better} == {one.chunk_id: one.votes for one in FUSED}
    assert [one.score for one in better] == sorted((one.score for one in better), reverse=True)
    assert all(0 <= one.score <= 1 for one in better)


def test_chunks_that_fit_the_query_rise(open_reranker: Open):
    assert {one.chunk_id for one in open_reranker(1.0).rerank(QUERY, FUSED, TEXTS)[:2]} == {2, 4}


def test_a_weight_of_nothing_leaves_order_and_scores(open_reranker: Open):
    assert open_reranker(0.0).rerank(QUERY, FUSED, TEXTS) == FUSED


@pytest.mark.promise("000.rerank.blend")
def test_the_weight_divides_the_score_between_the_second_look_and_fusion(open_reranker: Open):
    alone = {one.chunk_id: one.score for one in open_reranker(1.0).rerank(QUERY, FUSED, TEXTS)}
    fused = {one.chunk_id: (one.score - 0.0164) / (0.0325 - 0.0164) for one in FUSED}
    for weight in (0.25, 0.8):
        for one in open_reranker(weight).rerank(QUERY, FUSED, TEXTS):
            expected = weight * alone[one.chunk_id] + (1 - weight) * fused[one.chunk_id]
            assert one.score == pytest.approx(expected, abs=1e-5)


def test_the_scale_of_a_fusion_makes_no_difference(open_reranker: Open):
    larger = [replace(one, score=one.score * 1000 - 7) for one in FUSED]
    few, many = (open_reranker(0.5).rerank(QUERY, given, TEXTS) for given in (FUSED, larger))
    assert [one.chunk_id for one in few] == [one.chunk_id for one in many]
    assert [one.score for one in few] == pytest.approx([one.score for one in many], abs=1e-5)


def test_nothing_to_rerank_gives_nothing(open_reranker: Open):
    assert open_reranker(0.5).rerank(QUERY, [], {}) == []


@pytest.mark.parametrize("query", WILD, ids=range(len(WILD)))
def test_no_query_is_too_strange_to_rerank_for(open_reranker: Open, query: str):
    assert len(open_reranker(0.5).rerank(query, FUSED, TEXTS)) == len(FUSED)


def test_a_closed_reranker_opens_again_when_it_is_used(open_reranker: Open):
    reranker = open_reranker(0.5)
    before = reranker.rerank(QUERY, FUSED, TEXTS)
    reranker.close()
    assert reranker.rerank(QUERY, FUSED, TEXTS) == before


@pytest.mark.parametrize("name", ["cosine", "cross_encoder"])
def test_opening_a_reranker_loads_nothing_heavy(name: str, model: Path):
    script = """
import sys
from concord import plugins
plugins.load("rerankers", sys.argv[1])({"rerank.weight": 0.5, "rerank.model": sys.argv[2]}, None)
assert not {"onnxruntime", "numpy", "tokenizers"} & set(sys.modules)
"""
    path = str(Path(plugins.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", script, name, str(model)], check=True, env={"PYTHONPATH": path})


@given(
    st.dictionaries(st.integers(1, 50), st.floats(-1e6, 1e6), min_size=1, max_size=12),
    st.dictionaries(st.integers(1, 50), st.floats(0, 1), max_size=12),
    st.floats(0, 1),
)
@settings(deadline=None, max_examples=60)
def test_weighing_loses_no_chunk_and_comes_best_first(fused, scores, weight):
    better = weighed(ranking(fused), scores, weight)
    assert sorted(one.chunk_id for one in better) == sorted(fused)
    assert [one.score for one in better] == sorted((one.score for one in better), reverse=True)


# Cosine.


def by_cosine(cosines: Mapping[ChunkId, float], weight: float = 0.5) -> dict[ChunkId, float]:
    reranker = CosineReranker(options(weight), lambda query, chunk_ids: cosines)
    return {one.chunk_id: one.score for one in reranker.rerank(QUERY, ranking({1: 0.3, 2: 0.2, 3: 0.1}), {})}


@pytest.mark.promise("000.rerank.cosine")
def test_the_nearer_chunk_overtakes_by_as_much_as_its_cosine_counts():
    assert by_cosine({1: 0.2, 2: 0.9, 3: 0.4}, 0.75) == pytest.approx({2: 0.8, 1: 0.4, 3: 0.3})
    assert next(iter(by_cosine({1: 0.2, 2: 0.9, 3: 0.4}, 0.75))) == 2


def test_a_chunk_without_a_vector_counts_as_an_average_one():
    assert by_cosine({1: 0.2, 3: 0.6}, 1.0) == pytest.approx({3: 0.6, 2: 0.4, 1: 0.2})


def test_without_any_vector_the_order_stays():
    assert by_cosine({}) == {1: 0.3, 2: 0.2, 3: 0.1}


def test_an_opposite_direction_counts_as_no_nearness():
    assert by_cosine({1: -0.8, 2: 0.0, 3: 0.5}, 1.0) == pytest.approx({3: 0.5, 1: 0.0, 2: 0.0})


def test_chunks_that_tie_stay_in_their_order():
    assert list(by_cosine({1: 0.5, 2: 0.5, 3: 0.5}, 1.0)) == [1, 2, 3]


# The cross-encoder.


def probability(home: Path, query: str, text: str) -> float:
    return CrossEncoder(options(1.0, home)).rerank(query, ranking({1: 1.0}), {1: text})[0].score


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


@pytest.mark.parametrize(
    ("query", "text", "shared"),
    [("login token", TEXTS[4], 2), ("login", TEXTS[4], 1), ("pool", TEXTS[4], 0), ("unheard", "of", 0)],
)
def test_the_score_is_the_probability_that_the_model_gives(model: Path, query: str, text: str, shared: int):
    assert probability(model, query, text) == pytest.approx(sigmoid(shared - DOUBT), abs=1e-6)


@pytest.mark.parametrize("variant", [{"outputs": 2}, {"flat": True}])
def test_two_logits_or_a_bare_list_say_the_same_as_one(tmp_path: Path, variant: dict[str, Any]):
    home = make_model(tmp_path / "variant", **variant)
    assert probability(home, QUERY, TEXTS[4]) == pytest.approx(sigmoid(2 - DOUBT), abs=1e-6)


def test_a_model_that_reads_no_segments_is_fed_none(tmp_path: Path):
    home = make_model(tmp_path / "plain", segments=False)
    pairs = 2 + 5 + 2 * 2  # each word with itself, and two shared ones in both directions
    assert probability(home, QUERY, TEXTS[4]) == pytest.approx(sigmoid(pairs - DOUBT), abs=1e-6)


def test_a_model_may_lie_where_exporters_put_it(tmp_path: Path):
    home = make_model(tmp_path / "exported")
    (home / "onnx").mkdir()
    (home / "model.onnx").rename(home / "onnx" / "model.onnx")
    assert probability(home, QUERY, TEXTS[4]) == pytest.approx(sigmoid(2 - DOUBT), abs=1e-6)


def test_only_the_passage_is_cut_to_the_window(tmp_path: Path):
    home = make_model(tmp_path / "narrow")
    (home / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 12}), "utf-8")
    seven = "month " * 6 + "login"  # of 12, 3 special tokens and 2 of the query leave room for 7
    assert probability(home, "token login", seven) == pytest.approx(sigmoid(1 - DOUBT), abs=1e-6)
    assert probability(home, "token login", "month " + seven) == pytest.approx(sigmoid(-DOUBT), abs=1e-6)


def test_a_query_as_long_as_the_window_leaves_room_for_the_passage(tmp_path: Path):
    home = make_model(tmp_path / "narrow")
    (home / "config.json").write_text(json.dumps({"max_position_embeddings": 12}), "utf-8")
    long = "month " * 40
    assert probability(home, "login " + long, "login pool") > probability(home, long, "login pool")


@pytest.mark.parametrize(
    ("files", "window"),
    [
        ({}, 512),
        ({"tokenizer_config.json": {"model_max_length": 10**30}, "config.json": {}}, 512),
        ({"tokenizer_config.json": {"model_max_length": 64}}, 64),
        ({"config.json": {"max_position_embeddings": 514, "model_type": "xlm-roberta"}}, 512),
        ({"config.json": {"max_position_embeddings": 8192, "model_type": "modernbert"}}, 8192),
    ],
)
def test_the_window_is_what_the_directory_names(tmp_path: Path, files: dict[str, object], window: int):
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
    assert read_window(tmp_path) == window


def test_text_that_spells_a_special_token_does_not_end_the_passage(model: Path):
    assert probability(model, "login", "[SEP] [PAD] login") == pytest.approx(sigmoid(1 - DOUBT), abs=1e-6)


def test_more_chunks_than_one_batch_are_scored_each_by_its_own_text(model: Path):
    texts = {i: " ".join(["month"] * (20 - i) + ["login"] * (i % 2)) for i in range(1, 14)}
    ranked = ranking(dict.fromkeys(texts, 1.0))
    better = CrossEncoder(options(1.0, model)).rerank("login", ranked, texts)
    assert [one.chunk_id % 2 for one in better] == [1] * 7 + [0] * 6


def test_many_threads_may_ask_at_once(model: Path):
    reranker = CrossEncoder(options(0.5, model))
    expected, found = reranker.rerank(QUERY, FUSED, TEXTS), []
    asking = [
        threading.Thread(target=lambda: found.append(reranker.rerank(QUERY, FUSED, TEXTS))) for _ in range(6)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert found == [expected] * 6


def spoilt(home: Path, name: str, content: bytes | None) -> Path:
    make_model(home)
    (home / name).unlink()
    if content is not None:
        (home / name).write_bytes(content)
    return home


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda tmp: "", BadValue, "rerank.model"),
        (lambda tmp: tmp / "nowhere", BadValue, "no model.onnx"),
        (lambda tmp: spoilt(tmp / "m", "tokenizer.json", None), BadValue, "no tokenizer.json"),
        (lambda tmp: spoilt(tmp / "m", "tokenizer.json", b"{}"), Unavailable, "tokenizer.json"),
        (lambda tmp: spoilt(tmp / "m", "model.onnx", b"nonsense"), Unavailable, "does not run"),
        (lambda tmp: make_model(tmp / "m", outputs=3), BadValue, "not one score a pair"),
        (lambda tmp: make_model(tmp / "m", doubt=math.nan), Unavailable, "no number"),
        (lambda tmp: make_model(tmp / "m", extra="pixel_values"), BadValue, "pixel_values"),
    ],
    ids=["unset", "nowhere", "no-tokenizer", "bad-tokenizer", "bad-model", "classes", "nan", "input"],
)
def test_a_model_that_is_none_says_what_is_wrong_and_what_to_do(
    tmp_path: Path, make: Callable[[Path], object], kind: type[KBError], said: str
):
    reranker = CrossEncoder(options(0.5, make(tmp_path)))
    with pytest.raises(kind) as fault:
        reranker.rerank(QUERY, FUSED, TEXTS)
    assert said in fault.value.message
    assert fault.value.hint


# By name.

NAME = "org/tiny-model_v1.5"
HUB = "models--org--tiny-model_v1.5"


def paths(tmp_path: Path) -> Paths:
    return find_paths({"KB_HOME": str(tmp_path / "home"), "HF_HOME": str(tmp_path / "hf")})


def by_name(tmp_path: Path, name: str = NAME) -> list[Ranked]:
    return CrossEncoder({**options(1.0, name), "paths": paths(tmp_path)}).rerank(QUERY, FUSED, TEXTS)


@pytest.mark.promise("B.rerank.cross-encoder")
@pytest.mark.parametrize("place", [f"home/data/models/{NAME}", f"hf/hub/{HUB}/snapshots/0123abc"])
@pytest.mark.parametrize("below", ["", "onnx"])
def test_a_model_is_found_by_its_name_where_models_are_kept(
    tmp_path: Path, model: Path, place: str, below: str
):
    home = make_model(tmp_path / place)
    if below:
        (home / below).mkdir()
        (home / "model.onnx").rename(home / below / "model.onnx")
    assert by_name(tmp_path) == CrossEncoder(options(1.0, model)).rerank(QUERY, FUSED, TEXTS)


def test_of_several_versions_the_current_one_is_taken_if_it_is_whole(tmp_path: Path):
    snapshots = tmp_path / "hf/hub" / HUB / "snapshots"
    for version in ("aaa", "bbb", "ccc"):
        make_model(snapshots / version)
    (snapshots.parent / "refs").mkdir()
    (snapshots.parent / "refs/main").write_text("bbb")
    assert find_model(NAME, paths(tmp_path)).directory == snapshots / "bbb"
    (snapshots / "bbb/tokenizer.json").unlink()
    assert find_model(NAME, paths(tmp_path)).directory == snapshots / "aaa"


def test_a_directory_comes_before_a_name(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch):
    spoilt(tmp_path / "home/data/models/tiny", "model.onnx", b"nonsense")
    monkeypatch.chdir(model.parent)
    assert by_name(tmp_path, model.name)


def test_a_name_that_is_nowhere_is_told_with_every_place_that_was_looked_in(tmp_path: Path):
    with pytest.raises(BadValue) as fault:
        by_name(tmp_path)
    for place in (f"home/data/models/{NAME}", f"hf/hub/{HUB}"):
        assert str(tmp_path / place) in fault.value.message
    assert "none is downloaded" in str(fault.value.hint)


@pytest.mark.parametrize("name", ["../models/x", "/tmp/no-model", "a/b/c", ".hidden", "~no-such-user/x"])
def test_what_is_no_name_is_looked_for_as_a_directory_alone(tmp_path: Path, name: str):
    assert find_model(name, paths(tmp_path)) == (None, (Path(name),))


def test_a_model_that_is_named_is_asked_unless_that_is_turned_off(tmp_path: Path, model: Path):
    environment = {"KB_HOME": str(tmp_path / "home"), "KB_RERANK_MODEL": str(model)}
    implied = load_settings({}, environment)
    assert implied["rerank.provider"] == "cross_encoder"
    assert implied.origin("rerank.provider") == "implied"
    for said in ("none", "cosine"):
        assert load_settings({"rerank.provider": said}, environment)["rerank.provider"] == said
    assert load_settings({}, {})["rerank.provider"] == "none"
    answer = library(NOTES, rerank__model=str(model)).search(QUERY, explain=True)
    assert answer.hits[0].explanation["rerank"]["reranker"] == "cross_encoder"


# In a search.

NOTES = {str(i): text for i, text in TEXTS.items()}


@pytest.mark.promise("B.rerank.cross-encoder")
def test_a_search_comes_in_the_order_of_the_cross_encoder(model: Path):
    notes = {"Wordy": "login login pool", "Apt": "login month token pool"}
    with library(notes, rerank__provider="cross_encoder", rerank__weight=1, rerank__model=str(model)) as kb:
        answer = kb.search("login token", explain=True)
    assert titles(answer)[0] == "Apt"
    assert answer.degraded == ()
    told = answer.hits[0].explanation["rerank"]
    assert told["reranker"] == "cross_encoder"
    assert told["after"] == answer.hits[0].scores["fused"] == pytest.approx(sigmoid(2 - DOUBT), abs=1e-6)
    assert 0 < told["before"] != told["after"]


@pytest.mark.promise("000.rerank.cosine")
def test_a_search_can_be_reranked_by_cosine():
    with library(NOTES, rerank__provider="cosine", rerank__weight=1) as kb:
        answer = kb.search(QUERY)
    assert answer.degraded == ()
    assert [hit.scores["fused"] for hit in answer.hits] == pytest.approx(
        [max(0.0, hit.scores["cosine"] or 0.0) for hit in answer.hits], abs=1e-5
    )


@pytest.mark.promise("B.rerank.cross-encoder")
def test_nobody_reranks_unless_it_is_asked_for():
    with library(NOTES) as kb:
        assert kb.search(QUERY, explain=True).hits[0].explanation["rerank"] is None


def test_without_vectors_cosine_leaves_the_order_that_words_gave():
    plain = library(NOTES, embed__provider="none").search(QUERY)
    reranked = library(NOTES, embed__provider="none", rerank__provider="cosine").search(QUERY)
    assert titles(reranked) == titles(plain)
    assert [one.strategy for one in reranked.degraded] == ["semantic"]


def test_a_cross_encoder_needs_no_embedder(model: Path):
    given = {"embed__provider": "none", "rerank__provider": "cross_encoder", "rerank__model": str(model)}
    answer = library(NOTES, **given).search(QUERY, explain=True)
    assert answer.hits[0].explanation["rerank"]["reranker"] == "cross_encoder"


def test_a_search_by_words_alone_loads_no_reranker():
    answer = library(NOTES, rerank__provider="cross_encoder").search(QUERY, mode="fts5")
    assert answer.hits
    assert answer.degraded == ()


def test_a_missing_model_is_named_in_the_answer_and_costs_nothing_else(tmp_path: Path):
    plain = library(NOTES).search(QUERY)
    given = {"rerank__provider": "cross_encoder", "rerank__model": str(tmp_path / "nowhere")}
    answer = library(NOTES, **given).search(QUERY)
    assert titles(answer) == titles(plain)
    assert [one.strategy for one in answer.degraded] == ["rerank"]
    assert "nowhere" in answer.degraded[0].reason


def test_an_unknown_reranker_is_an_error_that_names_the_known_ones():
    with pytest.raises(UnknownName) as fault:
        library(NOTES, rerank__provider="crossencoder").search(QUERY)
    assert "cross_encoder" in str(fault.value.hint)


class Outsider:
    """A reranker of somebody else's, which does what it is told to."""

    name = "outsider"

    def __init__(self, act: Callable[[list[Ranked]], list[Ranked]]) -> None:
        self._act = act

    def rerank(self, query: str, ranked: Sequence[Ranked], texts: Mapping[ChunkId, str]) -> list[Ranked]:
        return self._act(list(ranked))

    def close(self) -> None:
        """Nothing is open."""


def fail(fault: Exception) -> Callable[[list[Ranked]], list[Ranked]]:
    def act(ranked: list[Ranked]) -> list[Ranked]:
        raise fault

    return act


def query_of(text: str) -> Query:
    return understood(library({}), text)


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (fail(Unavailable("the model went away")), "the model went away"),
        (fail(ZeroDivisionError("by nothing")), "ZeroDivisionError: by nothing"),
        (lambda ranked: ranked[1:], "other chunks"),
        (lambda ranked: [*ranked, ranked[0]], "other chunks"),
        (lambda ranked: [replace(one, score=math.nan) for one in ranked], "other chunks"),
    ],
    ids=["down", "bug", "lost", "doubled", "no-number"],
)
def test_a_reranker_that_fails_leaves_the_order_and_is_named(act, said: str):
    look = second_look(survivors(FUSED, TEXTS), query_of(QUERY), Outsider(act), 60_000)
    assert look.ranked == FUSED
    assert [one.strategy for one in look.degraded] == ["rerank"]
    assert said in look.degraded[0].reason


def test_nobody_waits_for_a_reranker_that_is_late():
    go_on = threading.Event()

    def act(ranked: list[Ranked]) -> list[Ranked]:
        go_on.wait()
        return ranked[::-1]

    look = second_look(survivors(FUSED, TEXTS), query_of(QUERY), Outsider(act), 1)
    go_on.set()
    assert look.ranked == FUSED
    assert look.degraded[0].reason == "no answer within 1 ms"


def test_a_failing_reranker_is_named_beside_the_strategies_that_failed():
    kb = library(NOTES)
    tools = kb.parts.search_tools(Request(QUERY), wait_for_model=True)
    answer = search(Request(QUERY), replace(tools, reranker=Outsider(fail(OSError("disk")))))
    assert answer.hits
    assert [(one.strategy, one.reason) for one in answer.degraded] == [("rerank", "OSError: disk")]
