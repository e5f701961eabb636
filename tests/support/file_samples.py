"""A small file of every format that is read."""

from __future__ import annotations

import json
from gzip import compress

from support.office_samples import (
    XLS,
    make_docx,
    make_epub,
    make_odf,
    make_ods,
    make_pptx,
    make_xlsx,
    paragraph,
    run,
    shape,
)
from support.pdf_samples import make_pdf

TABLE = "<table><tr><th>Pear</th></tr><tr><td>12</td></tr></table>"
MAIL = (
    "From: ann@example.org\nSubject: =?utf-8?q?Pears?=\nDate: Tue, 3 Nov 2026 10:00:00 +0100\n"
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/html\n'
    "Content-Transfer-Encoding: quoted-printable\n\n<p>Pears =C3=A4 are ripe.</p>\n--b--\n"
)
CELLS = [
    {"cell_type": "markdown", "metadata": {}, "source": ["# Pears\n", "They *grow*."]},
    {
        "cell_type": "code",
        "metadata": {},
        "source": "x = 1",
        "outputs": [{"output_type": "stream", "text": "1"}],
    },
]
SAMPLES: dict[str, bytes] = {
    "a.md": b"---\ntitle: Pears\ntags: [a, b]\ndate: 2026-01-02\n---\n# Pears\n\n- one\n  - two\n\n"
    b"| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted [link](b.md) ```code```\n\n```python\nx = 1\n```\n",
    "a.txt": "Pears\n=====\n\n1. Grüße ひ are ripe.\n\n   * indented\n".encode() * 3,
    "utf16.txt": "Pears are ripe. ひ\n".encode("utf-16"),
    "a.adoc": b"= Pears\n:author: Ann\n\n== Ripe\n\nThey are.\n",
    "a.rst": b"Pears\n=====\n\n.. note:: ripe\n\n   They are.\n",
    "a.tex": rb"\section{Pears} $x^2$ \begin{itemize}\item ripe\end{itemize}",
    "a.json": b'{"pears": [{"ripe": true, "n": 1.5e3, "a": "\\u00e4"}, {"ripe": null}], "deep": {"a": [1]}}',
    "a.yaml": b"pears:\n  - ripe: yes\n    n: &a [1, 2]\n  - <<: *a\n",
    "a.csv": b'name,n\n"pear, ripe",12\nplum,7\n' * 4,
    "a.toml": b'[pears]\nripe = true\nn = [1, 2]\nname = "x"\n',
    "a.xml": b"<?xml version='1.0'?><rss><item a='b'><title>Pears &amp; plums</title></item></rss>",
    "a.ipynb": json.dumps({"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode(),
    "a.py": b'class Pear:\n    """Ripe."""\n\n    def eat(self, n: int = 1) -> str:\n        return f"{n}"\n',
    "a.ts": b"export class Pear<T> { eat(n: number): T { return `${n}` as T } }\n",
    "a.rs": b"impl Pear { fn eat(&self) -> u32 { match 1 { _ => 2 } } }\n",
    "a.c": b"#include <a.h>\nstatic int eat(struct pear *p) { return p->n ? 1 : 2; }\n",
    "a.html": f"<title>Pears</title><h1>Ripe</h1><p>&auml;<a href='b'>x</a><li>1</li>{TABLE}".encode(),
    "a.pdf": make_pdf(
        [["Pears", "are ripe"], ["Plums"]], info={"Title": "Fruit"}, sizes=(20,), outline=[("Plums", 1)]
    ),
    "a.docx": make_docx(
        paragraph("Pears", '<w:pStyle w:val="Heading1"/>') + paragraph("are ripe"),
        core="<dc:title>Fruit</dc:title>",
    ),
    "a.xlsx": make_xlsx(
        {"Fruit": ['<c r="A1" t="s"><v>0</v></c><c r="B1"><v>12</v></c>']}, strings=["<t>Pear</t>"]
    ),
    "a.xls": XLS,
    "a.pptx": make_pptx(
        [shape(run("Pears"), placeholder="title") + shape(run("ripe"))], notes={1: shape(run("n"))}
    ),
    "a.odt": make_odf("text", "<t:h>Pears</t:h><t:p>are ripe</t:p>"),
    "a.ods": make_ods(
        "<table:table-cell office:value-type='string'><text:p>Pear</text:p></table:table-cell>"
    ),
    "a.epub": make_epub({"one.xhtml": "<h1>Pears</h1><p>are ripe</p>", "two.xhtml": TABLE}),
    "a.rtf": rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 A;}}{\b Pears} \'e4 \u8364? ripe.\par\trowd a\cell\row}",
    "a.srt": b"1\n00:00:01,000 --> 00:00:04,000\n<i>Pears</i>\n\n2\n00:01:05,000 --> 00:01:09,000\nripe\n",
    "a.vtt": b"WEBVTT\n\n00:01.000 --> 00:04.000\n<v Ann>Pears are ripe\n",
    "a.ics": b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;TZID=Europe/Berlin:20261120T090000\nSUMMARY:Pears\n"
    b"RRULE:FREQ=DAILY\nDURATION:PT1H\nEND:VEVENT\nEND:VCALENDAR\n",
    "a.vcf": b"BEGIN:VCARD\nVERSION:3.0\nFN:Ann Pear\nBDAY:1981-03-02\nNOTE;ENCODING=B:UGVhcnM=\nEND:VCARD\n",
    "a.eml": MAIL.encode(),
    "a.1": b".TH PEAR 1\n.SH NAME\npear \\- a \\fBfruit\\fR\n.de XX\n.XX\n..\n.SH SEE ALSO\n.BR plum (1)\n",
    "a.md.gz": compress(b"# Pears\n\nare ripe\n", mtime=0),
}
