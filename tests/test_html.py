"""HTML: the text that a reader would see, as Markdown, and the lines that it comes from."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.errors import Damaged, TooLarge
from concord.extract.html import MAX_BYTES, MAX_DEPTH, HtmlExtractor
from concord.types import Extracted


def html(text: str) -> Extracted:
    return HtmlExtractor().extract(text.encode(), "a.html")


def cited(extracted: Extracted) -> dict[str, int]:
    """Return each line that is not empty with the line of the file that it is said to come from."""
    lines = zip(extracted.text.split("\n"), extracted.file_lines, strict=True)
    return {line: number for line, number in lines if line}


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


@pytest.mark.parametrize(
    "block",
    [
        '<div class="nav-panel"><p>Next: <a href="b.html" rel="next">Thread Safety</a></p></div>',
        '<div class="related"><ul><li><a accesskey="I">index</a></li> <li>Policy</li></ul></div>',
        '<div class="navheader"><table><tr><th>2. Tools</th><td><a>Prev</a></td></tr></table></div>',
        '<div class="toc"><p><b>Table of Contents</b></p><dl class="toc"><dt><a>Tools</a></dt></dl></div>',
    ],
)
def test_what_leads_to_the_pages_around_a_page_is_left_out(block: str):
    page = f"<body><div>{block}<hr><h3>2.6 Closure Example</h3><p>A trivial example.</p>{block}</div></body>"
    assert html(page).text == "### 2.6 Closure Example\n\nA trivial example."


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ('<p>Read on in <a rel="next">the next chapter</a>.</p>', "Read on in the next chapter."),
        ('<p><a href="a.html">A chapter</a>, <a href="b.html">another</a></p>', "A chapter, another"),
        ('<div class="related"><h2>Related work</h2><p>words</p></div>', "## Related work\n\nwords"),
        ('<div class="header"><p>Words of a header</p></div>', "Words of a header"),
    ],
)
def test_content_with_links_to_other_pages_stays(block: str, text: str):
    assert html(f"<body>{block}<p>end</p></body>").text == f"{text}\n\nend"


def test_a_page_that_is_all_navigation_is_kept_after_all():
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
@settings(max_examples=150)
def test_any_soup_of_tags_gives_lines_in_the_order_of_the_file(soup: list[str]):
    extracted = html("".join(soup))
    assert len(extracted.file_lines) == len(extracted.text.split("\n")) or not extracted.text
    assert list(extracted.file_lines) == sorted(extracted.file_lines)
