"""Office files written by hand, part by part: small, valid, and broken in just the way that a test wants."""

from __future__ import annotations

import zlib
from base64 import b85decode
from collections.abc import Mapping, Sequence
from io import BytesIO
from urllib.parse import quote
from zipfile import ZIP_DEFLATED, ZipFile

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def make_package(main: str, parts: Mapping[str, str]) -> bytes:
    """Return an Office file whose main part is `main`."""
    relation = f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="/{main}"/>'
    return make_archive({"_rels/.rels": f"<Relationships>{relation}</Relationships>", **parts})


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
    targets = "".join(
        f'<Relationship Id="r{n}" Type="{_OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>'
        for n, _ in numbered
    )
    return make_package(
        "xl/workbook.xml",
        {
            "xl/workbook.xml": _xml(f"<sheets>{listed}</sheets>", "workbook"),
            "xl/_rels/workbook.xml.rels": f"<Relationships>{targets}</Relationships>",
            "xl/sharedStrings.xml": _xml("".join(f"<si>{string}</si>" for string in strings), "sst"),
            "xl/styles.xml": _xml(styles, "styleSheet"),
            **{
                f"xl/worksheets/s{n}.xml": _xml(
                    "".join(["<sheetData>", *(f"<row>{row}</row>" for row in sheets[name]), "</sheetData>"]),
                    "worksheet",
                )
                for n, name in numbered
            },
        },
    )


def make_pptx(
    slides: Sequence[str],
    *,
    notes: Mapping[int, str] | None = None,
    core: str = "",
) -> bytes:
    """Return a presentation; a slide is the XML of its shapes, as are its notes, by number."""
    numbers = range(1, len(slides) + 1)
    # The last file is the first slide.
    listed = "".join(f'<p:sldId id="25{n}" r:id="r{n}"/>' for n in reversed(numbers))
    targets = "".join(f'<Relationship Id="r{n}" Target="slides/s{n}.xml"/>' for n in numbers)
    parts = {
        "ppt/main.xml": _xml(f"<p:sldIdLst>{listed}</p:sldIdLst>"),
        "ppt/_rels/main.xml.rels": f"<Relationships>{targets}</Relationships>",
        "docProps/core.xml": _xml(core),
    }
    for number, shapes in zip(numbers, reversed(slides), strict=True):
        parts[f"ppt/slides/s{number}.xml"] = _xml(shapes)
    for number in numbers:
        file = f"s{len(slides) + 1 - number}.xml"
        beside = {f"notesSlides/{file}": (notes or {}).get(number)}
        told = {name: shapes for name, shapes in beside.items() if shapes}
        targets = "".join(f'<Relationship Id="{name}" Target="../{name}"/>' for name in told)
        parts[f"ppt/slides/_rels/{file}.rels"] = f"<Relationships>{targets}</Relationships>"
        parts |= {f"ppt/{name}": _xml(shapes) for name, shapes in told.items()}
    return make_package("ppt/main.xml", parts)


def shape(*paragraphs: str, placeholder: str | None = None) -> str:
    """Return a shape of a slide; `placeholder` is what it stands for, if for anything."""
    stands_for = "" if placeholder is None else f'<p:nvPr><p:ph type="{placeholder}"/></p:nvPr>'
    inside = "".join(f"<a:p>{text}</a:p>" for text in paragraphs)
    return f"<p:sp>{stands_for}<p:txBody>{inside}</p:txBody></p:sp>"


def run(text: str) -> str:
    """Return a run of text of a slide."""
    return f"<a:r><a:t>{text}</a:t></a:r>"


def make_archive(parts: Mapping[str, str | bytes]) -> bytes:
    """Return a ZIP archive of these files."""
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


def make_odf(kind: str, body: str, *, meta: str = "", manifest: str = "<root/>") -> bytes:
    """Return an OpenDocument file of a kind (text, spreadsheet or presentation) with this body."""
    return make_archive(
        {
            "content.xml": _xml(f"<o:body><o:{kind}>{body}</o:{kind}></o:body>"),
            "meta.xml": _xml(meta),
            "META-INF/manifest.xml": manifest,
        }
    )


def make_ods(*rows: str) -> bytes:
    """Return an OpenDocument workbook with one sheet, called Costs; a row is the XML of its cells."""
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = " ".join(f'xmlns:{name}="{urn}:{name}:1.0"' for name in ("office", "table", "text"))
    inside = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    sheet = f'<office:spreadsheet><table:table table:name="Costs">{inside}</table:table></office:spreadsheet>'
    return make_archive(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document {spaces}><office:body>{sheet}</office:body></office:document>",
        }
    )


# A workbook of Excel 97: one sheet, called Old, with "walrus" in A1 and 12 in B1; packed, in base 85.
XLS = zlib.decompress(
    b85decode(
        "c-rk)O=uHA6#izDG(WcKZcT+&D4}50+KYPeQdb4-$y&WAB4}!IkcL!NMf9N6nxi0iQoIy;@lqARAM~I%4?;x`f*>S%^du<s&}Mz}Wmi-6"
        "(0~>#^DXnu%bR&KZ<+UIGW%-QsZ8DLuHq+bM+7xLiIxVPl9CL6*pPPL*J4;Fr1%E^6_N>A$d(wMw7rb$HPq`}g@wD(=fc1TDMxS;!{enw"
        "b{VmYKID}4VNh7%mT1!GqE{W{<K)%kJM8(Cyn~vn<U#3MQHL?>4)<>hqWF;2%eFN1xDRRbj+)Kr#0wq87q6*$-xzj!CvwGqv!N&2ifPEY"
        "4HZfSFITJ}BMUf<uYMNz5@zbNtkEy8UP1J8i}mr}=&xH*U;_Rz26!2(a6h73BG^~V&%@!4tLj;KHdpk{oJ#2}m?>*7O4&Asa;tD2?UWq`"
        "v@M(R{O!-L_l}OZN2!_MHeDZfot_^)E@=xfPJeF!`}UJJkuP)9wUoQb83{wF`$jqgVb3J{Tw!aU%(Inv<F0RzH;7#RwEt00`J=m0<e8!B"
        "`OM5)cM837xa7rNKa&_x1M21tjmK_St03{;le>P|1QM1V`0fWMRy!7uqUew>SSh}tgDv`yvpVoV8_JgP11T677#J8B7#J8BtWc=nufD!_"
        "=*vJXxKPA{?>Y-oYUVS^ip2qp%X3;Trn^y++QYe~;%5zFDjZ8K(I)&}sButc_b`T0`Z3mY{K|z;HNMZ14edXdLe0)!YsSyNJpVUBJh{p"
    )
)


def make_epub(chapters: Mapping[str, str], *, told: str = "", encrypted: str = "") -> bytes:
    """Return a book whose chapters are pages of XHTML, read in the order given; `nav` is a list of them."""
    listed = "".join(
        f'<item id="{name}" href="{quote(name)}" media-type="application/xhtml+xml"'
        f' properties="{"nav" if name == "nav" else ""}"/>'
        for name in sorted(chapters)
    )
    order = "".join(f'<itemref idref="{name}"/>' for name in chapters)
    container = '<root><rootfile full-path="OEBPS/book.opf"/></root>'
    locks = f'<root><CipherReference URI="{encrypted}"/></root>'
    return make_archive(
        {
            "META-INF/container.xml": container,
            "OEBPS/book.opf": _xml(
                f"<metadata>{told}</metadata><manifest>{listed}</manifest><spine>{order}</spine>"
            ),
            **({"META-INF/encryption.xml": locks} if encrypted else {}),
            **{f"OEBPS/{name}": page for name, page in chapters.items()},
        }
    )


def _xml(inside: str, root: str = "root") -> str:
    prefixes = " ".join(f'xmlns:{prefix}="{prefix}"' for prefix in ("w", "m", "dc", "p", "a", "o", "t"))
    spaces = (
        f'{prefixes} xmlns:r="{_OFFICE}" xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    )
    return f'<?xml version="1.0" encoding="UTF-8"?><{root} {spaces}>{inside}</{root}>'
