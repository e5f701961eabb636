"""OpenDocument: what is read of texts, and what no such file can do."""

from __future__ import annotations

import pytest

from concord.core.errors import Damaged, Encrypted
from concord.extract.open_document import OpenDocumentExtractor
from concord.types import Extracted
from support.office_samples import make_archive, make_odf


def odf(kind: str, body: str, **parts: str) -> Extracted:
    return OpenDocumentExtractor().extract(make_odf(kind, body, **parts), f"a.{kind}")


def test_headings_lists_and_spaces_of_a_text_are_kept():
    extracted = odf(
        "text",
        '<t:h t:outline-level="1">The Handbook</t:h><t:h t:outline-level="9">Deep</t:h>'
        '<t:p>The <t:span>walrus</t:span><t:s t:c="2"/>clause<t:line-break/>applies.</t:p>'
        "<t:list><t:list-item><t:p>one</t:p><t:list><t:list-item><t:p>two</t:p></t:list-item></t:list>"
        "</t:list-item></t:list>",
        meta="<dc:title>Rules</dc:title><o:initial-creator>Ann</o:initial-creator><dc:creator>Bob</dc:creator>",
    )
    assert extracted.text == (
        "# The Handbook\n\n###### Deep\n\nThe walrus clause\napplies.\n\n- one\n  - two"
    )
    assert (extracted.title, extracted.details, extracted.page_starts) == ("Rules", {"author": "Ann"}, ())


def test_notes_stand_where_they_are_called_and_what_was_deleted_is_gone():
    extracted = odf(
        "text",
        "<t:tracked-changes><t:p>deleted</t:p></t:tracked-changes><t:table-of-content><t:p>Contents</t:p>"
        "</t:table-of-content><t:p>Clams<t:note><t:note-citation>1</t:note-citation><t:note-body>"
        "<t:p>Raw.</t:p></t:note-body></t:note> are food"
        "<o:annotation><dc:creator>Ann</dc:creator><t:p>Sure?</t:p></o:annotation>.</t:p>",
    )
    assert extracted.text == "Clams (Raw.) are food (Sure?)."


def test_a_table_in_a_text_may_hold_lists_and_tables():
    inner = "<t:table><t:table-row><t:table-cell><t:p>inner</t:p></t:table-cell></t:table-row></t:table>"
    points = "<t:list><t:list-item><t:p>a</t:p></t:list-item><t:list-item><t:p>b</t:p></t:list-item></t:list>"
    extracted = odf(
        "text",
        f"<t:table><t:table-row><t:table-cell>{points}</t:table-cell><t:table-cell>{inner}</t:table-cell>"
        "</t:table-row></t:table><t:p>After.</t:p>",
    )
    assert extracted.text == "| a b | inner |\n| --- | --- |\n\nAfter."


def test_what_is_locked_or_something_else_says_so():
    with pytest.raises(Encrypted, match="password"):
        odf("text", "", manifest="<m><m:encryption-data xmlns:m='m'/></m>")
    for broken in (b"PK\3\4", make_archive({"other.xml": "<a/>"}), make_archive({"content.xml": "<a>"})):
        with pytest.raises(Damaged, match="OpenDocument"):
            OpenDocumentExtractor().extract(broken, "a.odt")
    declared = '<!DOCTYPE a [<!ENTITY b "c">]><a/>'
    with pytest.raises(Damaged, match="entities"):
        OpenDocumentExtractor().extract(make_archive({"content.xml": declared}), "a.odt")


def test_fields_are_read_as_they_show_and_pictures_as_they_are_described():
    extracted = odf(
        "text",
        "<t:p>Of <t:title>Rules</t:title>, <t:span><t:title>once</t:title> more</t:span>, by "
        "<t:author-name>Ann</t:author-name> on <t:date>5 May</t:date>, page <t:page-number>3</t:page-number>"
        "<d:frame><t:title>A cat</t:title><t:desc>It sits.</t:desc></d:frame>.</t:p>",
    )
    assert extracted.text == "Of Rules, once more, by Ann on 5 May, page 3 A cat It sits. ."
