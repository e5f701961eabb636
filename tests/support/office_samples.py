"""Office files written by hand, part by part: small, valid, and broken in just the way that a test wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def make_package(main: str, parts: Mapping[str, str]) -> bytes:
    """Return an Office file whose main part is `main`."""
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        archive.writestr(
            "_rels/.rels",
            f'<Relationships><Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="/{main}"/>'
            "</Relationships>",
        )
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def make_docx(body: str, **parts: str) -> bytes:
    """Return a Word document with this body; `styles`, `footnotes` and `core` are other parts of it."""
    files = {"word/document2.xml": _xml(f"<w:body>{body}</w:body>")}
    for name, text in parts.items():
        files["docProps/core.xml" if name == "core" else f"word/{name}.xml"] = _xml(text)
    return make_package("word/document2.xml", files)


def paragraph(text: str, properties: str = "") -> str:
    """Return a paragraph of a Word document."""
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def make_xlsx(sheets: Mapping[str, Sequence[str]], *, strings: Sequence[str] = (), styles: str = "") -> bytes:
    """Return a workbook; the rows of a sheet are the XML of their cells."""
    numbered = list(enumerate(sheets, 1))
    listed = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in numbered)
    targets = "".join(f'<Relationship Id="r{n}" Target="worksheets/s{n}.xml"/>' for n, _ in numbered)
    return make_package(
        "xl/workbook.xml",
        {
            "xl/workbook.xml": _xml(f"<sheets>{listed}</sheets>"),
            "xl/_rels/workbook.xml.rels": f"<Relationships>{targets}</Relationships>",
            "xl/sharedStrings.xml": _xml("".join(f"<si>{one}</si>" for one in strings)),
            "xl/styles.xml": _xml(styles),
            **{
                f"xl/worksheets/s{n}.xml": _xml("".join(f"<row>{row}</row>" for row in sheets[name]))
                for n, name in numbered
            },
        },
    )


def _xml(inside: str) -> str:
    prefixes = 'xmlns:w="w" xmlns:r="r" xmlns:m="m" xmlns:dc="d"'
    return f'<?xml version="1.0" encoding="UTF-8"?><root {prefixes}>{inside}</root>'
