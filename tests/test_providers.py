"""Models behind a server: what is sent and believed, what is tried again, and what is told when it fails."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from concord.core import plugins
from concord.core.errors import EmbedderDown, TextsRefused
from concord.embed.hashing import HashingEmbedder
from concord.embed.prefixes import prefixes_of
from concord.embed.remote import RemoteEmbedder
from concord.knowledge import KnowledgeBase
from concord.types import Identity
from support.embedding_server import WINDOW, EmbeddingServer, numbers, serving
from support.folders import NOWHERE, cached_in
from support.recorders import write

Open = Callable[..., RemoteEmbedder]
PATHS = {"ollama": "", "openai": "/v1"}
NAN = float("nan")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serving() as made:
        yield made


@pytest.fixture(params=PATHS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened() -> Iterator[Open]:
    """Open providers, and close them when the test is over."""
    made: list[RemoteEmbedder] = []

    def open_one(provider: str, **options: Any) -> RemoteEmbedder:
        given = {"embed.timeout_s": 20.0, "embed.batch": 10, "embed.concurrency": 2}
        given |= {f"embed.{key}": value for key, value in options.items()}
        made.append(plugins.load("embedders", provider)(given, NOWHERE))
        return made[-1]

    yield open_one
    for vector in made:
        vector.close()


@pytest.fixture
def remote(server: EmbeddingServer, provider: str, opened: Open) -> Open:
    return partial(opened, provider, url=server.url + PATHS[provider], model="granite")


def expected(*texts: str) -> list[Any]:
    made = HashingEmbedder({}, NOWHERE).embed_documents(texts)
    return [pytest.approx(numbers(vector), abs=1e-6) for vector in made]


def many(count: int) -> list[str]:
    return [f"text number {n} about thing{n}" for n in range(count)]


@pytest.mark.promise("E.providers.dialects")
def test_vectors_come_in_order_and_of_length_one_in_batches_of_ten(
    remote: Open, server: EmbeddingServer, provider: str
):
    embedder = remote()
    texts = many(34)
    vectors = embedder.embed_documents(texts)
    assert [numbers(vector) for vector in vectors] == expected(*texts)
    assert sorted(map(len, server.behaviour.texts)) == [4, 10, 10, 10]
    assert embedder.identity == Identity(provider, "granite", 256)
    assert embedder.embed_documents([]) == []


@pytest.mark.promise("E.providers.dialects", "003.coldstart.keep-warm")
def test_ollama_is_told_the_prefixes_and_how_long_to_keep_the_model(server: EmbeddingServer, opened: Open):
    ollama = opened("ollama", url=server.url, keep_alive="600")
    ollama.embed_documents(["a cat"])
    ollama.embed_query("a cat")
    document, query = server.behaviour.requests
    assert document == {
        "model": "nomic-embed-text",
        "input": ["search_document: a cat"],
        "truncate": False,
        "keep_alive": 600,
    }
    assert query["input"] == ["search_query: a cat"]
    assert ollama.identity.prefix_version == prefixes_of("nomic-embed-text:v1.5").version != ""


@pytest.mark.promise("E.providers.bounded")
def test_no_more_requests_are_under_way_than_allowed(remote: Open, server: EmbeddingServer):
    remote(batch=1, concurrency=3).embed_documents(many(24))
    assert 1 <= server.behaviour.most_at_once <= 3


@pytest.mark.promise("E.providers.retries")
@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(remote: Open, server: EmbeddingServer, status: int):
    server.behaviour.refuses, server.behaviour.status = 2, status
    assert len(remote(dimension=256).embed_documents(["a"])) == 1
    assert len(server.behaviour.requests) == 3


@pytest.mark.promise("E.providers.retries")
@pytest.mark.parametrize("fault", ["drops", "breaks_off"])
def test_a_connection_that_breaks_is_tried_again(remote: Open, server: EmbeddingServer, fault: str):
    setattr(server.behaviour, fault, 1)
    assert len(remote(dimension=256).embed_documents(["a"])) == 1


@pytest.mark.promise("E.providers.retries")
@pytest.mark.parametrize("status", [301, 401, 403, 404])
def test_what_cannot_pass_is_not_tried_again(remote: Open, server: EmbeddingServer, status: int):
    server.behaviour.refuses, server.behaviour.status = 9, status
    with pytest.raises(EmbedderDown) as fault:
        remote(dimension=256).embed_documents(many(3))
    assert fault.value.hint
    assert len(server.behaviour.requests) == 1


@pytest.mark.promise("E.providers.isolates")
@pytest.mark.parametrize("status", [400, 422, 500])
def test_one_bad_text_stands_alone_and_the_others_get_their_vectors(
    remote: Open, server: EmbeddingServer, status: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("concord.embed.http.FIRST_PAUSE_S", 0.0)
    server.behaviour.poison, server.behaviour.poison_status = "arsenic", status
    texts = [*many(12), "a spoon of arsenic", *many(3)]
    with pytest.raises(TextsRefused, match="1 of 16 texts: I will not read that") as refusal:
        remote(dimension=256).embed_documents(texts)
    kept = refusal.value.vectors
    assert [at for at, vector in enumerate(kept) if vector is None] == [12]
    assert [numbers(v) for v in kept if v] == expected(*texts[:12], *texts[13:])


@pytest.mark.promise("E.providers.believes-nothing")
@pytest.mark.parametrize(
    "spoilt",
    [[NAN] * 256, [0.0] * 256, [1.0] * 255, [], [None] * 256, ["1"] * 256, None, "x", [math.inf] * 256],
    ids=["nan", "zero", "short", "empty", "null", "text", "none", "word", "infinite"],
)
def test_a_broken_vector_is_refused_and_only_its_text_goes_without(
    remote: Open, server: EmbeddingServer, spoilt: Any
):
    wrong = expected("bad apple")[0]

    def spoil(vectors: list[list[Any]]) -> list[Any]:
        return [spoilt if tuple(vector) == wrong else vector for vector in vectors]

    server.behaviour.spoil = spoil
    with pytest.raises(TextsRefused) as refusal:
        remote(dimension=256).embed_documents(["good", "bad apple", "fine"])
    assert [vector is None for vector in refusal.value.vectors] == [False, True, False]


@pytest.mark.promise("E.providers.overflow")
def test_a_text_longer_than_the_window_is_embedded_in_parts_and_counted(
    remote: Open, server: EmbeddingServer
):
    embedder = remote()
    long = "melons grow on the vine and pumpkins beside them " * (3 * WINDOW // 49)
    short, vector, other = embedder.embed_documents(["a cat", long, "a dog"])
    assert [numbers(short), numbers(other)] == expected("a cat", "a dog")
    assert embedder.overflowed == 1
    melons = numbers(embedder.embed_query("melons grow on the vine"))
    near = sum(a * b for a, b in zip(numbers(vector), melons, strict=True))
    assert math.hypot(*numbers(vector)) == pytest.approx(1, abs=1e-6)
    assert near > 0.5
    assert len(embedder.embed_query(long)) == 256 * 4


@pytest.mark.promise("E.providers.dialects")
def test_a_model_that_was_not_pulled_is_told_with_the_command_that_pulls_it(
    server: EmbeddingServer, opened: Open
):
    ollama = opened("ollama", url=server.url, model="bge-m3:latest")
    with pytest.raises(EmbedderDown, match="refuses: .*bge-m3") as fault:
        _ = ollama.identity
    assert "`ollama pull bge-m3`" in (fault.value.hint or "")


def test_a_key_is_sent_and_a_refused_one_is_told_without_showing_it(server: EmbeddingServer, opened: Open):
    server.behaviour.key = "sesame"
    openai = partial(opened, "openai", url=f"{server.url}/v1", model="granite")
    assert openai(key="sesame").identity.dimension == 256
    with pytest.raises(EmbedderDown, match="refuses: a valid key is needed") as fault:
        openai(key="abracadabra").warm()
    assert "abracadabra" not in f"{fault.value.message} {fault.value.hint}"


@pytest.mark.promise("E.providers.timeouts")
def test_a_frozen_server_is_given_up_after_the_time_allowed(remote: Open, server: EmbeddingServer):
    server.behaviour.frozen = threading.Event()
    embedder = remote(dimension=256, timeout_s=0.2)
    with pytest.raises(EmbedderDown, match=r"did not answer within 0\.2 s"):
        embedder.embed_query("a")
    assert embedder.is_warm  # it has been asked: the next search asks again, and says so when it fails


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for n in range(12):
        write(tmp_path / "docs" / f"page{n}.md", f"# Page {n}\n\nWords about subject{n}.\n")
    return tmp_path / "docs"


def knowledge(tmp_path: Path, server: EmbeddingServer | None, **more: Any) -> KnowledgeBase:
    url = {"embed__url": server.url} if server else {}
    given = {"store__url": f"sqlite://{tmp_path}/store", "embed__provider": "ollama", **url, **more}
    return KnowledgeBase.open(**given)


@pytest.mark.promise("E.providers.isolates")
def test_a_poisonous_text_keeps_no_other_from_its_vector_and_is_still_found_by_words(
    tmp_path: Path, server: EmbeddingServer, docs: Path
):
    write(docs / "bad.md", "# Bad\n\nA spoon of arsenic.\n")
    server.behaviour.poison = "arsenic"
    with knowledge(tmp_path, server) as kb:
        report = kb.add(docs)
        assert (report.embedded, report.pending) == (12, 1)
        assert "I will not read that" in str(report.degraded)
        assert kb.search("arsenic", mode="fts5").hits[0].document.title == "Bad"
        server.behaviour.poison = ""
        (report,) = kb.sync()
        assert (report.embedded, report.pending, report.degraded) == (1, 0, None)


@pytest.mark.promise("000.degrade.ollama", "E.providers.dies")
def test_a_server_that_dies_in_the_middle_leaves_the_rest_for_the_next_sync(
    tmp_path: Path, server: EmbeddingServer, docs: Path
):
    port = server.server_port

    def die(vectors: list[list[Any]]) -> list[Any]:
        if len(server.behaviour.requests) > 1:
            server.behaviour.drops = 10_000
        return vectors

    server.behaviour.spoil = die
    with knowledge(tmp_path, server, embed__concurrency=1) as kb:
        report = kb.add(docs)
        assert report.pending == 12
        assert "does not answer" in str(report.degraded)
        server.shutdown()
        server.server_close()
        answer = kb.search("subject3")
        assert answer.hits[0].document.title == "Page 3"
        assert [part.strategy for part in answer.degraded] == ["semantic"]
        with serving(port=port):
            (report,) = kb.sync()
            assert (report.pending, report.degraded) == (0, None)
            assert kb.search("subject3").degraded == ()


@pytest.mark.promise("003.cold-start.frozen", "000.degrade.ollama")
def test_with_the_provider_frozen_words_answer_within_the_deadline(
    tmp_path: Path, server: EmbeddingServer, docs: Path
):
    with knowledge(tmp_path, server) as kb:
        kb.add(docs)
    server.behaviour.frozen = threading.Event()
    with knowledge(tmp_path, server) as kb:
        answer = kb.search("subject7", deadline_ms=150)
        assert answer.hits[0].document.title == "Page 7"
        assert [(part.strategy, part.reason) for part in answer.degraded] == [
            ("semantic", "no answer within 150 ms")
        ]


@pytest.mark.promise("E.providers.secrets")
def test_the_key_is_never_shown_nor_stored_nor_sent_to_another_server(
    tmp_path: Path, server: EmbeddingServer, docs: Path, capsys: pytest.CaptureFixture[str]
):
    from concord.cli.main import main

    settings = {"embed__provider": "openai", "embed__model": "granite", "embed__key": "sesame"}
    server.behaviour.key = "sesame"
    with knowledge(tmp_path, server, **(settings | {"embed__url": f"{server.url}/v1"})) as kb:
        assert kb.add(docs).pending == 0
        assert kb.search("subject3").degraded == ()
    with knowledge(tmp_path, None, **settings, embed__url="http://127.0.0.1:9/v1") as kb:
        (degraded,) = kb.search("subject3").degraded
        assert "refuses: " in degraded.reason
    assert b"sesame" not in (tmp_path / "store" / "default.db").read_bytes()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KB_HOME", str(tmp_path))
        environment.setenv("KB_EMBED_KEY", "sesame")
        assert main(["config", "--json"]) == 0
    shown = capsys.readouterr().out
    rows = {row["key"]: row["value"] for row in json.loads(shown)["settings"]}
    assert rows["embed.key"] == "(set)"
    assert "sesame" not in shown


@pytest.mark.model
@pytest.mark.promise("E.providers.dialects")
@pytest.mark.parametrize("dialect", PATHS)
def test_the_bundled_model_behind_a_server_gives_the_vectors_that_it_gives_here(
    dialect: str, tmp_path_factory: pytest.TempPathFactory, opened: Open
):
    cache = tmp_path_factory.getbasetemp() / "bundled"
    texts = ["Users log in with a password.", "Beat the butter with sugar.", "日本語"]
    with serving("bundled", cached_in(cache)) as server:
        remote = opened(dialect, url=server.url + PATHS[dialect], model="granite", timeout_s=60)
        here = [numbers(vector) for vector in server.embedder.embed_documents(texts)]
        assert [numbers(vector) for vector in remote.embed_documents(texts)] == [
            pytest.approx(number, abs=1e-6) for number in here
        ]
        assert remote.identity.dimension == 384
