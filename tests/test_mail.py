"""E-mail: which part of a message is read, and how headers are."""

from __future__ import annotations

from concord.extract.mail import MailExtractor


def test_headers_in_bare_utf_8_are_read():
    mail = "From: Zoë <z@example.org>\nSubject: Übermut\n\nwords".encode()
    extracted = MailExtractor().extract(mail, "a.eml")
    assert (extracted.title, extracted.text) == (
        "Übermut",
        "From: Zoë <z@example.org>\nSubject: Übermut\n\nwords",
    )
