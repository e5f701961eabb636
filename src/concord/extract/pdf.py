"""PDF by PDFium: the text layer page by page, in the order in which the file gives it."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import dropwhile, takewhile
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

from concord.core.errors import Damaged, Encrypted, NotIndexable, TooLarge
from concord.core.overriding import override
from concord.core.protocols import Area, Extractor
from concord.extract.decode import with_plain_newlines
from concord.extract.pdf_layout import find_headings, named_rows, sized_lines
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean_pages
from concord.text.plain import under_headings
from concord.types import Extracted, Json

MAX_IMAGE_HEIGHT = 4_000  # pixels: a page may be a strip
MAX_PAGES = 5_000
_PAGE_MS = 50
MAX_CHARACTERS = 20_000_000  # ten times the longest books
_LOCKED = (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)

# PDFium puts this where a hyphen ended a line, and leaves the line's end out.
_LINE_END_HYPHEN = "\x02"

_DETAILS = {"Author": "author", "Subject": "subject", "Keywords": "keywords"}
_TINT = (0.80, 0.93, 0.90)  # of red, green and blue behind a passage
# What programs write for a title when nobody gave one.
_NO_TITLE = re.compile(r"^\W*(untitled|unknown|anonymous|title|document\d*)\W*$|\.\w{2,4}$", re.IGNORECASE)
_WORD_PREFIX = re.compile(r"^Microsoft (Word|PowerPoint) - ", re.IGNORECASE)
_TITLE_LINES = 40  # of the first page, where the title is looked for by its size
_TITLE_SCALE = 1.2  # how much larger than the body it must be


class PdfExtractor(Extractor):
    """Reads the text layer of PDFs; a scan without one comes back empty."""

    def cpu_s(self, data: bytes) -> int:
        """Return how much processor time a file may take: a page takes some 2 ms, a bad one more."""
        with closing(_open(data)) as document:
            return 2 + len(document) * _PAGE_MS // 1000

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        return self.extract_with(data, name, {})

    def extract_with(self, data: bytes, name: str, seen: Mapping[int, str]) -> Extracted:
        """Return the text of a file; pages without any have what was read in their pictures, by number."""
        with closing(_open(data)) as document:
            pages = [
                _Page(seen[number], is_unread=False) if number in seen and not page.text.strip() else page
                for number, page in enumerate(_pages(document), 1)
            ]
            details = _details(document, pages)
            title = _title(document)
            if not any(page.text.strip() for page in pages):
                return Extracted("", "pdf", title=title, details={**details, "no_text_layer": True})
            text, starts = clean_pages([page.text for page in pages])
            headings = find_headings(document, text, starts)
        sections = under_headings(text, headings) if headings else None
        return Extracted(text, "pdf", title=title, details=details, page_starts=starts, sections=sections)

    def image(
        self, data: bytes, page: int, width: int, marked: str = "", areas: Sequence[Area] = ()
    ) -> bytes:
        """Return a page as PNG; the lines of a text are marked where they stand on it, and areas of it.

        Raises:
            NotIndexable: there is no such page.
            Damaged: it cannot be drawn.
        """
        with closing(_open(data)) as document:
            if not 0 < page <= len(document):
                raise NotIndexable(f"has {len(document)} pages, and none numbered {page}")
            try:
                with closing(document.get_page(page - 1)) as drawn:
                    across, down = drawn.get_size()
                    scale = min(width / across, MAX_IMAGE_HEIGHT / down)
                    bitmap = drawn.render(scale=scale, rev_byteorder=True, prefer_bgrx=False)
                    if marked:
                        _mark(drawn, bitmap, marked)
                    for left, top, right, bottom in areas:
                        wide, high = bitmap.width, bitmap.height
                        _tint(bitmap.to_numpy(), left * wide, top * high, right * wide, bottom * high)
                    return _png(bitmap)
            except (pypdfium2.PdfiumError, ZeroDivisionError) as fault:
                raise Damaged(f"page {page} cannot be drawn") from fault


def _mark(page: Any, bitmap: Any, text: str) -> None:
    """Tint the lines of a text that are found on a page, each from where the last one ended."""
    pixels, place, at = bitmap.to_numpy(), bitmap.get_posconv(page), 0
    with closing(page.get_textpage()) as text_page:
        lines = _lines(text_page)
        written = {row: lines[n] for n, row in named_rows(text_page, lines).items()}
        for line in filter(None, map(str.strip, text.splitlines())):
            with closing(text_page.search(written.get(line, line).strip(), index=at)) as search:
                found = search.get_next()
            if found is None:
                continue
            at = sum(found)
            for n in range(text_page.count_rects(*found)):
                left, bottom, right, top = text_page.get_rect(n)
                (x0, y0), (x1, y1) = sorted([place.to_bitmap(left, top), place.to_bitmap(right, bottom)])
                _tint(pixels, x0, min(y0, y1), x1, max(y0, y1))


def _tint(pixels: Any, left: float, top: float, right: float, bottom: float) -> None:
    across = slice(max(0, int(left) - 2), int(right) + 2)
    part = pixels[max(0, int(top) - 2) : int(bottom) + 2, across, :3]
    part[...] = part * _TINT


def _png(bitmap: Any) -> bytes:
    """Return a bitmap as PNG: lines of pixels, deflated."""
    wide, high, samples = bitmap.width, bitmap.height, bitmap.n_channels
    pixels, stride = bytes(bitmap.buffer), bitmap.stride
    lines = (b"\0" + pixels[y * stride : y * stride + wide * samples] for y in range(high))
    head = struct.pack(">IIBBBBB", wide, high, 8, {1: 0, 3: 2, 4: 6}[samples], 0, 0, 0)
    body = zlib.compress(b"".join(lines), 6)
    return b"\x89PNG\r\n\x1a\n" + _part(b"IHDR", head) + _part(b"IDAT", body) + _part(b"IEND", b"")


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _open(data: bytes) -> Any:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as fault:
        if fault.err_code in _LOCKED:
            raise Encrypted("is locked with a password", hint="save a copy without one") from fault
        raise Damaged(
            "is not a readable PDF: cut off, damaged or without pages",
            hint="open it in a viewer, or fetch it again",
        ) from fault


class _Page(NamedTuple):
    text: str
    is_unread: bool  # it shows something, but no text


def _pages(document: Any) -> list[_Page]:
    count = len(document)
    if count > MAX_PAGES:
        raise TooLarge(f"has {count} pages; {MAX_PAGES} are the limit", hint="split it into parts")
    pages = [_page(document, index) for index in range(count)]
    if sum(len(page.text) for page in pages) > MAX_CHARACTERS:
        raise TooLarge(f"holds more than {MAX_CHARACTERS} characters", hint="split it into parts")
    return pages


def _page(document: Any, index: int) -> _Page:
    try:
        with closing(document.get_page(index)) as page, closing(page.get_textpage()) as text_page:
            lines = _lines(text_page)
            named = named_rows(text_page, lines)
            text = "\n".join(named.get(n, line) for n, line in enumerate(lines))
            is_unread = not text.strip() and raw.FPDFPage_CountObjects(page) > 0
    except pypdfium2.PdfiumError:  # one broken page of many: the others are still worth finding
        return _Page("", is_unread=True)
    return _Page(text.replace(_LINE_END_HYPHEN, "-\n"), is_unread)


def _lines(text_page: Any) -> list[str]:
    text = text_page.get_text_bounded()  # its sibling get_text_range loses what is beyond 16 bits
    return with_plain_newlines(text).split("\n")


def _details(document: Any, pages: Sequence[_Page]) -> dict[str, Json]:
    found: dict[str, Json] = {"pages": len(pages)}
    if unread := sum(page.is_unread for page in pages):
        found["pages_without_text"] = unread
    for key, name in _DETAILS.items():
        if value := _metadata(document, key):
            found[name] = value
    return found


def _metadata(document: Any, key: str) -> str:
    try:
        value: str = document.get_metadata_value(key)
    except UnicodeDecodeError:
        return ""
    return " ".join(value.replace("\0", " ").split())


def _title(document: Any) -> str | None:
    given = _WORD_PREFIX.sub("", _metadata(document, "Title"))
    if any(map(str.isalpha, given)) and not _NO_TITLE.search(given):
        return given[:MAX_TITLE]
    # The first lines of the largest letters of the first page, if they stand out from the rest.
    lines = [*sized_lines(document, 0)][:_TITLE_LINES]
    letters: Counter[float] = Counter()
    for size, words in lines:
        letters[size] += len(words)
    largest = max(letters, default=0)
    if not lines or largest < letters.most_common(1)[0][0] * _TITLE_SCALE:
        return None
    run = takewhile(lambda line: line[0] == largest, dropwhile(lambda line: line[0] < largest, lines))
    title = " ".join(words for _, words in run)
    return title if 3 <= len(title) <= MAX_TITLE and any(map(str.isalpha, title)) else None
