"""Parts by name: one table a kind, imported only when asked for. Outsiders add theirs by entry point."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from concord.core.errors import MissingExtra, UnknownName

# A part is a row here, a file of its own and a parameter of its contract test.
TABLES: dict[str, dict[str, str]] = {
    "embedders": {
        "bundled": "concord.embed.bundled:BundledEmbedder",
        "multilingual": "concord.embed.multilingual:MultilingualEmbedder",
        "onnx": "concord.embed.onnx:OnnxEmbedder",
        "ollama": "concord.embed.remote:OllamaEmbedder",
        "openai": "concord.embed.remote:OpenAIEmbedder",
        "hashing": "concord.embed.hashing:HashingEmbedder",
    },
    "backends": {
        "sqlite": "concord.store.sqlite.store:SQLiteStore",
        "memory": "concord.store.json_file:MemoryStore",
        "postgresql": "concord.store.postgres.store:PostgresStore",
        "postgres": "concord.store.postgres.store:PostgresStore",
        "json": "concord.store.json_file:JsonStore",
    },
    "locations": {  # how a store reads its URL, to check one without opening anything; a store may have none
        "sqlite": "concord.store.sqlite.file:locate",
        "postgresql": "concord.store.postgres.connections:locate",
        "postgres": "concord.store.postgres.connections:locate",
        "json": "concord.store.json_file:locate",
    },
    "salvagers": {  # what brings back the notes of a store that does not open
        "sqlite": "concord.store.sqlite.note_log:salvage",
    },
    "vectors": {  # kept outside the store, by the scheme of `vectors.url`
        "http": "concord.store.qdrant.store:QdrantStore",
        "https": "concord.store.qdrant.store:QdrantStore",
        "qdrant-local": "concord.store.qdrant.store:QdrantStore",
    },
    "extractors": {
        "markdown": "concord.extract.text:MarkdownExtractor",
        "notebook": "concord.extract.text:NotebookExtractor",
        "text": "concord.extract.text:PlainExtractor",
        "code": "concord.extract.text:CodeExtractor",
        "html": "concord.extract.html:HtmlExtractor",
        "pdf": "concord.extract.pdf:PdfExtractor",
        "word": "concord.extract.ooxml:WordExtractor",
        "sheets": "concord.extract.open_document:SheetExtractor",
        "slides": "concord.extract.ooxml:SlidesExtractor",
        "open_document": "concord.extract.open_document:OpenDocumentExtractor",
        "book": "concord.extract.open_document:BookExtractor",
        "rich_text": "concord.extract.open_document:RichTextExtractor",
        "mail": "concord.extract.mail:MailExtractor",
        "rapidocr": "concord.extract.ocr:RapidOcrExtractor",
        "tesseract": "concord.extract.ocr:TesseractExtractor",
        "drawing": "concord.extract.html:DrawingExtractor",
        "manual": "concord.extract.manpage:ManualExtractor",
    },
    "readers": {
        "files": "concord.extract.reader:SandboxedReader",
    },
    "pictures": {
        "engine": "concord.extract.ocr:engine",
        "scans": "concord.extract.scans:ScanReader",
    },
    "rerankers": {
        "cosine": "concord.search.rerank:CosineReranker",
    },
    "strategies": {
        "fts_exact": "concord.search.legs:ExactWords",
        "fts_relaxed": "concord.search.legs:RelaxedWords",
        "semantic": "concord.search.legs:Semantic",
    },
}

ONE = {  # what a part of each kind is called in a sentence
    "embedders": "embedder",
    "backends": "store",
    "locations": "place of a store",
    "salvagers": "store that notes can be brought back from",
    "vectors": "place for vectors",
    "extractors": "extractor",
    "readers": "reader",
    "pictures": "reader of pictures",
    "rerankers": "reranker",
    "strategies": "strategy",
}
EXTRAS = {"postgresql": "postgres", "postgres": "postgres"}  # which extra brings the packages of a part


def names(kind: str) -> list[str]:
    """Return the known names of a kind, our own and those of installed packages."""
    return sorted({*TABLES[kind], *_outside(kind)})


def load(kind: str, name: str) -> Any:
    """Import and return a part."""
    module, _, attribute = find(kind, name).partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as fault:
        raise MissingExtra(
            f"{name} needs the package {fault.name!r}, which is not installed",
            hint=f"pip install {_what_brings(str(fault.name), name, module)}",
        ) from fault


def find(kind: str, name: str) -> str:
    """Return where a part is, as `module:attribute`, without importing it."""
    target = TABLES[kind].get(name) or _outside(kind).get(name)
    if target is None:
        known = ", ".join(names(kind))
        raise UnknownName(f"no {ONE[kind]} is called {name!r}", hint=f"known: {known}")
    return target


def _what_brings(package: str, name: str, module: str) -> str:
    """Return what to install for a missing package; for our own parts it is an extra of pyproject.toml."""
    if name in EXTRAS:
        return f"'concord-kb[{EXTRAS[name]}]'"
    return "concord-kb" if module.startswith("concord.") else package.partition(".")[0]


def _outside(kind: str) -> dict[str, str]:
    from importlib.metadata import entry_points  # 20 ms: only when our own table has no answer

    return {entry.name: entry.value for entry in entry_points(group=f"concord.{kind}")}
