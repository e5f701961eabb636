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
_LINE, _WORD = 4, 5  # levels of tesseract's table

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


class RapidOcrExtractor(Extractor):
    """Reads pictures with the networks that the package rapidocr brings."""

    def cpu_s(self, data: bytes) -> int:
        """Return how much processor time a picture may take."""
        return PAGE_CPU_S

    def __init__(self) -> None:  # before the worker limits its memory to that of a picture
        is_there = find_spec("rapidocr") is not None
        self._engine: Any = import_module("rapidocr").RapidOCR(params=_RAPIDOCR) if is_there else None

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        if not data:
            return Extracted("", "image")
        try:
            with import_module("PIL.Image").open(BytesIO(data)) as picture:
                size = max(picture.size)
        except OSError as fault:
            raise Damaged("is not a readable picture", hint="open it in a viewer, or save it anew") from fault
        return _extracted(self._lines(data)) if size >= LEAST_PIXELS else Extracted("", "image")

    def _lines(self, data: bytes) -> Iterator[Line]:
        seen = self._engine(data)
        for text, confidence, corners in zip(
            seen.txts or (), seen.scores or (), _listed(seen.boxes), strict=False
        ):
            across, down = [int(x) for x, _ in corners], [int(y) for _, y in corners]
            yield Line(text, float(confidence), (min(across), min(down), max(across), max(down)))


class TesseractExtractor(Extractor):
    """Reads pictures with the program tesseract, in the languages that are installed with it."""

    def cpu_s(self, data: bytes) -> int:
        """Return how much processor time a picture may take."""
        return PAGE_CPU_S

    @cached_property
    def _languages(self) -> str:
        names = _ran("--list-langs").decode("utf-8", "replace").split("\n")[1:]
        return "+".join([name for name in names if name not in ("", "osd")][:_MOST_LANGUAGES])

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        if not data:
            return Extracted("", "image")
        table = _ran("stdin", "stdout", "-l", self._languages or "eng", "tsv", given=data).decode(
            "utf-8", "replace"
        )
        rows = [row for line in table.split("\n")[1:] if len(row := line.split("\t")) > _LAST]
        if not rows or max(int(rows[0][_WIDTH]), int(rows[0][_HEIGHT])) < LEAST_PIXELS:
            return Extracted("", "image")
        return _extracted(_lines_of(rows))


_LEFT, _TOP, _WIDTH, _HEIGHT, _CONFIDENCE, _LAST = (
    6,
    7,
    8,
    9,
    10,
    11,
)  # columns of its table; the last is the text


def _lines_of(rows: Iterable[Sequence[str]]) -> Iterator[Line]:
    """Yield tesseract's words, those of a line together."""
    lines: defaultdict[tuple[str, ...], list[Sequence[str]]] = defaultdict(list)
    for row in rows:
        if int(row[0]) == _WORD and row[_LAST].strip():
            lines[tuple(row[1 : _LINE + 1])].append(row)
    for words in lines.values():
        left, top = (min(int(word[at]) for word in words) for at in (_LEFT, _TOP))
        right, bottom = (
            max(int(word[at]) + int(word[long]) for word in words)
            for at, long in ((_LEFT, _WIDTH), (_TOP, _HEIGHT))
        )
        confidence = sum(float(word[_CONFIDENCE]) for word in words) / len(words) / 100
        yield Line(" ".join(word[_LAST] for word in words), confidence, (left, top, right, bottom))


def _ran(*arguments: str, given: bytes = b"") -> bytes:
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    done = subprocess.run(
        ["tesseract", *arguments], input=given, capture_output=True, env=environment, check=False
    )
    if done.returncode:
        raise Damaged("is not a readable picture", hint="open it in a viewer, or save it anew")
    return done.stdout


def _listed(boxes: Any) -> Sequence[Any]:
    return () if boxes is None else boxes


def _extracted(lines: Iterable[Line]) -> Extracted:
    """Return lines as a text, with how sure they are and where they stand."""
    kept = [line for line in lines if line.text.strip() and line.confidence >= LEAST_CONFIDENCE]
    letters = sum(len(line.text) for line in kept)
    confidence = sum(line.confidence * len(line.text) for line in kept) / letters if letters else 0.0
    boxes = [[line.text, *line.box] for line in kept]
    text = clean("\n".join(line.text for line in kept))
    return Extracted(text, "image", details={"confidence": round(confidence, 3), "boxes": boxes})
