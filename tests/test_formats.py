"""Which format a file is in, and so which extractor reads it."""

from __future__ import annotations

import pytest

from concord.extract.formats import Format, Refusal, detect


@pytest.mark.parametrize(
    ("name", "head", "extractor", "kind", "language"),
    [
        ("README.md", b"# x", "markdown", "markdown", None),
        ("page.MDX", b"# x", "markdown", "markdown", None),
        ("guide.rst", b"x", "text", "text", None),
        ("guide.adoc", b"= x", "text", "text", "asciidoc"),
        ("app.log", b"x", "text", "text", None),
        ("LICENSE", b"words", "text", "text", None),
        ("data.json", b"{}", "text", "data", "json"),
        ("parts.csv", b"a,b", "text", "data", "csv"),
        ("set.toml", b"a=1", "text", "data", None),
        ("etc/ssh/sshd_config", b"Port 22", "text", "data", None),
        (".gitconfig", b"[user]", "text", "data", None),
        ("book.ipynb", b"{}", "notebook", "notebook", None),
        ("feed", b"<?xml version='1.0'?><rss/>", "text", "data", None),
        ("main.py", b"x = 1", "code", "code", "python"),
        ("App.tsx", b"x", "code", "code", "tsx"),
        ("Program.cs", b"x", "code", "code", "c_sharp"),
        ("Makefile", b"all:", "code", "code", None),
        ("Dockerfile.dev", b"FROM x", "code", "code", None),
        ("run", b"#!/usr/bin/env -S python3.11 -u\n", "code", "code", "python"),
        ("run", b"#!/bin/sh\n", "code", "code", "bash"),
        ("odd", b"#!/opt/strange\n", "text", "text", None),
        ("index.htm", b"<p>", "html", "html", None),
        ("saved", b"\n<!-- saved --><!DOCTYPE html><p>", "html", "html", None),
        ("paper.pdf", b"%PDF-1.7\n\0", "pdf", "pdf", None),
        ("download", b"%PDF-1.7\n%\xe2\xe3\n\0", "pdf", "pdf", None),
        ("letter.DOCX", b"PK\3\4\0", "word", "office", None),
        ("sums.xlsx", b"PK\3\4\0", "sheets", "office", None),
        ("sums.xls", b"\xd0\xcf\x11\xe0\0", "sheets", "office", None),
        ("talk.pptx", b"PK\3\4\0", "slides", "office", None),
        ("letter.odt", b"PK\3\4\0", "open_document", "office", None),
        ("novel.epub", b"PK\3\4\0", "book", "office", None),
        ("letter.rtf", b"{\\rtf1\\ansi", "rich_text", "office", None),
        ("film.srt", b"1\n", "text", "text", None),
        ("home.ics", b"BEGIN:VCALENDAR", "text", "data", None),
        ("offer.eml", b"From: a", "mail", "mail", None),
        ("git.1", b'.\\" comment\n.TH GIT 1\n', "manual", "markdown", None),
        ("lz4.1", b".\n.TH LZ4 1\n", "manual", "markdown", None),
        ("CMS.3SSL", b".TH CMS 3ssl\n", "manual", "markdown", None),
        ("ssh.mdoc", b".Dd $Mdocdate$\n", "manual", "markdown", None),
        ("syslog.1", b"Nov 17 10:00:00 host sshd: .TH\n", "text", "text", None),
        ("poem.1", b"'tis the season\n", "text", "text", None),
        ("notes-1.2", b"words", "text", "text", None),
        ("page.man", b"formatted already", "text", "text", None),
    ],
)
def test_a_format_is_known_by_name_then_by_content(
    name: str, head: bytes, extractor: str, kind: str, language: str | None
):
    form = detect(name, head)
    assert isinstance(form, Format)
    assert (form.extractor, form.type, form.language) == (extractor, kind, language)


@pytest.mark.parametrize(
    ("name", "head", "reason"),
    [
        ("a.md", b"PK\0\0", "binary"),
        ("video.ts", b"G@\0\x10", "binary"),
        ("a.ppt", b"PK\3\4", "unsupported format"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(name: str, head: bytes, reason: str):
    assert detect(name, head) == Refusal(reason)


def test_comments_before_a_page_that_never_comes_cost_no_time():
    assert isinstance(detect("x", b"<!---->" * 1000), Format)
