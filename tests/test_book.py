"""Books in EPUB: their chapters in reading order, and what no such file can do."""

from __future__ import annotations

import pytest

from concord.core.errors import Damaged, Encrypted, TooLarge
from concord.extract.open_document import BookExtractor
from support.office_samples import make_archive, make_epub


def test_chapters_come_in_reading_order_with_their_headers_and_footnotes():
    extracted = BookExtractor().extract(
        make_epub(
            {
                "nav": "<html><body><p>Contents</p></body></html>",
                "b.xhtml": '<?xml version="1.0"?><html><head><title/></head><body><section><header>'
                '<h1>One<a id="x"/></h1></header><p>The walrus came.<br/>In May.</p>'
                "<aside>1 It was cold.</aside></section></body></html>",
                "a c.xhtml": "<html><body><h1>Two</h1><p>It left.</p></body></html>",
            },
            told="<dc:title>Walrus Days</dc:title><dc:title>A Novel</dc:title><dc:creator>Ann</dc:creator>",
        ),
        "a.epub",
    )
    assert extracted.text == ("# One\n\nThe walrus came.\nIn May.\n\n1 It was cold.\n\n# Two\n\nIt left.")
    assert (extracted.title, extracted.details) == ("Walrus Days", {"author": "Ann"})
    assert extracted.type == "office"


def test_a_book_whose_files_have_a_document_type_is_read_and_one_that_unfolds_is_not():
    kind = '<!DOCTYPE package PUBLIC "+//ISBN 0-9673008-1-9//DTD OEB 1.2 Package//EN" "http://example.org/a.dtd">'
    listed = '<item id="a" href="one.xhtml" media-type="application/xhtml+xml"/><itemref idref="a"/>'
    page = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "a.dtd"><html><body><p>Words.</p></body></html>'

    def book(kind: str) -> bytes:
        container = f'<?xml version="1.0"?>{kind.replace("package", "r")}<r><rootfile full-path="b.opf"/></r>'
        parts = {"META-INF/container.xml": container, "b.opf": f"{kind}<package>{listed}</package>"}
        return make_archive({**parts, "one.xhtml": page})

    assert BookExtractor().extract(book(kind), "a.epub").text == "Words."
    with pytest.raises(Damaged, match="entities"):
        BookExtractor().extract(book('<!DOCTYPE package [<!ENTITY a "b">]>'), "a.epub")
    with pytest.raises(Damaged, match="attributes"):  # each of many elements would have that long value
        BookExtractor().extract(book('<!DOCTYPE package [<!ATTLIST item b CDATA "c">]>'), "a.epub")


def test_a_protected_book_says_so_and_one_with_protected_fonts_is_read():
    chapter = {"one.xhtml": "<p>Words.</p>"}
    with pytest.raises(Encrypted, match="DRM"):
        BookExtractor().extract(make_epub(chapter, encrypted="OEBPS/one.xhtml"), "a.epub")
    assert BookExtractor().extract(make_epub(chapter, encrypted="OEBPS/font.otf"), "a.epub").text == "Words."


def test_what_is_no_book_says_so_and_one_that_unfolds_is_refused(monkeypatch: pytest.MonkeyPatch):
    for broken in (b"PK\3\4", make_archive({"mimetype": "application/epub+zip"})):
        with pytest.raises(Damaged, match="EPUB book"):
            BookExtractor().extract(broken, "a.epub")
    monkeypatch.setattr("concord.extract.package.MAX_XML_BYTES", 1_000_000)
    with pytest.raises(TooLarge, match="unfolds"):
        BookExtractor().extract(make_epub({"one.xhtml": " " * 5_000_000}), "a.epub")
