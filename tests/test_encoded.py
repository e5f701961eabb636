"""Pictures written in letters: they are left out of what is indexed, and nothing else is."""

from __future__ import annotations

import base64
import random
import re

import pytest

from concord.extract.text import CodeExtractor, MarkdownExtractor, PlainExtractor
from concord.text.clean import MIN_CHARACTERS, without_encoded

BYTES = random.Random(3).randbytes(3_000)
RUN = base64.b64encode(BYTES).decode()
LINES = base64.encodebytes(BYTES).decode()  # 76 letters a line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"![a](data:image/png;base64,{RUN}) after", "![a](data:image/png;base64,…) after"),
        (
            f"url('data:image/svg+xml;charset=utf-8,{'%3Cpath%20d=' * 50}')",
            "url('data:image/svg+xml;charset=utf-8,…')",
        ),
        (f'{{"picture": "{RUN}", "name": "plot"}}', '{"picture": "…", "name": "plot"}'),
        (f"x = '{RUN}'\ny = 2", "x = '…'\ny = 2"),
        ('"' + LINES.replace("\n", "\\n") + '", 3', '"…\\n", 3'),
    ],
)
def test_base64_and_data_addresses_are_left_out(text: str, expected: str):
    assert without_encoded(text) == expected


def test_every_line_stays_where_it_is():
    text = "before\n" + LINES + "after\n  " + LINES.replace("\n", "\n  ") + "end"
    short = without_encoded(text)
    assert [line.strip() for line in short.split("\n") if line.strip()] == [
        "before",
        "…",
        "after",
        "…",
        "end",
    ]
    assert [n for n, line in enumerate(text.split("\n")) if "after" in line] == [
        n for n, line in enumerate(short.split("\n")) if "after" in line
    ]
    assert short.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "ssh-rsa " + RUN[:716] + " ann@example.com",  # a public key of 4,096 bits
        "0123456789abcdef" * MIN_CHARACTERS,
        "long/path/of/A/1/" * 3,
        "an ordinary sentence, 12 times. " * 200,
        "data: a, b\ndata:text/plain,short",
    ],
)
def test_what_somebody_may_want_to_read_stays(text: str):
    assert without_encoded(text) == text


@pytest.mark.parametrize(
    ("extractor", "name"),
    [(MarkdownExtractor(), "a.md"), (PlainExtractor(), "a.json"), (CodeExtractor(), "a.py")],
)
def test_every_plain_format_leaves_it_out(
    extractor: MarkdownExtractor | PlainExtractor | CodeExtractor, name: str
):
    text = extractor.extract(f"first\n{RUN}\nthird".encode(), name).text
    assert re.split("\n", text) == ["first", "…", "third"]
