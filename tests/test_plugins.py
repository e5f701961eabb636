"""Parts by name: ours from the tables, others' by entry point, and an error that names its cure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from concord import plugins
from concord.backends.json_file import JsonStore
from concord.backends.memory import MemoryStore
from concord.backends.postgres.store import PostgresStore
from concord.backends.qdrant.place import QdrantPlace
from concord.backends.sqlite.store import SQLiteStore
from concord.embedders.bundled import BundledEmbedder
from concord.embedders.hashing import HashingEmbedder
from concord.embedders.ollama import open_ollama
from concord.embedders.onnx import OnnxEmbedder
from concord.embedders.openai import open_openai
from concord.errors import MissingExtra, UnknownName
from concord.extractors.code import CodeExtractor
from concord.extractors.excel import ExcelExtractor
from concord.extractors.html import HtmlExtractor
from concord.extractors.mail import MailExtractor
from concord.extractors.markdown import MarkdownExtractor
from concord.extractors.notebook import NotebookExtractor
from concord.extractors.pdf import PdfExtractor
from concord.extractors.plain import PlainExtractor
from concord.extractors.reader import SandboxedReader
from concord.extractors.word import WordExtractor
from concord.knowledge import KnowledgeBase
from concord.protocols import Embedder, Extractor, FileReader, OutsideVectors, Reranker, Store, Strategy
from concord.rerankers.cosine import CosineReranker
from concord.rerankers.cross_encoder import CrossEncoder
from concord.strategies.lexical import ExactWords, RelaxedWords
from concord.strategies.semantic import Semantic
from recorders import write

# Checked by mypy: what is loaded by name meets no other check of its type.
EMBEDDERS: Sequence[Callable[..., Embedder]] = (
    BundledEmbedder,
    OnnxEmbedder,
    open_ollama,
    open_openai,
    HashingEmbedder,
)
STORES: Sequence[type[Store]] = (SQLiteStore, MemoryStore, PostgresStore, JsonStore)
OUTSIDE: Sequence[Callable[..., OutsideVectors]] = (QdrantPlace,)
EXTRACTORS: Sequence[Callable[..., Extractor]] = (
    MarkdownExtractor,
    NotebookExtractor,
    PlainExtractor,
    CodeExtractor,
    HtmlExtractor,
    PdfExtractor,
    WordExtractor,
    ExcelExtractor,
    MailExtractor,
)
READERS: Sequence[Callable[..., FileReader]] = (SandboxedReader,)
RERANKERS: Sequence[Callable[..., Reranker]] = (CosineReranker, CrossEncoder)
STRATEGIES: Sequence[Callable[..., Strategy]] = (ExactWords, RelaxedWords, Semantic)
CHECKED: dict[str, Sequence[object]] = {
    "embedders": EMBEDDERS,
    "backends": STORES,
    "vectors": OUTSIDE,
    "extractors": EXTRACTORS,
    "readers": READERS,
    "rerankers": RERANKERS,
    "strategies": STRATEGIES,
}
PARTS = [(kind, name) for kind, table in plugins.TABLES.items() for name in table]


@pytest.mark.parametrize(("kind", "name"), PARTS, ids=lambda value: str(value))
def test_every_part_of_the_tables_can_be_imported(kind: str, name: str):
    assert callable(plugins.load(kind, name))
    assert name in plugins.names(kind)


@pytest.mark.parametrize("kind", sorted(plugins.TABLES))
def test_every_part_of_the_tables_is_checked_against_its_protocol(kind: str):
    assert {plugins.load(kind, name) for name in plugins.TABLES[kind]} == {*CHECKED[kind]}


@pytest.mark.parametrize("kind", sorted(plugins.TABLES))
def test_a_name_that_nobody_has_is_answered_with_those_that_exist(kind: str):
    with pytest.raises(UnknownName, match="nonsense") as failure:
        plugins.load(kind, "nonsense")
    assert all(name in (failure.value.hint or "") for name in plugins.TABLES[kind])


def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(
        plugins.TABLES["embedders"], "faraway", "a_package_that_is_not_there.embedder:Faraway"
    )
    with pytest.raises(MissingExtra, match="a_package_that_is_not_there") as failure:
        plugins.load("embedders", "faraway")
    assert "pip install 'concord-kb[faraway]'" in (failure.value.hint or "")


@pytest.fixture
def outsider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that brings an embedder, an extractor and a store of its own."""
    site = tmp_path / "site"
    write(
        site / "outsider.py",
        "from concord.backends.memory import MemoryStore\n"
        "from concord.embedders.hashing import HashingEmbedder\n"
        "from concord.types import Extracted, Identity\n\n"
        "class Loud(HashingEmbedder):\n"
        "    identity = Identity('outsider', 'loud', 256)\n\n"
        "class Shelf(MemoryStore):\n"
        "    pass\n\n"
        "class Reversed:\n"
        "    def extract(self, data, name):\n"
        "        return Extracted(data.decode()[::-1], 'text', title='turned')\n",
    )
    groups = {"embedders": "loud = outsider:Loud", "backends": "shelf = outsider:Shelf"}
    groups["extractors"] = "rev = outsider:Reversed"
    lines = "\n".join(f"[concord.{kind}]\n{row}" for kind, row in groups.items())
    write(site / "outsider-1.0.dist-info" / "entry_points.txt", lines)
    write(
        site / "outsider-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site))  # for the worker process
    return site


@pytest.mark.promise("A.parts.entry-points")
def test_an_installed_package_adds_parts_without_a_line_of_ours(outsider: Path, tmp_path: Path):
    write(tmp_path / "docs" / "secret.rev", "sreggad tuoba txet A")
    with KnowledgeBase.open(store__url="shelf://", embed__provider="loud") as kb:
        report = kb.add(tmp_path / "docs")
        assert (report.added, report.failed) == (1, ())
        answer = kb.search("daggers")
        assert answer.hits[0].document.title == "turned"
        assert {"fts_exact", "semantic"} <= set(answer.hits[0].found_by)
        assert kb.store.vectors.identity().provider == "outsider"  # type: ignore[union-attr]
    assert "loud" in plugins.names("embedders")


def test_our_own_parts_cannot_be_replaced_by_an_entry_point(outsider: Path):
    rows = "[concord.embedders]\nhashing = outsider:Loud\n"
    write(outsider / "outsider-1.0.dist-info" / "entry_points.txt", rows)
    assert plugins.load("embedders", "hashing").__module__ == "concord.embedders.hashing"


def test_asking_for_our_own_part_looks_at_no_entry_points(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "importlib.metadata", None)
    assert plugins.load("embedders", "hashing")
