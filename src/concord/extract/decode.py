"""Bytes → str: byte-order mark, strict UTF-8, what the file declares, a guess. And: is it text at all?"""

from __future__ import annotations

import codecs

HEAD_BYTES = 8192  # what a file is judged by: a page of text, and what file(1) and git look at
SAMPLE_BYTES = 65_536  # chardet's answer does not change beyond this; its time does

# UTF-32's little-endian mark begins with UTF-16's, so the longer ones come first.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Text does use backspace, tab, newline, vertical tab, form feed, return and (in logs with colours) escape.
_CONTROLS = bytes(sorted({*range(32), 127} - {8, 9, 10, 11, 12, 13, 27}))
# Random bytes are 10 % such controls; real text has none, a damaged log a few.
_MAX_CONTROL_SHARE = 0.05

# A file that is UTF-8 but for a few bytes (a cut character, a pasted Latin-1 line) stays UTF-8: read in
# another encoding, every good character in it would turn to mojibake.
_GOOD_PER_BAD = 10
_HIGH_BYTES = bytes(range(128, 256))

# What calls itself Latin-1 has Windows' quotes and dashes in it, and so on: the larger set reads both.
# (chardet's own `prefer_superset` also makes cp1250 of ISO 8859-2, which is not one: its š and ž differ.)
_AS_BROWSERS_READ = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}

# A short text with a few accents, quotes or signs tells chardet too little: of “quoted” it makes Hebrew, of
# Café Greek. Up to so many bytes beyond ASCII it was wrong in half of such lines: Windows-1252 is likeliest.
_FEW = 8


def looks_binary(data: bytes) -> bool:
    """Return whether these bytes are not text, judged by their head."""
    head = data[:HEAD_BYTES]
    if any(head.startswith(mark) for mark, _ in _MARKS):
        return False
    if b"\0" in head:
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls > len(head) * _MAX_CONTROL_SHARE


def decode(data: bytes, declared: str | None = None) -> str:
    """Return the text of a file; `declared` is the encoding it claims, believed once UTF-8 has failed."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        return _decode_other(data, declared, fault.start)


def with_plain_newlines(text: str) -> str:
    """Return the text with one newline character after every line, whatever ended it in the file."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _decode_other(data: bytes, declared: str | None, first_bad: int) -> str:
    if declared is not None and (text := _try(data, declared)) is not None:
        return text
    text = data.decode("utf-8", "replace")
    bad, ascii_count = text.count("\ufffd"), len(data.translate(None, _HIGH_BYTES))
    if len(text) - ascii_count - bad >= bad * _GOOD_PER_BAD:
        return text
    if len(data) - ascii_count <= min(_FEW, len(data) / 2):
        return _try(data, "cp1252") or text
    import chardet  # 60 ms, and most files are UTF-8

    start = max(0, first_bad - SAMPLE_BYTES // 8)  # a window with the first byte that is not UTF-8
    # EBCDIC makes something of any bytes, and nobody keeps a mainframe's text in a folder of notes.
    eras = chardet.EncodingEra.ALL & ~chardet.EncodingEra.MAINFRAME
    answer = chardet.detect(data[start : start + SAMPLE_BYTES], compat_names=False, encoding_era=eras)
    return _try(data, answer["encoding"] or "") or text


def _try(data: bytes, encoding: str) -> str | None:
    try:
        canonical = codecs.lookup(encoding).name
        return data.decode(_AS_BROWSERS_READ.get(canonical, canonical), "replace")
    except (LookupError, ValueError):  # unknown, or a codec that is not a text encoding ("hex", "idna")
        return None
