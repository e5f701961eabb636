"""From a file's bytes to its text: what each format gives, and what no file can do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.errors import Damaged, Encrypted, NotIndexable, TooLarge
from concord.extractors.code import CodeExtractor
from concord.extractors.decode import decode, looks_binary
from concord.extractors.formats import Format, Refusal, detect
from concord.extractors.html import MAX_BYTES, MAX_DEPTH, HtmlExtractor
from concord.extractors.markdown import MarkdownExtractor
from concord.extractors.pdf import PdfExtractor
from concord.extractors.plain import PlainExtractor
from concord.extractors.reader import SandboxedReader
from concord.extractors.sandbox import Sandbox, WorkerLimits
from concord.plugins import TABLES, load
from concord.text.front_matter import split_front_matter
from concord.types import Extracted
from pdf_samples import make_bomb, make_pdf


def markdown(text: str, name: str = "a.md") -> Extracted:
    return MarkdownExtractor().extract(text.encode(), name)


def code(text: str, name: str) -> Extracted:
    return CodeExtractor().extract(text.encode(), name)


def html(text: str) -> Extracted:
    return HtmlExtractor().extract(text.encode(), "a.html")


def cited(extracted: Extracted) -> dict[str, int]:
    """Return each line that is not empty with the line of the file that it is said to come from."""
    lines = zip(extracted.text.split("\n"), extracted.file_lines, strict=True)
    return {line: number for line, number in lines if line}


# Bytes to characters.

SENTENCES = {
    "cp1252": "Die Öffnungszeiten ändern sich häufig, heißt es – “so” geht das für alle.",
    "iso-8859-2": "Příliš žluťoučký kůň úpěl ďábelské ódy. Nechť již hříšné saxofony ďáblů rozezvučí síň.",
    "cp1251": "Съешь ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний.",
    "koi8-r": "Съешь ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний.",
    "shift_jis": "いろはにほへと ちりぬるを わかよたれそ つねならむ。日本語の文章です。",
    "euc-jp": "いろはにほへと ちりぬるを わかよたれそ つねならむ。日本語の文章です。",
    "gb18030": "知识库搜索是一种本地优先的工具,可以回答问题并引用来源。",
    "big5": "知識庫搜尋是一種本地優先的工具,可以回答問題並引用來源。",
    "euc-kr": "지식 기반 검색은 질문에 답하고 출처를 인용합니다.",
    "cp1253": "Ο κόσμος είναι μεγάλος και η γνώση είναι δύναμη για όλους τους ανθρώπους.",
    "utf-8": "naïve café, 知识库",
    "utf-8-sig": "naïve café, 知识库",
    "utf-16": "naïve café, 知识库",
    "utf-32": "naïve café, 知识库",
}


@pytest.mark.parametrize(("encoding", "sentence"), SENTENCES.items())
def test_text_is_read_in_the_encoding_it_was_written_in(encoding: str, sentence: str):
    data = sentence.encode(encoding)
    assert decode(data) == sentence
    assert not looks_binary(data)


SHORT = {
    "cp1252": [
        "Price list € 20 and “quoted” text\n",
        "Café latin1 marmots",
        "It’s a test",
        "naïve",
        "10 °C outside",
        "voilà une phrase",
        "El niño",
        "15 µm ± 2",
        "Price: £20",
        "© ACME",
        "Grüße aus Köln",
        "Straße 5, 50667 Köln, Tel. 0221",
        "“Hello,” she said. “It’s time we left — the others won’t wait.” He didn’t answer.",
    ],
    "cp1250": ["Človek je šel v mesto", "Kraków też", "Köszönöm szépen"],
    "cp1254": ["Günaydın arkadaşlar, nasılsınız"],
    "cp1255": ["Hello world, שלום"],
    "cp1253": ["Καλημέρα", "see Καλημέρα in the list of greetings we have"],
    "cp1251": ["Привет мир", "в 5 часов", "И я"],
    "koi8-r": ["Привет мир, как дела"],
    "cp1256": ["مرحبا بالعالم"],
    "cp874": ["สวัสดีครับ"],
    "shift_jis": ["日本語テキスト", 'print("日本")  # a comment', "ソフト"],
    "gbk": ['print("你好")'],
    "big5": ["你好 world"],
    "cp850": ["Die Größe der Wärme änderte sich, und die Straße führte über schöne Brücken nach Köln."],
    "mac-roman": ["Le café de la gare était fermé, et l’été les élèves préfèrent la forêt où l’eau est là."],
}


@pytest.mark.parametrize(
    ("encoding", "line"), [(encoding, line) for encoding, lines in SHORT.items() for line in lines]
)
def test_a_line_with_a_few_accents_is_read_as_what_it_likely_is(encoding: str, line: str):
    assert decode(line.encode(encoding)) == line


def test_one_bad_byte_does_not_turn_good_utf8_to_mojibake():
    assert decode("Größe, Wärme, Übung, Straße ".encode() * 3 + b"\xff.") == (
        "Größe, Wärme, Übung, Straße " * 3 + "\ufffd."
    )


def test_a_declared_encoding_is_believed_only_when_it_is_not_utf8():
    assert decode("naïve".encode(), "iso-8859-1") == "naïve"
    assert decode("łódź".encode("iso-8859-2"), "iso-8859-2") == "łódź"
    assert decode("naïve".encode("cp1252"), "no-such-encoding") != ""


@given(st.binary(max_size=300))
@settings(deadline=None, max_examples=200)
def test_any_bytes_become_text_that_can_be_stored(data: bytes):
    assert decode(data).encode("utf-8") is not None


def test_bytes_that_are_no_text_are_known_by_their_controls():
    assert looks_binary(b"ELF\0\1\2")
    assert looks_binary(bytes(range(256)) * 8)
    assert not looks_binary(b"\x1b[31mred\x1b[0m log line\n" * 20)
    assert not looks_binary(b"")


# Which extractor.


@pytest.mark.parametrize(
    ("name", "head", "extractor", "kind", "language"),
    [
        ("README.md", b"# x", "markdown", "markdown", None),
        ("page.MDX", b"# x", "markdown", "markdown", None),
        ("guide.rst", b"x", "text", "text", None),
        ("app.log", b"x", "text", "text", None),
        ("LICENSE", b"words", "text", "text", None),
        ("data.json", b"{}", "text", "data", "json"),
        ("parts.csv", b"a,b", "text", "data", "csv"),
        ("set.toml", b"a=1", "text", "data", None),
        ("book.ipynb", b"{}", "notebook", "markdown", None),
        ("feed", b"<?xml version='1.0'?><rss/>", "text", "data", None),
        ("main.py", b"x = 1", "code", "code", "python"),
        ("App.tsx", b"x", "code", "code", "tsx"),
        ("Program.cs", b"x", "code", "code", "c_sharp"),
        ("Makefile", b"all:", "code", "code", "make"),
        ("Dockerfile.dev", b"FROM x", "code", "code", "dockerfile"),
        ("run", b"#!/usr/bin/env -S python3.11 -u\n", "code", "code", "python"),
        ("run", b"#!/bin/sh\n", "code", "code", "bash"),
        ("odd", b"#!/opt/strange\n", "text", "text", None),
        ("index.htm", b"<p>", "html", "html", None),
        ("saved", b"\n<!-- saved --><!DOCTYPE html><p>", "html", "html", None),
        ("paper.pdf", b"%PDF-1.7\n\0", "pdf", "pdf", None),
        ("download", b"%PDF-1.7\n%\xe2\xe3\n\0", "pdf", "pdf", None),
        ("letter.DOCX", b"PK\3\4\0", "word", "office", None),
        ("sums.xlsx", b"PK\3\4\0", "excel", "office", None),
        ("offer.eml", b"From: a", "mail", "office", None),
    ],
)
def test_a_format_is_known_by_name_then_by_content(
    name: str, head: bytes, extractor: str, kind: str, language: str | None
):
    form = detect(name, head)
    assert isinstance(form, Format)
    assert (form.extractor, form.type, form.language) == (extractor, kind, language)
    assert form.risky == (extractor in ("html", "pdf", "word", "excel", "mail"))


@pytest.mark.parametrize(
    ("name", "head", "reason"),
    [
        ("a.md", b"PK\0\0", "binary"),
        ("video.ts", b"G@\0\x10", "binary"),
        ("a.odt", b"PK\3\4", "unsupported format"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(name: str, head: bytes, reason: str):
    assert detect(name, head) == Refusal(reason)


def test_comments_before_a_page_that_never_comes_cost_no_time():
    assert isinstance(detect("x", b"<!---->" * 1000), Format)


@pytest.mark.parametrize("name", sorted(TABLES["extractors"]))
def test_every_extractor_survives_an_empty_file_or_says_what_is_wrong(name: str):
    extractor = load("extractors", name)()
    if name in ("pdf", "word", "excel"):
        with pytest.raises(Damaged):
            extractor.extract(b"", "empty")
    else:
        assert extractor.extract(b"", "empty").text == ""


# Markdown.


def test_front_matter_gives_title_tags_and_details_and_keeps_line_numbers():
    extracted = markdown(
        "---\ntitle: The  Title\ntags: [ops, 'how to']\ndate: 2024-01-31\n"
        "nested: {a: [1, 2.5, null]}\n---\n# Heading\n"
    )
    assert (extracted.title, extracted.tags) == ("The Title", ("ops", "how to"))
    assert extracted.details == {"date": "2024-01-31", "nested": {"a": [1, 2.5, None]}}
    assert extracted.text.split("\n")[6] == "# Heading"


def test_front_matter_stays_in_the_text_as_it_stands_in_the_file():
    block = "---\ntitle: T\nticket: ZQX-991  # at last\nowner: Ame\u0301lie\n---\n"
    extracted = markdown(f"{block}\n# Heading\n".replace("\n", "\r\n"))
    assert extracted.text == f"{block}\n# Heading\n".replace("e\u0301", "é")
    assert extracted.text[extracted.body_start :] == "\n# Heading\n"
    assert (extracted.title, extracted.details["ticket"]) == ("T", "ZQX-991")


def test_front_matter_of_a_title_and_tags_alone_leaves_empty_lines():
    extracted = markdown("---\ntitle: T\ntags: [a]\n---\n# Heading\n")
    assert (extracted.text, extracted.body_start) == ("\n\n\n\n# Heading\n", 0)


def test_a_comment_in_front_matter_is_no_title():
    assert markdown("---\n# who decides\nowner: Amelie\n---\n\n# Heading\n").title == "Heading"
    assert markdown("---\n# who decides\nowner: Amelie\n---\n\ntext\n").title is None


def test_front_matter_in_toml_counts_as_well():
    extracted = markdown('+++\ntitle = "T"\nkeywords = "a, b"\nwhen = 2024-01-31T12:00:00Z\n+++\r\ntext\r\n')
    assert (extracted.title, extracted.tags) == ("T", ("a", "b"))
    assert extracted.details == {"when": "2024-01-31T12:00:00+00:00"}
    assert extracted.text.split("\n")[5] == "text"


@pytest.mark.parametrize(
    "text",
    [
        "---\n: : [\n---\nbody",
        "---\njust a sentence\n---\nbody",
        "---\n- a list\n---\nbody",
        "---\nnever: closed\nbody",
        "---\ndate: 2024-99-99\n---\nbody",
        "---\na: !!python/object/apply:os.system [x]\n---\nbody",
        "---\na: !!binary aGVsbG8=\n---\nbody",
        "---\na: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n" + "".join(
            f"k{n}: &k{n} [*k{n - 1}, *k{n - 1}]\n" if n else "k0: &k0 [*b, *b]\n" for n in range(40)
        ) + "---\nbody",
        "---\na: " + "[" * 3000 + "\n---\nbody",
        "---\na: " + "[" * 8000 + "]" * 8000 + "\n---\nbody",
        "---\na: &a [*a]\n---\nbody",
        "+++\nnot toml\n+++\nbody",
    ],
)  # fmt: skip
def test_front_matter_that_makes_no_sense_is_content(text: str):
    head = split_front_matter(text)
    assert head.text == text
    assert (head.title, head.tags, head.details) == (None, (), {})


@given(st.text(alphabet="-+.\n:[]{}&*!a1 \"'#>|", max_size=60))
@settings(deadline=None, max_examples=300)
def test_any_front_matter_leaves_as_many_lines_as_there_were(block: str):
    text = f"---\n{block}\n---\nrest"
    head = split_front_matter(text)
    assert head.text.count("\n") == text.count("\n")
    json.dumps(head.details, allow_nan=False)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n\n## The `code` *and* **bold** [link](u) ##\n", "The code *and* bold link"),
        ("Title\n=====\n", "Title"),
        ("```\n# comment\n```\n\n# Real\n", "Real"),
        ("~~~~\n```\n# no\n~~~~\n# Yes", "Yes"),
        ('<h1 align="center">Project</h1>\n', "Project"),
        ("# __init__ files\n", "__init__ files"),
        ("- item\n---\ntext\n", None),
        ("no heading", None),
    ],
)
def test_the_first_heading_is_the_title_where_nothing_else_is(text: str, title: str | None):
    assert markdown(text).title == title


# Plain text, data and code.


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.rst", "====\nThe Title\n====\n\nText", None),
        ("a.rst", ".. comment\n\nThe Title\n=========\n\nText", "The Title"),
        ("a.adoc", "= The Title\nAuthor\n\ntext", "The Title"),
        ("a.org", "#+TITLE: The Title\n* Heading", "The Title"),
        ("a.txt", "The Title\n=========\n", None),
    ],
)
def test_light_markup_has_its_title_read(name: str, text: str, title: str | None):
    assert PlainExtractor().extract(text.encode(), name).title == title


def test_lines_of_text_stay_the_lines_of_the_file_whatever_ends_them():
    for data in (b"one\r\ntwo\r\n\r\nfour", b"one\rtwo\r\rfour", b"one\ntwo\n\nfour"):
        extracted = PlainExtractor().extract(data, "a.txt")
        assert extracted.text.split("\n") == ["one", "two", "", "four"]
        assert extracted.file_lines == ()


def test_data_is_kept_as_it_is():
    text = '{\n  "key": "a - b",\n  "n": 1\n}'
    extracted = PlainExtractor().extract(text.encode(), "a.json")
    assert (extracted.type, extracted.text) == ("data", text)


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a.py", '#!/usr/bin/python\n# coding: utf-8\n\n"""Reads files.\n\nMore."""\n', "Reads files."),
        ("a.go", "// Package a counts things.\npackage a\n", "Package a counts things."),
        ("b.js", "/*\n * Copyright X\n * Free to use\n */\n\n/** Draws pages. */\nlet x", "Draws pages."),
        ("c.sh", "#!/bin/sh\n# Backs up the database.\nset -e\n", "Backs up the database."),
        ("d.sql", "-- Users and roles\ncreate table u ();", "Users and roles"),
        ("e.c", "#include <stdio.h>\n// not about the file\n", None),
        ("f.py", "import os\n'''not the docstring'''\n", None),
        ("g.rs", "", None),
    ],
)  # fmt: skip
def test_code_is_titled_by_its_name_and_what_it_says_of_itself(name: str, text: str, title: str | None):
    extracted = code(text, name)
    assert extracted.title == (f"{name}: {title}" if title else name)
    assert (extracted.type, extracted.text) == ("code", text)


def test_code_knows_its_language():
    assert code("x = 1", "a.py").language == "python"
    assert code("#!/usr/bin/ruby\n", "tool").language == "ruby"


@given(st.binary(max_size=400), st.sampled_from(["a.md", "a.py", "a.js", "a.rst", "a.json", "a", "a.sql"]))
@settings(deadline=None, max_examples=200)
def test_no_bytes_can_break_a_text_extractor(data: bytes, name: str):
    for extractor in (MarkdownExtractor(), PlainExtractor(), CodeExtractor()):
        text = extractor.extract(data, name).text
        assert text.encode("utf-8") is not None


# HTML.

PAGE = """<!doctype html>
<html lang="en"><head><title> The  page </title>
<meta name="keywords" content="alpha, beta,alpha"><meta property="og:description" content="What it is.">
<style>p { color: red }</style></head>
<body><header><h1>Site name</h1></header>
<nav><ul><li><a href="/">Home</a></li></ul></nav>
<main>
<h1>Fish &amp; chips<a class="headerlink" href="#x">¶</a></h1>
<p>The first <b>para</b>graph
goes on &eacute;t&eacute;.<br>After the break.</p>
<script>var text = "The first paragraph";</script>
<ul>
  <li>one</li>
  <li><p>two</p><ol><li>inner</li></ol></li>
</ul>
<table>
  <tr><th>Name</th><th>Size | unit</th></tr>
  <tr><td>a</td><td><p>1</p></td></tr>
</table>
<pre class="language-python"><code>def f():
    return "&lt;&gt;"
</code></pre>
<blockquote># not a heading</blockquote>
<p hidden>hidden words</p><p style="display: none">more of them</p>
<form><label>Name</label><input value="typed"><button>Send</button></form>
</main>
<aside>Related</aside><footer>All rights reserved</footer>
</body></html>
"""

AS_MARKDOWN = """# Fish & chips

The first paragraph goes on été.
After the break.

- one
- two
  1. inner

| Name | Size \\| unit |
| --- | --- |
| a | 1 |

```python
def f():
    return "<>"
```

> \\# not a heading

Name"""


def test_a_page_becomes_markdown_without_what_is_around_its_content():
    extracted = html(PAGE)
    assert extracted.text == AS_MARKDOWN
    assert (extracted.type, extracted.title) == ("html", "The page")
    assert extracted.tags == ("alpha", "beta")
    assert extracted.details == {"description": "What it is.", "language": "en"}


def test_each_line_of_a_page_knows_the_line_of_the_file_it_comes_from():
    lines = cited(html(PAGE))
    source = PAGE.split("\n")
    for text, start in {
        "# Fish & chips": "<h1>Fish",
        "The first paragraph goes on été.": "<p>The first",
        "After the break.": "goes on",
        "- one": "  <li>one",
        "  1. inner": "  <li><p>two",
        "| a | 1 |": "  <tr><td>a",
        "def f():": "<pre",
        '    return "<>"': "    return",
        "> \\# not a heading": "<blockquote>",
    }.items():
        assert source[lines[text] - 1].startswith(start), text


def test_repeated_text_is_cited_where_each_copy_stands():
    extracted = html("<p>same words here</p>\n\n<p>other</p>\n<p>same words here</p>")
    assert extracted.file_lines == (1, 1, 3, 3, 4)


TEXINFO = """
Next: <a href="b.html" accesskey="n" rel="next">Thread Safety</a>, Previous: <a rel="prev">The API</a>, Up:
<a href="u.html" rel="up">Using libffi</a> &nbsp; [<a href="i.html" title="Index" rel="index">Index</a>]
"""


@pytest.mark.parametrize(
    "block",
    [
        f'<div class="header">\n<p>\n{TEXINFO}</p>\n</div>',
        f'<div class="nav-panel">\n<p>\n{TEXINFO}</p>\n</div>',
        f"<p>{TEXINFO}</p>",
        '<ul><li><a rel="prev"><b>&lt;</b></a></li><li><a rel="Contents">All</a></li></ul>',
        '<table><tr><td><a rel="next"><img alt="Next"></a></td><td><a rel="up">Up</a></td></tr></table>',
        '<div class="related"><ul><li><a accesskey="I">index</a></li> <li>Policy</li></ul></div>',
        '<div class="navheader"><table><tr><th>2. Tools</th><td><a>Prev</a></td></tr></table></div>',
    ],
)
def test_what_leads_to_the_pages_around_a_page_is_left_out(block: str):
    page = f"<body><div>{block}<hr><h3>2.6 Closure Example</h3><p>A trivial example.</p>{block}</div></body>"
    assert html(page).text == "### 2.6 Closure Example\n\nA trivial example."


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ('<p>Read on in <a rel="next">the next chapter</a>.</p>', "Read on in the next chapter."),
        ('<p><span><a rel="next">Next</a></span> we build it.</p>', "Next we build it."),
        ('<h2><a rel="index">The index</a></h2>', "## The index"),
        ('<p><a href="a.html">A chapter</a>, <a href="b.html">another</a></p>', "A chapter, another"),
        ('<div class="related"><h2>Related work</h2><p>words</p></div>', "## Related work\n\nwords"),
        ('<div class="header"><p>Words of a header</p></div>', "Words of a header"),
    ],
)
def test_content_with_links_to_other_pages_stays(block: str, text: str):
    assert html(f"<body>{block}<p>end</p></body>").text == f"{text}\n\nend"


def test_many_links_around_each_other_take_no_time():
    deep = "<div><a rel=next>Next</a>" * 2_000
    assert html(f"<body>{deep}<p>words</p></body>").text.endswith("words")


def test_a_page_that_is_all_navigation_is_kept_after_all():
    assert html("<body><p><a rel=next>Next</a></p></body>").text == "Next"
    assert html("<body><nav><p>Only this</p></nav></body>").text == "Only this"


def test_a_table_used_for_layout_becomes_blocks_and_a_huge_cell_paragraphs():
    layout = html(
        "<table><tr><td><h2>Left</h2><p>words</p></td><td><table><tr><td>x</td><td>y</td></tr></table>"
    )
    assert layout.text.startswith("## Left\n\nwords\n\n| x | y |")
    long = html(f"<table><tr><td>{'word ' * 300}</td><td>b</td></tr></table>")
    assert "|" not in long.text


def test_a_page_is_read_in_the_encoding_that_it_declares():
    page = '<meta charset="windows-1251"><p>Привет</p>'.encode("cp1251")
    assert HtmlExtractor().extract(page, "a.html").text == "Привет"


def test_deep_nesting_needs_no_stack_and_absurd_nesting_is_refused():
    deep = MAX_DEPTH - 10
    assert html("<div>" * deep + "<ul>" * 5 + "<li>bottom").text.endswith("- bottom")
    with pytest.raises(Damaged):
        html("<div>" * 100_000)


def test_a_page_of_many_short_paragraphs_is_not_taken_for_a_deep_one():
    text = html("<p>x<li>y" * MAX_DEPTH).text
    assert text.count("x") == text.count("y") == MAX_DEPTH


def test_a_page_over_the_size_limit_is_refused():
    with pytest.raises(TooLarge):
        HtmlExtractor().extract(b"<p>" + b"x" * MAX_BYTES, "a.html")


TAGS = re.findall(
    r"\w+", "div p ul ol li table tr td th h1 pre code br b a blockquote main nav script img dl dt"
)


@given(
    st.lists(
        st.sampled_from(
            [*(f"<{t}>" for t in TAGS), *(f"</{t}>" for t in TAGS), "word", "a b\n", "&amp;", "&#13;", "<"]
        )
    )
)
@settings(deadline=None, max_examples=150)
def test_any_soup_of_tags_gives_lines_in_the_order_of_the_file(soup: list[str]):
    extracted = html("".join(soup))
    assert len(extracted.file_lines) == len(extracted.text.split("\n")) or not extracted.text
    assert list(extracted.file_lines) == sorted(extracted.file_lines)


# PDF.


def test_a_pdf_gives_its_text_by_page_and_what_it_says_of_itself():
    pages = [["Deep Title", "The body of the first page,", "and its second line."], [], ["Third page: café"]]
    info = {"Author": "A. Writer", "CreationDate": "D:20240131120000+01'00'", "Title": "untitled"}
    extracted = PdfExtractor().extract(make_pdf(pages, info=info, sizes=[24]), "a.pdf")
    first, _, third = extracted.page_starts
    assert extracted.text[first:].startswith("Deep Title\nThe body of the first page,")
    assert extracted.text[third:].startswith("Third page: café")
    assert extracted.title == "Deep Title"
    assert extracted.details == {"pages": 3, "author": "A. Writer", "created": "2024-01-31T12:00:00+01:00"}


def test_a_title_that_somebody_gave_is_the_title():
    given_title = make_pdf([["Large", "small"]], info={"Title": "Microsoft Word - A Real Title"}, sizes=[30])
    assert PdfExtractor().extract(given_title, "a.pdf").title == "A Real Title"
    assert PdfExtractor().extract(make_pdf([["all", "alike"]]), "a.pdf").title is None


def test_a_pdf_that_needs_a_password_is_told_apart_from_one_that_only_forbids_printing():
    with pytest.raises(Encrypted) as fault:
        PdfExtractor().extract(make_pdf([["secret"]], password="swordfish"), "a.pdf")
    assert fault.value.hint
    assert PdfExtractor().extract(make_pdf([["open"]], password=""), "a.pdf").text.strip() == "open"


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.8])
def test_a_pdf_that_is_cut_off_is_damaged(keep: float):
    whole = make_pdf([["text"]])
    with pytest.raises(Damaged) as fault:
        PdfExtractor().extract(whole[: int(len(whole) * keep)], "a.pdf")
    assert fault.value.hint


def test_a_scan_comes_back_empty_and_says_so():
    extracted = PdfExtractor().extract(make_pdf([[], []]), "a.pdf")
    assert (extracted.text, extracted.details["pages"], extracted.details["no_text_layer"]) == ("", 2, True)


def test_pages_that_show_something_and_hold_no_text_are_counted_and_blank_ones_are_not():
    extracted = PdfExtractor().extract(make_pdf([["A cover."], None, [], None]), "a.pdf")
    assert extracted.text.strip() == "A cover."
    assert extracted.details == {"pages": 4, "pages_without_text": 2}


def test_a_pdf_with_too_many_pages_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("concord.extractors.pdf.MAX_PAGES", 2)
    with pytest.raises(TooLarge, match="3 pages"):
        PdfExtractor().extract(make_pdf([["a"], ["b"], ["c"]]), "a.pdf")


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=20))
@settings(deadline=None, max_examples=60)
def test_a_mutilated_pdf_gives_text_or_one_of_our_errors(at: int, noise: bytes):
    whole = make_pdf([["some text", "more"], ["end"]])
    at %= len(whole)
    with suppress(Damaged, Encrypted):
        PdfExtractor().extract(whole[:at] + noise + whole[at + len(noise) :], "a.pdf")


# All of them together.


@pytest.fixture(scope="module")
def reader() -> Iterator[SandboxedReader]:
    reader = SandboxedReader()
    yield reader
    reader.close()


def test_one_reader_reads_every_format(reader: SandboxedReader):
    files = {
        "a.md": b"# Title",
        "a.txt": b"words",
        "a.py": b"x = 1",
        "a.html": b"<p>words</p>",
        "a.pdf": make_pdf([["words"]]),
        "a.csv": b"a,b",
    }
    types = [reader.read(data, name).type for name, data in files.items()]
    assert types == ["markdown", "text", "code", "html", "pdf", "data"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.md", b" \n\t\n", "no text"),
        ("a", b"\0\1\2", "binary"),
        ("a.odt", b"PK\3\4", "unsupported format"),
        ("a.html", b"<script>x()</script>", "no text"),
        ("a.pdf", make_pdf([[], []]), "no text layer (scanned)"),
    ],
)
def test_what_has_no_text_is_skipped_with_a_reason(
    reader: SandboxedReader, name: str, data: bytes, reason: str
):
    with pytest.raises(NotIndexable) as nothing:
        reader.read(data, name)
    assert nothing.value.message == reason


def test_a_small_pdf_that_unfolds_beyond_its_memory_dies_alone():
    bomb = make_bomb(2_000_000)
    assert len(bomb) < 60_000
    reader = SandboxedReader(Sandbox(WorkerLimits(memory_bytes=200 * 1024**2)))
    try:
        with pytest.raises((Damaged, TooLarge), match="200 MB of memory"):
            reader.read(bomb, "bomb.pdf")
        assert reader.read(make_pdf([["fine"]]), "a.pdf").text.strip() == "fine"
    finally:
        reader.close()
