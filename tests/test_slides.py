"""Presentations of PowerPoint: slides are pages, under their titles, with their notes."""

from __future__ import annotations

from concord.extract.ooxml import SlidesExtractor
from concord.types import Extracted
from support.kb_command import Kb
from support.office_samples import make_pptx, run, shape


def pages(extracted: Extracted) -> list[str]:
    ends = (*extracted.page_starts[1:], len(extracted.text))
    return [extracted.text[at:end].strip() for at, end in zip(extracted.page_starts, ends, strict=True)]


def test_slides_come_in_the_order_in_which_they_are_shown_each_under_its_title():
    extracted = SlidesExtractor().extract(
        make_pptx(
            [
                shape(run("Walrus ") + run("care"), placeholder="ctrTitle"),
                shape(run("Two pools."))
                + shape(run("Pools"), placeholder="title")
                + shape(
                    run("cold"),
                    '<a:pPr lvl="1"/>' + run("at most ") + run("9 °C"),
                    "<a:pPr><a:buNone/></a:pPr>" + run("No point."),
                    placeholder="body",
                )
                + shape(run("2"), placeholder="sldNum"),
            ],
            core="<dc:title>PowerPoint Presentation</dc:title><dc:creator>Ann</dc:creator>",
        ),
        "a.pptx",
    )
    assert pages(extracted) == [
        "# Walrus care",
        "# Pools\n\nTwo pools.\n\n- cold\n  - at most 9 °C\n\nNo point.",
    ]
    assert (extracted.title, extracted.type) == ("Walrus care", "office")
    assert extracted.details == {"author": "Ann", "pages": 2}


def test_tables_and_what_the_speaker_noted_are_read():
    cell = "<a:tc><a:txBody><a:p>{}</a:p></a:txBody></a:tc>".format
    row = "<a:tr>{}</a:tr>".format
    rows = row(cell(run("food")) + cell(run("kg"))) + row(cell(run("clams")) + cell(run("20")))
    notes = shape(run("Ask the audience."), placeholder="body") + shape(run("1"), placeholder="sldNum")
    extracted = SlidesExtractor().extract(make_pptx([f"<a:tbl>{rows}</a:tbl>"], notes={1: notes}), "a.pptx")
    assert extracted.text == "| food | kg |\n| --- | --- |\n| clams | 20 |\n\nAsk the audience."


def test_a_slide_is_cited_by_its_number(kb: Kb, tmp_path):
    folder = tmp_path / "talks"
    folder.mkdir()
    slides = [
        shape(run(f"Part {n}"), placeholder="title") + shape(run(f"Chapter {n} of the tour. " * 60))
        for n in range(1, 4)
    ]
    slides[1] += shape(run("The lighthouse opens at noon."))
    (folder / "tour.pptx").write_bytes(make_pptx(slides))
    kb("add", folder)
    assert "talks/tour.pptx:p2" in kb("search", "lighthouse opens at noon", "--top", "1").out


def test_a_second_title_of_a_slide_is_text():
    titles = shape(run("Walrus"), placeholder="title") + shape(run("Care"), placeholder="title")
    assert SlidesExtractor().extract(make_pptx([titles]), "a.pptx").text == "# Walrus\n\nCare"
