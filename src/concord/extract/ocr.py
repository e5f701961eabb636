"""What stands in a picture, line by line with its place, by rapidocr or tesseract: in the worker process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any, NamedTuple

from concord.core.errors import Damaged
from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.text.clean import clean
from concord.types import Extracted

PAGE_CPU_S = 60
LEAST_PIXELS = 200  # of the longer side: what is smaller is an icon
# A page of 1,600 pixels has letters of 14, and takes 0.9 GB; one twice as long takes 1.6 GB.
_RAPIDOCR = {
    "Global.max_side_len": 1600,
    "Rec.rec_batch_num": 2,
    "EngineConfig.onnxruntime.enable_cpu_mem_arena": False,
}
LEAST_CONFIDENCE = 0.5  # of a line: below it, it is a pattern more often than words
_MOST_LANGUAGES = 4  # tesseract takes as much longer as it has languages to try
_LINE, _WORD = 4, 5  # levels of tesseract's table, whose columns are:
_LEFT, _TOP, _WIDTH, _HEIGHT, _CONFIDENCE, _TEXT = range(6, 12)

Box = tuple[int, int, int, int]  # left, top, right, bottom, in pixels


class Line(NamedTuple):
    """A line of a picture."""

    text: str
    confidence: float  # from 0 to 1
    box: Box


def engine(wish: str) -> str | None:
    """Return the engine that is wished for, or the better one that is installed; None if there is none."""
    installed = {"rapidocr": find_spec("rapidocr") is not None, "tesseract": bool(shutil.which("tesseract"))}
    return next((name for name, is_there in installed.items() if is_there and wish in ("auto", name)), None)


def _extracted(lines: Iterable[Line]) -> Extracted:
    """Return the lines of a picture as a text, with how sure they are and where they stand."""
    kept = [line for line in lines if line.text.strip() and line.confidence >= LEAST_CONFIDENCE]
    letters = sum(len(line.text) for line in kept)
    confidence = sum(line.confidence * len(line.text) for line in kept) / (letters or 1)
    boxes = [[line.text, *line.box] for line in kept]
    text = clean("\n".join(line.text for line in kept))
    return Extracted(text, "image", details={"confidence": round(confidence, 3), "boxes": boxes})


class RapidOcrExtractor(Extractor):
    """Reads pictures with the networks that the package rapidocr brings."""

    def __init__(self) -> None:  # before the worker limits its memory to that of a picture
        is_there = find_spec("rapidocr") is not None
        self._engine: Any = import_module("rapidocr").RapidOCR(params=_RAPIDOCR) if is_there else None

    def cpu_s(self, data: bytes) -> int:
        """Return how much processor time a picture may take."""
        return PAGE_CPU_S

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        return _extracted(self.lines(data) if data else ())

    def lines(self, data: bytes) -> Iterator[Line]:
        """Yield the lines of a picture that is large enough for words."""
        try:
            with import_module("PIL.Image").open(BytesIO(data)) as picture:
                size = max(picture.size)
        except OSError as fault:
            raise Damaged("is not a readable picture", hint="open it in a viewer, or save it anew") from fault
        if size < LEAST_PIXELS:
            return
        seen = self._engine(data)
        boxes: Any = () if seen.boxes is None else seen.boxes
        for text, confidence, corners in zip(seen.txts or (), seen.scores or (), boxes, strict=False):
            across, down = [int(x) for x, _ in corners], [int(y) for _, y in corners]
            yield Line(text, float(confidence), (min(across), min(down), max(across), max(down)))


class TesseractExtractor(Extractor):
    """Reads pictures with the program tesseract, in the languages that are installed with it."""

    @cached_property
    def _languages(self) -> str:
        names = _ran("--list-langs").decode("utf-8", "replace").split("\n")[1:]
        return "+".join([name for name in names if name not in ("", "osd")][:_MOST_LANGUAGES])

    def cpu_s(self, data: bytes) -> int:
        """Return how much processor time a picture may take."""
        return PAGE_CPU_S

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        return _extracted(self.lines(data) if data else ())

    def lines(self, data: bytes) -> Iterator[Line]:
        """Yield the lines of a picture that is large enough for words."""
        table = _ran("stdin", "stdout", "-l", self._languages or "eng", "tsv", given=data)
        rows = [line.split("\t") for line in table.decode("utf-8", "replace").split("\n")[1:] if "\t" in line]
        if not rows or max(int(rows[0][_WIDTH]), int(rows[0][_HEIGHT])) < LEAST_PIXELS:
            return
        words: defaultdict[tuple[str, ...], list[Sequence[str]]] = defaultdict(list)  # by their line
        for row in rows:
            if int(row[0]) == _WORD and row[_TEXT].strip():
                words[tuple(row[1 : _LINE + 1])].append(row)
        for line in words.values():
            left, top = (min(int(word[at]) for word in line) for at in (_LEFT, _TOP))
            right = max(int(word[_LEFT]) + int(word[_WIDTH]) for word in line)
            bottom = max(int(word[_TOP]) + int(word[_HEIGHT]) for word in line)
            confidence = sum(float(word[_CONFIDENCE]) for word in line) / len(line) / 100
            yield Line(" ".join(word[_TEXT] for word in line), confidence, (left, top, right, bottom))


def _ran(*arguments: str, given: bytes = b"") -> bytes:
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    done = subprocess.run(
        ["tesseract", *arguments], input=given, capture_output=True, env=environment, check=False
    )
    if done.returncode:
        raise Damaged("is not a readable picture", hint="open it in a viewer, or save it anew")
    return done.stdout
