"""Parts by name: ours from the tables, others' by entry point, and an error that names its cure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from concord.core import plugins
from concord.core.errors import BadValue, MissingExtra, UnknownName
from concord.core.protocols import Embedder, Extractor, FileReader, Reranker, Strategy
from concord.embed.bundled import BundledEmbedder
from concord.embed.hashing import HashingEmbedder
from concord.embed.multilingual import MultilingualEmbedder
from concord.embed.onnx import OnnxEmbedder
from concord.embed.remote import OllamaEmbedder, OpenAIEmbedder
from concord.extract.html import DrawingExtractor, HtmlExtractor
from concord.extract.mail import MailExtractor
from concord.extract.manpage import ManualExtractor
from concord.extract.ocr import RapidOcrExtractor, TesseractExtractor, engine
from concord.extract.ooxml import SlidesExtractor, WordExtractor
from concord.extract.open_document import (
    BookExtractor,
    OpenDocumentExtractor,
    RichTextExtractor,
    SheetExtractor,
)
from concord.extract.pdf import PdfExtractor
from concord.extract.reader import SandboxedReader
from concord.extract.scans import ScanReader
from concord.extract.text import CodeExtractor, MarkdownExtractor, NotebookExtractor, PlainExtractor
from concord.knowledge import KnowledgeBase
from concord.search.legs import ExactWords, RelaxedWords, Semantic
from concord.search.rerank import CosineReranker
from concord.store.contract import OutsideVectors, Salvage, Store
from concord.store.json_file import JsonStore, MemoryStore
from concord.store.json_file import locate as locate_json
from concord.store.postgres.connections import locate as locate_postgres
from concord.store.postgres.store import PostgresStore
from concord.store.qdrant.store import QdrantStore
from concord.store.sqlite.file import locate as locate_sqlite
from concord.store.sqlite.note_log import salvage
from concord.store.sqlite.store import SQLiteStore
from contract.stored import active_model
from support.recorders import write
from support.small_library import library

# Checked by mypy: what is loaded by name meets no other check of its type.
EMBEDDERS: Sequence[Callable[..., Embedder]] = (
    BundledEmbedder,
    MultilingualEmbedder,
    OnnxEmbedder,
    OllamaEmbedder,
    OpenAIEmbedder,
    HashingEmbedder,
)
STORES: Sequence[type[Store]] = (SQLiteStore, MemoryStore, PostgresStore, JsonStore)
LOCATIONS: Sequence[Callable[[str, str], object]] = (locate_sqlite, locate_postgres, locate_json)
SALVAGERS: Sequence[Callable[[str, str], Salvage]] = (salvage,)
OUTSIDE: Sequence[Callable[..., OutsideVectors]] = (QdrantStore,)
EXTRACTORS: Sequence[Callable[..., Extractor]] = (
    BookExtractor,
    OpenDocumentExtractor,
    RichTextExtractor,
    SlidesExtractor,
    MarkdownExtractor,
    NotebookExtractor,
    PlainExtractor,
    CodeExtractor,
    HtmlExtractor,
    PdfExtractor,
    WordExtractor,
    SheetExtractor,
    MailExtractor,
    DrawingExtractor,
    RapidOcrExtractor,
    TesseractExtractor,
    ManualExtractor,
)
READERS: Sequence[Callable[..., FileReader]] = (SandboxedReader,)
RERANKERS: Sequence[Callable[..., Reranker]] = (CosineReranker,)
STRATEGIES: Sequence[Callable[..., Strategy]] = (ExactWords, RelaxedWords, Semantic)
CHECKED: dict[str, Sequence[object]] = {
    "embedders": EMBEDDERS,
    "backends": STORES,
    "locations": LOCATIONS,
    "salvagers": SALVAGERS,
    "vectors": OUTSIDE,
    "extractors": EXTRACTORS,
    "readers": READERS,
    "pictures": (engine, ScanReader),
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


@pytest.mark.parametrize(
    ("kind", "name", "module", "cure"),
    [
        ("backends", "postgresql", "concord.store.postgres.store", "pip install 'concord-kb[postgres]'"),
        ("backends", "postgres", "concord.store.postgres.store", "pip install 'concord-kb[postgres]'"),
        ("embedders", "onnx", "concord.embed.onnx", "pip install concord-kb"),
        ("embedders", "faraway", "faraway.embedder", "pip install faraway"),
    ],
)
def test_a_package_that_is_not_installed_is_named_with_the_command_that_installs_what_needs_it(
    monkeypatch: pytest.MonkeyPatch, kind: str, name: str, module: str, cure: str
):
    def import_module(wanted: str) -> None:
        raise ModuleNotFoundError(name=module if wanted.startswith("faraway") else "absent")

    monkeypatch.setitem(plugins.TABLES[kind], name, f"{module}:Part")
    monkeypatch.setattr(plugins, "import_module", import_module)
    with pytest.raises(MissingExtra, match="absent|faraway") as failure:
        plugins.load(kind, name)
    assert failure.value.hint == cure


@pytest.fixture
def outsider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that brings an embedder, an extractor, a store and two strategies of its own."""
    site = tmp_path / "site"
    write(
        site / "outsider.py",
        "from concord.store.json_file import MemoryStore\n"
        "from concord.embed.hashing import HashingEmbedder\n"
        "from concord.text.terms import word_match\n"
        "from concord.types import Extracted, Identity, RankedList\n\n"
        "class Loud(HashingEmbedder):\n"
        "    identity = Identity('outsider', 'loud', 256)\n\n"
        "class Shelf(MemoryStore):\n"
        "    pass\n\n"
        "class Reversed:\n"
        "    def extract(self, data, name):\n"
        "        return Extracted(data.decode()[::-1], 'text', title='turned')\n\n"
        "class Daggers:\n"
        "    name, leg = 'daggers', 'lexical'\n\n"
        "    def __init__(self, index):\n"
        "        self.index = index\n\n"
        "    def search(self, query):\n"
        "        found = self.index.search(word_match('daggers'), query.filter, 1)\n"
        "        return RankedList(self.name, self.leg, found)\n\n"
        "class Blades:\n"
        "    name, leg = 'blades', 'semantic'\n\n"
        "    def __init__(self, index, embedder):\n"
        "        self.index, self.embedder = index, embedder\n\n"
        "    def search(self, query):\n"
        "        near = self.embedder.embed_query('A text about daggers')\n"
        "        return RankedList(self.name, self.leg, self.index.search(near, query.filter, 1))\n",
    )
    groups = {"embedders": "loud = outsider:Loud", "backends": "shelf = outsider:Shelf"}
    groups["extractors"] = "rev = outsider:Reversed"
    groups["strategies"] = "daggers = outsider:Daggers\nblades = outsider:Blades"
    lines = "\n".join(f"[concord.{kind}]\n{row}" for kind, row in groups.items())
    write(site / "outsider-1.0.dist-info" / "entry_points.txt", lines)
    write(
        site / "outsider-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)  # for the worker process
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
        assert active_model(kb.store).provider == "outsider"  # type: ignore[union-attr]
    assert "loud" in plugins.names("embedders")


@pytest.mark.parametrize("named", ["nonsense", "semantic", "fts_exact"])
def test_a_strategy_that_nobody_brings_is_an_error_with_its_cure(outsider: Path, named: str):
    with library(search__strategies=named) as kb:
        with pytest.raises((UnknownName, BadValue), match=named) as failure:
            kb.search("token")
        assert failure.value.hint


def test_our_own_parts_cannot_be_replaced_by_an_entry_point(outsider: Path):
    rows = "[concord.embedders]\nhashing = outsider:Loud\n"
    write(outsider / "outsider-1.0.dist-info" / "entry_points.txt", rows)
    assert plugins.load("embedders", "hashing").__module__ == "concord.embed.hashing"
