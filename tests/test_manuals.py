"""Manual pages: what is read of man(7) and mdoc(7), and that no page raises or takes long."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concord.extract.manpage import ManualExtractor, shown
from concord.text.chunk import chunk
from concord.text.names import names_of
from concord.text.word_lists import listed
from concord.types import Extracted
from support.kb_command import Kb

ROTATE = r"""'\" t
.\" Copyright: nobody
.TH LOGROTATE 8 "5 May 2024" "Linux" "Administrator's Manual"
.de FN
\fI\|\\$1\|\fP
..
.SH NAME
logrotate \(mi rotates, compresses, and mails system logs
.SH SYNOPSIS
\fBlogrotate\fR [\fB\-\-force\fR]
.BI \-\-state " file"
.SH OPTIONS
.TP
\fB\-f\fR, \fB\-\-force\fR
Tells \fBlogrotate\fR to force the rotation, as
.B \-\-verbose
does not, even if it thinks this is not necessary. See
.BR crond (8).
.TP
.B copytruncate
Truncate the original log file \*(lqin place\*(rq.
.IP "\fBolddir\fR \fIdirectory\fR" 4
Logs are moved into \fIdirectory\fR\|; see
.FN /etc/logrotate.conf .
.SS Examples
.nf
/var/log/*.log {
    rotate 5
}
.fi
.IP \(bu 2
first
.IP \(bu
second
.if t .ig
.ie n only on terminals
.el only on paper
.TS
tab(:);
l l.
Signal:Action
_
SIGHUP:T{
Reopen the
.I log
T}
.TE
"""


def manual(text: str) -> Extracted:
    return ManualExtractor().extract(text.encode(), "a.1")


def test_a_page_reads_as_man_shows_it():
    assert manual(ROTATE).text.split("\n") == [
        "# logrotate(8) - rotates, compresses, and mails system logs",
        "",
        "## NAME",
        "",
        "logrotate - rotates, compresses, and mails system logs",
        "",
        "## SYNOPSIS",
        "",
        "logrotate [--force] --state file",
        "",
        "## OPTIONS",
        "",
        "-f, --force",
        "  Tells logrotate to force the rotation, as --verbose does not, even if it thinks this is not"
        " necessary. See crond(8).",
        "",
        "copytruncate",
        "  Truncate the original log file “in place”.",
        "",
        "olddir directory",
        "  Logs are moved into directory; see /etc/logrotate.conf .",
        "",
        "### Examples",
        "",
        "```",
        "/var/log/*.log {",
        "    rotate 5",
        "}",
        "```",
        "",
        "- first",
        "",
        "- second only on terminals",
        *("```", "tab(:);", "l l.", "Signal:Action", "_", "SIGHUP:T{", "Reopen the", "log", "T}", "```"),
    ]


def test_every_line_knows_its_line_of_the_file():
    extracted = manual(ROTATE)
    source, lines = ROTATE.split("\n"), extracted.text.split("\n")
    assert len(lines) == len(extracted.file_lines)
    for words in ("Tells", "Truncate", "rotate 5", "SIGHUP"):
        (at,) = (n for n, line in enumerate(lines) if words in line)
        assert words in source[extracted.file_lines[at] - 1]


def test_its_title_is_its_name_as_it_spells_it_and_what_it_says_of_itself():
    assert manual(ROTATE).title == "logrotate(8) - rotates, compresses, and mails system logs"
    assert manual(".TH X 7\n.SH DESCRIPTION\nwords").title == "x(7)"
    assert manual(".SH NAME\nfoo \\- does bar").title == "foo - does bar"


def test_options_and_words_have_entries_that_begin_with_them():
    names = names_of("text", "man8/logrotate.8", "", (), manual(ROTATE).text)
    assert {"--force", "-f", "copytruncate"} <= {*names}
    assert {"--verbose", "logs"}.isdisjoint(names)  # spoken of within a sentence


def test_chunks_stand_under_the_sections_of_the_page():
    text = ".TH A 1\n" + "".join(f".SH PART {n}\n" + f"word{n} " * 300 + "\n" for n in range(3))
    pieces = chunk(manual(text), lambda words: [at for at, sign in enumerate(words) if sign == " "])
    assert [piece.heading for piece in pieces] == [("a(1)", f"PART {n}") for n in range(3)]


def test_pages_of_docbook_asciidoctor_and_pod_are_read_too():
    docbook = r""".TH "GIT\-ADD" "1"
.SH "OPTIONS"
.PP
\-n, \-\-dry\-run
.RS 4
Don\(cqt actually add the file(s)\&.
.RE
.sp
.RS 4
.ie n \{\
\h'-04'\(bu\h'+03'\c
.\}
.el \{\
.sp -1
.IP \(bu 2.3
.\}
an item
.RE
"""
    assert manual(docbook).text.split("\n") == [
        *("# git-add(1)", "", "## OPTIONS", ""),
        *("-n, --dry-run", "  Don’t actually add the file(s).", "", "  - an item"),
    ]
    asciidoctor = r"""'\" t
.\" Generator: Asciidoctor 2.0.15
.TH "RENAME" "1"
.de URL
\fI\\$2\fP <\\$1>\\$3
..
.als MTO URL
.if \n[.g] \{\
.  mso www.tmac
.  am URL
.    ad l
.  .
.  LINKSTYLE blue R < >
.\}
.SH "OPTIONS"
.sp
\fB\-s\fP, \fB\-\-symlink\fP
.RS 4
Do not rename a symlink, see
.URL "https://example.org" "this" "."
.RE
"""
    assert manual(asciidoctor).text.split("\n")[2:] == [
        *("## OPTIONS", "", "-s, --symlink", "  Do not rename a symlink, see https://example.org this ."),
    ]
    pod = r'''.de Sp
.if t .sp .5v
.if n .sp
..
.tr \(*W-
.ds -- \(*W-
.ie n \{\
.    ds C` ""
'br\}
.TH FOO 3pm
.SH "METHODS"
.IX Header "METHODS"
.ie n .IP """get"" (key)" 4
.el .IP "\f(CWget\fR (key)" 4
.IX Item "get"
Here\*(--it works.
.Vb 1
\&    $x = get("\en");
.Ve
'''
    assert manual(pod).text.split("\n") == [
        *("# foo(3pm)", "", "## METHODS", "", '"get" (key)', "  Here-it works."),
        *("  ```", '      $x = get("\\n");', "  ```"),
    ]


MDOC = r""".Dd $Mdocdate: May 5 2024 $
.Dt SSH-ADD 1
.Os
.Sh NAME
.Nm ssh-add
.Nd adds private key identities
.Sh SYNOPSIS
.Nm
.Op Fl cD
.Op Fl t Ar life Ns Op Ar unit
.Ar
.Sh DESCRIPTION
.Nm
adds keys
.Pq Dq identities
to
.Xr ssh-agent 1 ,
as in
.Pa ~/.ssh/id_rsa .
.Bl -tag -width Ds
.It Fl c
Confirm.
.It Fl T Ar pubkey ...
Tests
.Ev SSH_ASKPASS ;
never asks.
.It Xo
.Fl s
.Ar pkcs11
.Xc
Adds.
.El
.Bd -literal -offset indent
$ ssh-add -l
.Ed
.Bl -column "Name" "Value"
.It Sy Name Ta Sy Value
.It one Ta 1
.El
.Fn open "const char *path" "int flags" .
.Ex -std
"""


def test_a_page_in_mdoc_reads_about_as_man_shows_it():
    extracted = manual(MDOC)
    assert extracted.title == "ssh-add(1) - adds private key identities"
    assert extracted.text.split("\n")[2:] == [
        *("## NAME", "", "ssh-add - adds private key identities", ""),
        *("## SYNOPSIS", "", "ssh-add [-cD] [-t life unit]", ""),
        *("## DESCRIPTION", "", "ssh-add adds keys identities to ssh-agent 1, as in ~/.ssh/id_rsa.", ""),
        *("-c", "  Confirm.", "", "-T pubkey ...", "  Tests SSH_ASKPASS; never asks.", ""),
        *("-s", "  pkcs11 Adds.", ""),
        *("```", "$ ssh-add -l", "```", ""),
        *("Name Value", "one 1", ""),
        "open const char *path int flags.",
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (r"\fBcopytruncate\fR", "copytruncate"),
        (r"\f[CR]a\f[R] \f(CWb\fP", "a b"),
        (r"\s-1POSIX\s0 \s+(10a\s[12]b", "POSIX ab"),
        (r"\-\-force", "--force"),
        (r"\(bu\[em]\('e\[rs]", "•—e\\"),
        (r"C:\edir \&.x a\|b\^c", "C:\\dir .x abc"),
        (r"a\ b\~c\0d", "a b c d"),
        (r"text \" a comment", "text "),
        (r"\h'1i'\w'abc'\v'-1'x\z", " x"),
        (r"\*[nobody]\*(zz\n(zz.", "."),
        ("ends\\", "ends"),
    ],
)
def test_escapes_show_what_a_terminal_does(written: str, expected: str):
    assert shown(written) == expected


def test_text_that_looks_like_markdown_is_none():
    text = manual(".TH A 1\n.SH B\n# not a heading\n.br\n| no table\n.PP\nwords\n.br\n---\n").text
    assert text.endswith("\\# not a heading\n\\| no table\n\nwords\n\\---")


def test_a_page_that_only_refers_to_another_holds_no_text():
    assert manual(".so man1/other.1\n").text == ""


MACROS = st.sampled_from(
    sorted(
        listed(
            "TH SH SS TP IP PP RS RE B BI BR nf fi TS TE T& de ds as if ie el ig tr nr so UR UE OP SY "
            "Dd Dt Sh Nm Fl Ar Op Oo Oc Xo Xc Bl El It Ta Ns Pf Fn Fo Fc Rs %A Re Bd Ed Dl Xr Ex Sm . \\} \\{"
        )
    )
)
LINES = st.one_of(
    st.builds(".{} {}".format, MACROS, st.text(st.sampled_from("ab \\\"'([{*fsnhc1-.\t|#;:}T"), max_size=12)),
    st.text(st.sampled_from("ab \\\"'([{*fsnhcTl1-.\t|#;:}`"), max_size=20),
    st.text(max_size=20),
)


@settings(max_examples=300)
@given(st.lists(LINES, max_size=30).map("\n".join))
@example("\r0")  # files of old systems end their lines so
def test_no_page_raises_and_each_line_keeps_its_place(text: str):
    extracted = manual(text)
    if extracted.text:
        lines = extracted.text.split("\n")
        assert len(lines) == len(extracted.file_lines)
        ends = text.replace("\r\n", "\n").count("\n") + text.replace("\r\n", "").count("\r")
        assert {*extracted.file_lines} <= {*range(1, ends + 2)}


SIZE = 1_000_000
HOSTILE = {
    "strings of strings": ".ds a \\*a\\*a\n" * (SIZE // 26) + "\\*a" * (SIZE // 6),
    "conditions": ".if n " * (SIZE // 6),
    "blocks": ".ie t \\{\\\n" * (SIZE // 10),
    "cells": ".TS\nl l.\n" + "T{\n" * (SIZE // 3),
    "brackets": ".Dd x\n.Op " + "Op " * (SIZE // 3),
    "blank lines": ".TH A 1\n" + "\n" * SIZE,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_page_is_read_to_its_end(text: str):
    assert manual(text).file_lines is not None  # what costs its square takes minutes


def test_a_page_is_found_by_its_bold_words_and_cited_by_its_lines(kb: Kb, tmp_path: Path):
    folder = tmp_path / "man"
    folder.mkdir()
    (folder / "logrotate.8").write_text(ROTATE, encoding="utf-8")
    kb("add", str(folder))
    (hit,) = kb("search", "copytruncate", "--fts-only", "--json").json["results"]
    assert (hit["path"], hit["title"]) == ("man/logrotate.8", manual(ROTATE).title)
    assert "copytruncate\nTruncate the original" in hit["snippet"]
    read = kb("get", "man/logrotate.8:22-22").out
    assert "\n- first" in read
    assert "\\f" not in read
