"""Mailboxes: each message is read, cut and cited for itself, and a damaged one costs none of the others."""

from __future__ import annotations

import base64
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from concord.extract.mail import MailboxExtractor, MailExtractor
from concord.text.chunk import chunk
from concord.types import Extracted
from support.kb_command import Kb

ENCODED = base64.encodebytes("Der Walrossplan für Ägypten ist fertig.\n".encode()).decode()
BUDGET = f"""From alice@example.org Mon Mar  3 10:00:00 2025
From: =?utf-8?Q?Alice_M=C3=BCller?= <alice@example.org>
To: bob@example.org
Subject: =?utf-8?B?{base64.b64encode("Budget für das Frühjahr".encode()).decode()}?=
Date: Mon, 3 Mar 2025 10:00:00 +0100
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

{ENCODED}
"""
QUOTED = """From bob@example.org Mon Mar  3 11:00:00 2025
From: bob@example.org
Date: Mon, 3 Mar 2025 11:00:00 +0100
Subject: A long
 subject
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

The inter=
national caf=E9.
>From here on it is ours.
>>From there it was not.
# no heading
"""
PAGE = """
From - Tue Mar  4 11:00:00 2025
From: carol@example.org
Subject: Offer
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=BB

--BB
Content-Type: multipart/alternative; boundary=CC

--CC
Content-Type: text/html

<h1>Spring</h1><p>Twelve percent.</p>
--CC--
--BB
Content-Type: application/pdf
Content-Disposition: attachment; filename="=?utf-8?Q?pr=C3=A4mie.pdf?="
Content-Transfer-Encoding: base64

UEstMTIzNDU2Nzg5
--BB--
"""


def mailbox(text: str) -> Extracted:
    return MailboxExtractor().extract(text.encode(), "a.mbox")


def test_each_message_is_a_section_under_its_subject_decoded():
    assert mailbox(BUDGET + QUOTED + PAGE).text.split("\n") == [
        *("# Budget für das Frühjahr", "", "From: Alice Müller <alice@example.org>", "To: bob@example.org"),
        *("Date: Mon, 3 Mar 2025 10:00:00 +0100", "", "Der Walrossplan für Ägypten ist fertig.", ""),
        *("# A long subject", "", "From: bob@example.org", "Date: Mon, 3 Mar 2025 11:00:00 +0100", ""),
        *("The international café.", "From here on it is ours.", ">From there it was not."),
        *("\\# no heading", ""),
        *("# Offer", "", "From: carol@example.org", "Attached: prämie.pdf", ""),
        *("## Spring", "", "Twelve percent."),
    ]


def test_no_chunk_is_of_two_messages_however_short_they_are():
    extracted = mailbox(BUDGET + QUOTED + PAGE)
    pieces = chunk(extracted, lambda words: [at for at, sign in enumerate(words) if sign == " "])
    assert [piece.heading for piece in pieces] == [
        ("Budget für das Frühjahr",),
        ("A long subject",),
        ("Offer",),
    ]


def test_a_damaged_message_costs_none_of_the_others():
    bad = (
        "From x Tue Mar  4 11:00:00 2025\nSubject: =?utf-8?B?!?=\nContent-Type: multipart/mixed; boundary=\n"
    )
    text = mailbox(BUDGET + bad + "\nthe walrus remains\n\n" + QUOTED).text
    assert "Walrossplan" in text
    assert "the walrus remains" in text
    assert "international" in text


def test_lines_that_only_begin_with_from_part_nothing():
    text = mailbox(QUOTED + "\nFrom now on: nothing.\n\nFrom 10:00 we are open.\nAll of us.\n").text
    assert text.count("# ") == 2
    assert "From now on: nothing." in text


def test_what_thunderbird_writes_between_messages_parts_them():
    text = mailbox("From \r\nSubject: one\r\n\r\nfirst\r\n\r\nFrom \r\nSubject: two\r\n\r\nsecond\r\n").text
    assert text == "# one\n\nfirst\n\n# two\n\nsecond"


def test_what_is_no_mailbox_after_all_is_text():
    assert mailbox("just words\n").text == "# (no subject)\n\njust words"


def test_the_message_is_read_and_not_what_a_list_adds_below_it():
    parts = (("text/html", "<p>The walrus.</p>"), ("text/plain", "To unsubscribe, write."))
    body = "".join(f"--B\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    mail = f"Subject: List\nContent-Type: multipart/mixed; boundary=B\n\n{body}--B--\n"
    assert MailExtractor().extract(mail.encode(), "a.eml").text == "Subject: List\n\nThe walrus."


def test_headers_in_bare_utf_8_are_read():
    mail = "From: Zoë <z@example.org>\nSubject: Übermut\n\nwords".encode()
    extracted = MailExtractor().extract(mail, "a.eml")
    assert (extracted.title, extracted.text) == (
        "Übermut",
        "From: Zoë <z@example.org>\nSubject: Übermut\n\nwords",
    )


@given(st.integers(0, 10_000), st.binary(max_size=30))
def test_no_damage_raises_nor_hides_what_precedes_it(at: int, noise: bytes):
    rest = (QUOTED + PAGE).encode()
    cut = at % len(rest)
    text = (
        MailboxExtractor().extract(BUDGET.encode() + rest[:cut] + noise + rest[cut + len(noise) :], "a").text
    )
    assert "Budget für das Frühjahr" in text


def test_a_mailbox_is_found_by_what_it_says_encoded_or_not(kb: Kb, tmp_path: Path):
    folder = tmp_path / "mail"
    folder.mkdir()
    (folder / "list.mbox").write_text(BUDGET + QUOTED + PAGE, encoding="utf-8")
    kb("add", str(folder))
    (hit,) = kb("search", "Walrossplan", "--fts-only", "--json").json["results"]
    assert (hit["path"], hit["heading"]) == ("mail/list.mbox", ["Budget für das Frühjahr"])
    assert "international" not in kb("get", hit["citation"]).out


def test_a_sentence_that_begins_with_from_parts_no_message():
    said = b"From a Mon Mar  3 10:00:00 2025\nSubject: s\n\nhi\n\nFrom the office at 10:30\nNote: bring it\n"
    text = MailboxExtractor().extract(said, "a.mbox").text
    assert "From the office at 10:30\nNote: bring it" in text
