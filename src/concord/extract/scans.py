"""Scans and pictures: pages are drawn, read by an engine in a worker of its own, and kept by their hash."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from concord.core.errors import ExtractionError, NotIndexable
from concord.core.filesystem import replace_file
from concord.core.protocols import PICTURE_EXTENSIONS, Area, Progress
from concord.extract.formats import extension
from concord.extract.ocr import PAGE_CPU_S
from concord.extract.pdf import MAX_PAGES
from concord.extract.reader import SandboxedReader
from concord.extract.sandbox import Sandbox, WorkerLimits
from concord.types import Extracted

LIMITS = WorkerLimits(memory_bytes=3 * 1024**3 // 2, cpu_s=PAGE_CPU_S, wall_s=4 * PAGE_CPU_S)
MOST_KEPT = 20_000  # pictures, of some kilobytes each
_WIDTH = 1600  # pixels of a drawn page: letters of ten points are twenty pixels high


class Seen(Struct, frozen=True):
    """What was read in a picture."""

    text: str = ""
    confidence: float = 0.0
    boxes: list[tuple[str, int, int, int, int]] = []


class ScanReader:
    """Reads files that hold no text but show some; what was read in a picture is kept in a folder."""

    def __init__(self, files: SandboxedReader, engine: str, folder: str) -> None:
        self._files, self._engine, self._folder = files, engine, Path(folder, "ocr")
        self._sandbox = Sandbox(LIMITS)
        self._has_written = False

    def read(self, data: bytes, name: str, progress: Progress) -> Extracted:
        """Return the text of a picture, or of a PDF with that of its scanned pages.

        Raises:
            NotIndexable: no words are seen in it.
            ExtractionError: it cannot be read.
        """
        if extension(name) in PICTURE_EXTENSIONS:
            seen = self.seen(data)
            pages, extracted = {1: seen}, Extracted(seen.text, "image")
        else:
            pages = dict(self._scanned(data, name, progress))
            texts = {number: seen.text for number, seen in pages.items() if seen.text}
            if not texts:
                raise NotIndexable(NOTHING_SEEN)
            extracted = self._files.begin(data, name, seen=texts).result()
        if not extracted.text.strip():
            raise NotIndexable(NOTHING_SEEN)
        told = {number: seen for number, seen in pages.items() if seen.text}
        letters = sum(len(seen.text) for seen in told.values())
        confidence = sum(seen.confidence * len(seen.text) for seen in told.values()) / (letters or 1)
        how = {"engine": self._engine, "confidence": round(confidence, 3), "pages": [*told]}
        return replace(extracted, details={**extracted.details, "ocr": how})

    def seen(self, picture: bytes) -> Seen:
        """Return what is read in a picture, now or at an earlier time."""
        path = self._path(picture)
        if (kept := _kept(path)) is not None:
            return kept
        try:
            extracted = self._sandbox.extract(self._engine, picture, "picture")
            seen = Seen(extracted.text, extracted.details["confidence"], extracted.details["boxes"])
        except NotIndexable:  # no words
            seen = Seen()
        with suppress(OSError):  # read-only or full: it is read again the next time
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, msgspec.json.encode(seen), mode=0o600, wait=False)
            self._has_written = True
        return seen

    def areas(self, data: bytes, name: str, page: int, text: str) -> list[Area]:
        """Return where the lines of a text stand on a page that was read; none if that is not kept."""
        picture = self._files.image(data, name, page, _WIDTH)
        seen = _kept(self._path(picture)) or Seen()
        wide, high = struct.unpack(">II", picture[16:24])  # of a PNG
        return [
            (left / wide, top / high, right / wide, bottom / high)
            for _, left, top, right, bottom in _boxes_of(text, seen)
        ]

    def close(self) -> None:
        """End the worker; of what is kept, the oldest beyond a limit goes."""
        self._sandbox.close()
        if self._has_written:
            with suppress(OSError):  # somebody else tidies up, too
                files = sorted(self._folder.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
                for file in files[MOST_KEPT:]:
                    file.unlink()

    def _path(self, picture: bytes) -> Path:
        return self._folder / f"{hashlib.sha256(picture).hexdigest()}-{self._engine}.json"

    def _scanned(self, data: bytes, name: str, progress: Progress) -> Iterator[tuple[int, Seen]]:
        """Read the pages without text; one that cannot be drawn or read is as if it showed none."""
        pages = self._without_text(data, name)
        for number in pages or range(1, MAX_PAGES + 1):
            progress("pages", number, pages[-1] if pages else None)
            try:
                picture = self._files.image(data, name, number, _WIDTH)
            except NotIndexable:
                return
            except ExtractionError:
                continue
            try:
                yield number, self.seen(picture)
            except ExtractionError:
                continue

    def _without_text(self, data: bytes, name: str) -> list[int]:
        """Return the numbers of the pages without text; none where no page has any."""
        try:
            known = self._files.begin(data, name).result()
        except NotIndexable:
            return []
        ends = [*known.page_starts[1:], len(known.text)]
        texts = (known.text[start:end] for start, end in zip(known.page_starts, ends, strict=True))
        return [number for number, text in enumerate(texts, 1) if not text.strip()]


def _kept(path: Path) -> Seen | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Seen)
    except (OSError, ValueError):
        return None


def _boxes_of(text: str, seen: Seen) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the boxes of the lines that a text was made of, by their letters: it was flowed anew."""
    lines = [_letters(box[0]) for box in seen.boxes]
    starts = [*accumulate(map(len, lines), initial=0)]
    whole, at = "".join(lines), 0
    for line in filter(None, map(_letters, text.splitlines())):
        found = whole.find(line, at)
        if found >= 0:
            at = found + len(line)
            yield from (
                box for box, (a, b) in zip(seen.boxes, pairwise(starts), strict=True) if a < at and found < b
            )


def _letters(line: str) -> str:
    return "".join(filter(str.isalnum, line))


NOTHING_SEEN = "no words in its pictures"
