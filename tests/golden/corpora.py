"""The frozen corpora, and knowledge bases that hold them."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from concord import KnowledgeBase
from concord.types import Trust
from support.small_library import secluded

HERE = Path(__file__).parent
ARCHIVE = HERE / "corpora.tar.xz"
NOTES = "notes.json"
INSTALLED = str(HERE / "installed")  # where the embedder is found by its entry point, as an outsider's
UNTRUSTED = {"mail"}
SAVED_AT = 1_750_000_000  # when the first file was last saved; each further one a day later
A_DAY = 86_400

# Nothing may depend on how busy the machine is.
UNHURRIED = {"search__prefix_ms": 60_000, "search__partial_ms": 60_000, "search__deadline_ms": 60_000}


def unpack(folder: Path) -> Path:
    """Write the corpora below a folder; return where they are."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def pack(folder: Path) -> int:
    """Make the archive of a folder, the same bytes for the same texts; return the number of files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with tarfile.open(ARCHIVE, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for place, path in enumerate(files):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size, entry.mtime = path.stat().st_size, SAVED_AT + place * A_DAY
            with path.open("rb") as file:
                archive.addfile(entry, file)
    return len(files)


def fill(knowledge: KnowledgeBase, corpora: Path) -> None:
    """Index every folder of the corpora as a source of its own, and import the notes."""
    for folder in sorted(path for path in corpora.iterdir() if path.is_dir()):
        trust: Trust = "untrusted" if folder.name in UNTRUSTED else "trusted"
        report = knowledge.add(folder, tags=[folder.name], trust=trust)
        if report.failed:
            raise AssertionError(f"not read: {report.failed}")
    knowledge.import_notes(corpora / NOTES)


@contextmanager
def filled(home: Path, url: str, **settings: Any) -> Iterator[KnowledgeBase]:
    """Lend a knowledge base that holds the corpora; its embedder looks up the kept vectors."""
    sys.path.append(INSTALLED)
    try:
        with secluded(home, url, embed__provider="golden", **UNHURRIED, **settings) as knowledge:
            fill(knowledge, unpack(home / "corpora"))
            yield knowledge
    finally:
        sys.path.remove(INSTALLED)
