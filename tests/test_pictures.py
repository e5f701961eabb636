"""What is said about pictures: it is found, in every format that has a place for it."""

from __future__ import annotations

import pytest

from concord.extract.html import DrawingExtractor, HtmlExtractor, markdown_of
from concord.extract.markdown_writer import name_words
from concord.extract.reader import SandboxedReader
from support.office_samples import make_docx, make_pptx, run, shape

SVG = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg"><title>Request flow</title><desc>From client to store</desc>
<style>.a { fill: red }</style><path d="M0 0L10 10"/>
<text x="1"><tspan>Load</tspan> <tspan>balancer</tspan></text><text>0</text><text>10</text>
<foreignObject><div xmlns="http://www.w3.org/1999/xhtml">Queue <b>worker</b></div></foreignObject>
<text>Load balancer</text></svg>"""


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ('<img src="a.png" alt="A boiler">', "A boiler"),
        ('<img src="a.png" title="A boiler" alt="A boiler">', "A boiler"),
        ('<img src="/img/request-flow.png" alt="">', ""),
        ("<svg><text>Client</text><text>Server</text></svg>", "Client Server"),
        ('<pre class="mermaid">graph TD; Client-->Store</pre>', "```\ngraph TD; Client-->Store\n```"),
    ],
)
def test_a_page_says_what_its_pictures_say(tag: str, said: str):
    assert markdown_of(f"<p>Before</p>{tag}") == "\n\n".join(filter(None, ("Before", said)))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("docs/data%20flow.png", "data flow"),
        ("überblick-der-anlage.svg", "überblick der anlage"),
        ("a1b2c3d4-e5f6.png", ""),
        ("logo.png", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_file_counts_if_it_is_words(path: str, words: str):
    assert name_words(path) == words


def test_a_drawing_is_its_title_its_description_and_its_words():
    drawing = SandboxedReader().read(SVG.encode(), "flow.svg")
    assert drawing.type == "image"
    assert drawing.title == "Request flow"
    assert drawing.text == "Request flow\nFrom client to store\nLoad balancer\nQueue worker"


def test_a_drawing_without_words_has_no_text():
    assert DrawingExtractor().extract(b"<svg><path d='M0 0'/></svg>", "icon.svg").text == ""
    assert DrawingExtractor().extract(b"no drawing at all", "x.svg").text == ""


def test_a_drawing_in_a_page_does_not_move_the_lines_of_its_text():
    page = b"<p>one</p>\n<svg><text>Client</text>\n<text>Server</text></svg>\n<p>four</p>"
    extracted = HtmlExtractor().extract(page, "x.html")
    assert dict(zip(extracted.text.split("\n"), extracted.file_lines, strict=True))["four"] == 4


DESCRIBED = '<{0} id="1" name="Picture 1" title="Boiler" descr="A boiler with three pipes"/>'.format


def test_office_files_say_what_their_pictures_say():
    picture = f"<w:drawing><wp:inline>{DESCRIBED('wp:docPr')}</wp:inline></w:drawing>"
    drawn = f"<w:p><w:r><w:t>Look:</w:t>{picture}</w:r></w:p>"
    word = SandboxedReader().read(make_docx(drawn), "a.docx")
    slide = (
        shape(run("Plant"), placeholder="title")
        + f"<p:pic><p:nvPicPr>{DESCRIBED('p:cNvPr')}</p:nvPicPr></p:pic>"
    )
    slides = SandboxedReader().read(make_pptx([slide]), "a.pptx")
    assert word.text == "Look: Boiler A boiler with three pipes"
    assert slides.text == "# Plant\n\nBoiler A boiler with three pipes"
