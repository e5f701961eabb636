"""Word, Excel and e-mail: what is read of them, and what no such file can do."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concord.core.errors import Damaged, Encrypted, TooLarge
from concord.extract.mail import MailExtractor
from concord.extract.ooxml import SlidesExtractor, WordExtractor
from concord.extract.open_document import BookExtractor, OpenDocumentExtractor, SheetExtractor
from concord.extract.reader import SandboxedReader
from concord.types import Extracted
from support.kb_command import Kb
from support.office_samples import (
    XLS,
    make_docx,
    make_epub,
    make_odf,
    make_ods,
    make_package,
    make_pptx,
    make_xlsx,
    paragraph,
    run,
    shape,
)

HEADING = '<w:pStyle w:val="berschrift2"/>'
STYLES = (
    '<w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Eigen"><w:name w:val="My own"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>'
)


def word(body: str, **parts: str) -> Extracted:
    return WordExtractor().extract(make_docx(body, **parts), "a.docx")


def mail(text: str) -> Extracted:
    return MailExtractor().extract(text.encode(), "a.eml")


def in_list(level: int, number: int = 1) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'


def test_a_word_document_becomes_markdown_by_its_styles_whatever_their_language():
    extracted = word(
        paragraph("The Handbook", '<w:pStyle w:val="Titel"/>')
        + paragraph("Rules", HEADING)
        + "<w:p><w:r><w:t>The walrus </w:t></w:r><w:r><w:t>clause</w:t><w:br/><w:t>applies.</w:t></w:r></w:p>"
        + paragraph("one", in_list(0))
        + paragraph("two", in_list(1))
        + paragraph("# none", in_list(0, number=0))
        + paragraph("Own", '<w:pStyle w:val="Eigen"/>'),
        styles=STYLES,
    )
    assert extracted.text == (
        "# The Handbook\n\n## Rules\n\nThe walrus clause\napplies.\n\n- one\n  - two\n\n\\# none\n\n### Own"
    )
    assert (extracted.type, extracted.title) == ("office", "The Handbook")


def test_tables_notes_and_what_word_knows_of_a_document_are_read():
    cell = "<w:tc>{}</w:tc>".format
    row = "<w:tr>{}</w:tr>".format
    inner = f"<w:tbl>{row(cell(paragraph('inner')))}</w:tbl>"
    extracted = word(
        "<w:tbl>"
        + row(cell(paragraph("food")) + cell(paragraph("kg")))
        + row(cell(paragraph("clams") + inner) + cell(paragraph("20")))
        + "</w:tbl>",
        footnotes=f"<w:footnote>{paragraph('A footnote.')}</w:footnote>",
        core="<dc:title>Feeding</dc:title><dc:creator>Ann</dc:creator>",
    )
    assert extracted.text == "| food | kg |\n| --- | --- |\n| clams inner | 20 |\n\nA footnote."
    assert (extracted.title, extracted.details) == ("Feeding", {"author": "Ann"})


def test_deleted_and_moved_text_and_copies_for_old_programs_are_left_out():
    extracted = word(
        "<w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
        "<m:AlternateContent><m:Choice><w:t>box</w:t></m:Choice><m:Fallback><w:t>box</w:t></m:Fallback>"
        "</m:AlternateContent></w:p>"
        + paragraph("plain", f"<w:pPrChange><w:pPr>{HEADING}</w:pPr></w:pPrChange>"),
        styles=STYLES,
    )
    assert extracted.text == "box\n\nplain"


def test_a_bad_cell_loses_its_sheet_and_no_other():
    bad, good = ['<c r="A1" t="e"><v>#NONSENSE</v></c>'], ['<c r="A1"><v>7</v></c>']
    extracted = SheetExtractor().extract(make_xlsx({"Bad": bad, "Good": good}), "a.xlsx")
    assert extracted.text == "# Good\n\n7"
    assert extracted.details["unread_sheets"] == ["Bad"]
    with pytest.raises(Damaged, match="no sheet"):
        SheetExtractor().extract(make_xlsx({"Bad": bad}), "a.xlsx")


def test_a_workbook_is_a_table_a_sheet_with_what_its_cells_show():
    extracted = SheetExtractor().extract(
        make_xlsx(
            {
                "Revenue": [
                    '<c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c>',
                    '<c r="A2" t="inlineStr"><is><t>Madeira</t></is></c>'
                    '<c r="B2"><f>A1*2</f><v>0.30000000000000004</v></c>',
                    "",
                    '<c r="B4" s="1"><v>46328</v></c><c r="D4" s="2"><v>46328.4375</v></c>',
                    '<c r="A5" t="b"><v>1</v></c><c r="B5"><v>99</v></c>',
                ],
                "Empty": [],
                "Far": ['<c r="A1"><v>1</v></c><c r="XFD1"><v>2</v></c>'],
            },
            strings=["<t>region</t>", "<r><t>reve</t></r><r><t>nue</t></r><rPh><t>spoken</t></rPh>"],
            styles='<numFmts><numFmt numFmtId="164" formatCode="[Red]dd\\.mm\\.yyyy"/></numFmts>'
            '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
            '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/></cellXfs>',
        ),
        "a.xlsx",
    )
    revenue, _, far = extracted.text.partition("\n\n# Far\n\n")
    assert revenue == (
        "# Revenue\n\n| region | revenue |\n| --- | --- |\n| Madeira | 0.3 |\n"
        "|  | 2026-11-02 |  | 2026-11-02 10:30 |\n| TRUE | 99 |"
    )
    assert far.startswith("| 1 |")
    assert far.count("|", 0, far.index("\n")) < 300
    assert extracted.type == "office"


def test_workbooks_of_libreoffice_and_of_old_excel_are_read_too():
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'.format
    blank = '<table:table-cell table:number-columns-repeated="{}"/>'.format
    ods = make_ods(
        cell("item") + cell("May") + cell("June"), blank(2) + cell("7") + blank(16_000), blank(16_384)
    )
    assert SheetExtractor().extract(ods, "a.ods").text == (
        "# Costs\n\n| item | May | June |\n| --- | --- | --- |\n|  |  | 7 |"
    )
    assert SheetExtractor().extract(XLS, "a.xls").text == "# Old\n\n| walrus | 12 |\n| --- | --- |"


def test_a_mail_is_read_with_its_headers_and_the_names_of_what_is_attached():
    extracted = mail(
        "From: Ann <ann@example.com>\nTo: bob@example.com\nSubject: =?utf-8?q?Angebot_f=C3=BCr_Walross?=\n"
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n"
        "--x\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n"
        "Gr=FC=DFe an alle,\n12 walruses.\n-- \nAnn\n"
        '--x\nContent-Type: application/pdf; name="offer.pdf"\nContent-Disposition: attachment\n'
        "Content-Transfer-Encoding: base64\n\nJVBERi0=\n--x--\n"
    )
    assert extracted.text == (
        "From: Ann <ann@example.com>\nTo: bob@example.com\nSubject: Angebot für Walross\n"
        "Attached: offer.pdf\n\nGrüße an alle,\n12 walruses.\n\nAnn"
    )
    assert (extracted.type, extracted.title) == ("mail", "Angebot für Walross")


def test_a_mail_of_html_alone_is_read_as_a_page():
    extracted = mail(
        "Subject: News\nContent-Type: text/html; charset=utf-8\n\n"
        "<style>p {}</style><h1>Hello</h1><p>New é.</p>"
    )
    assert extracted.text == "Subject: News\n\n# Hello\n\nNew é."


def test_what_is_locked_damaged_or_something_else_says_so():
    whole = make_docx(paragraph("words"))
    for broken in (
        b"not a zip",
        whole[: len(whole) // 2],
        make_package("word/other.xml", {}),
        make_xlsx({})[:-30],
        make_package("word/a.xml", {"word/a.xml": '<?xml version="1.0" encoding="UTF-x"?><a/>'}),
    ):
        for extractor in (WordExtractor(), SheetExtractor()):
            with pytest.raises(Damaged, match="is not a readable") as fault:
                extractor.extract(broken, "a")
            assert fault.value.hint
    for extractor in (WordExtractor(), SheetExtractor()):
        with pytest.raises(Encrypted):
            extractor.extract(bytes.fromhex("D0CF11E0A1B11AE1") + bytes(500), "a.docx")


def test_entities_are_refused_before_they_unfold():
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    document = f'<!DOCTYPE w [<!ENTITY e0 "ha">{entities}]><w><p><r><t>&e11;</t></r></p></w>'
    with pytest.raises(Damaged, match="entities"):
        WordExtractor().extract(make_package("word/document.xml", {"word/document.xml": document}), "a.docx")


def test_a_small_file_that_unfolds_beyond_measure_is_refused(monkeypatch: pytest.MonkeyPatch):
    bomb = make_docx(paragraph(" " * 5_000_000))
    assert len(bomb) < 10_000
    monkeypatch.setattr("concord.extract.package.MAX_XML_BYTES", 1_000_000)
    with pytest.raises(TooLarge, match="unfolds"):
        WordExtractor().extract(bomb, "a.docx")


def test_a_broken_office_file_is_named_and_the_others_are_read_in_the_worker():
    reader = SandboxedReader()
    try:
        with pytest.raises(Damaged, match="Word document"):
            reader.read(b"PK\3\4", "a.docx")
        assert reader.read(make_docx(paragraph("fine")), "b.docx").text == "fine"
        assert reader.read(make_xlsx({"S": ['<c r="A1"><v>7</v></c>']}), "b.xlsx").text == "# S\n\n7"
        assert reader.read(make_pptx([shape(run("slide"))]), "b.pptx").text == "slide"
        assert reader.read(make_odf("text", "<t:p>open</t:p>"), "b.odt").text == "open"
        assert reader.read(make_epub({"one": "<p>book</p>"}), "b.epub").text == "book"
        assert reader.read(b"{\\rtf1 rich}", "b.rtf").text == "rich"
        assert reader.read(b"Subject: Hi\n\nwords", "b.eml").text == "Subject: Hi\n\nwords"
    finally:
        reader.close()


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=20))
@example(1251, b"\1")  # a directory that begins before the file does
@settings(max_examples=60)
def test_a_mutilated_office_file_gives_text_or_one_of_our_errors(at: int, noise: bytes):
    for extractor, whole in (
        (WordExtractor(), make_docx(paragraph("some text"), styles=STYLES)),
        (SheetExtractor(), make_xlsx({"S": ['<c r="A1" t="s"><v>0</v></c>']}, strings=["<t>x</t>"])),
        (SlidesExtractor(), make_pptx([shape(run("some text"))])),
        (OpenDocumentExtractor(), make_odf("text", "<t:p>some text</t:p>")),
        (BookExtractor(), make_epub({"one": "<p>some text</p>"})),
    ):
        cut = at % len(whole)
        with suppress(Damaged, Encrypted, TooLarge):
            extractor.extract(whole[:cut] + noise + whole[cut + len(noise) :], "a")


def test_office_files_are_found_by_what_they_say_and_by_their_type(kb: Kb, tmp_path):
    folder = tmp_path / "office"
    folder.mkdir()
    (folder / "handbook.docx").write_bytes(
        make_docx(paragraph("Rules", HEADING) + paragraph("The walrus clause."), styles=STYLES)
    )
    (folder / "page.md").write_text("Feed the walrus.", encoding="utf-8")
    assert kb("add", "office").status == 0
    found = kb("search", "walrus", "--type", "office", "--json").json["results"]
    assert [hit["path"] for hit in found] == ["office/handbook.docx"]
    assert kb("get", found[0]["citation"]).out == "## Rules\n\nThe walrus clause.\n"
