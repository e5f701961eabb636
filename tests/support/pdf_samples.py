"""PDFs written by hand, byte by byte: small, valid, and broken in just the way that a test wants."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
_FILE_ID = bytes(range(16))
_COLUMN = 150  # points


def make_pdf(
    pages: Sequence[Sequence[str] | bytes | None],
    *,
    info: Mapping[str, str] | None = None,
    sizes: Sequence[int] = (),
    password: str | None = None,
    outline: Sequence[tuple[str, int]] = (),
) -> bytes:
    """Return a PDF with these lines on its pages, for None a picture, for bytes the one that they are as PNG.

    Tabs in a line part what stands in columns.
    `sizes` are the font sizes of a page's first lines; `outline` has titles, and their pages from 0.
    """
    first = 4 + 2 * len(pages)  # object of the outline
    catalog = f"<< /Type /Catalog /Pages 2 0 R {f'/Outlines {first} 0 R ' if outline else ''}>>"
    objects: list[bytes] = [catalog.encode()]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
    for n, lines in enumerate(pages):
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R "
        objects.append((page + "/Resources << /Font << /F1 3 0 R >> >> >>").encode())
        objects.append(_stream(_locked(_content(lines, sizes), password, len(objects) + 1)))
    objects += _outline(outline, first) if outline else ()
    trailer = f"/Root 1 0 R /ID [<{_FILE_ID.hex()}> <{_FILE_ID.hex()}>]"
    if info:
        objects.append(("<< " + " ".join(f"/{k} ({v})" for k, v in info.items()) + " >>").encode("latin-1"))
        trailer += f" /Info {len(objects)} 0 R"
    if password is not None:
        objects.append(_lock(password)[0])
        trailer += f" /Encrypt {len(objects)} 0 R"
    return _file(objects, trailer)


def make_bomb(operators: int) -> bytes:
    """Return a small PDF whose one page unfolds into so many pieces of text, each an object in memory."""
    data = zlib.compress(b"BT /F1 9 Tf " + b"(a)Tj " * operators + b"ET", 1)
    return _file(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>",
            b"<< /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (len(data), data),
        ],
        "/Root 1 0 R",
    )


def _content(lines: Sequence[str] | bytes | None, sizes: Sequence[int]) -> bytes:
    if lines is None:
        return b"q 612 0 0 792 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID 0 EI Q"
    if isinstance(lines, bytes):
        return b"q 612 0 0 792 0 0 cm " + _inline_picture(lines) + b" Q"
    parts = ["BT 72 720 Td 16 TL"]
    for n, line in enumerate(lines):
        size = sizes[n] if n < len(sizes) else 11
        first, *others = line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").split("\t")
        cells = "".join(f" {_COLUMN} 0 Td ({cell}) Tj" for cell in others)
        parts.append(f"/F1 {size} Tf ({first}) Tj{cells} {-_COLUMN * len(others)} 0 Td T*")
    return "\n".join([*parts, "ET"]).encode("cp1252")


def _inline_picture(png: bytes) -> bytes:
    """Return a PNG of one part as PDF has pictures, whose lines of pixels are packed in the same way."""
    wide, high = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    start = png.index(b"IDAT")
    data = png[start + 4 : start + 4 + int.from_bytes(png[start - 4 : start], "big")]
    packed = b"/F /Fl /DP << /Predictor 15 /Colors 3 /Columns %d >>" % wide
    return b"BI /W %d /H %d /CS /RGB /BPC 8 %s ID %s\nEI" % (wide, high, packed, data)


def _outline(entries: Sequence[tuple[str, int]], first: int) -> list[bytes]:
    """Return an outline of one level: itself, then its entries, each of which names the next."""
    last = first + len(entries)
    objects = [f"<< /Type /Outlines /First {first + 1} 0 R /Last {last} 0 R /Count {len(entries)} >>"]
    for number, (title, page) in enumerate(entries, first + 1):
        following = f"/Next {number + 1} 0 R " if number < last else ""
        target = f"/Dest [{4 + 2 * page} 0 R /Fit]"
        objects.append(f"<< /Title ({title}) /Parent {first} 0 R {following}{target} >>")
    return [entry.encode("latin-1") for entry in objects]


def _stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def _file(objects: Sequence[bytes], trailer: str) -> bytes:
    out = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    return out + f"trailer\n<< /Size {len(objects) + 1} {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()


def _locked(content: bytes, password: str | None, number: int) -> bytes:
    if password is None:
        return content
    key = _lock(password)[1] + number.to_bytes(3, "little") + bytes(2)
    return _rc4(hashlib.md5(key).digest()[:10], content)


def _lock(password: str) -> tuple[bytes, bytes]:
    """Return the dictionary of the standard security handler, revision 2, and its key: PDF 1.7, 7.6.3."""
    padded = (password.encode("latin-1") + _PADDING)[:32]
    permissions = -4
    owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
    seed = padded + owner + permissions.to_bytes(4, "little", signed=True) + _FILE_ID
    key = hashlib.md5(seed).digest()[:5]
    user = _rc4(key, _PADDING)
    entries = f"/Filter /Standard /V 1 /R 2 /O <{owner.hex()}> /U <{user.hex()}> /P {permissions}"
    return f"<< {entries} >>".encode(), key


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
