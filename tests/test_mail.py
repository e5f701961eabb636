"""E-mail: which part of a message is read, and how headers are."""

from __future__ import annotations

from concord.extract.mail import MailExtractor


def test_the_message_is_read_and_not_what_a_list_adds_below_it():
    parts = (("text/html", "<p>The walrus.</p>"), ("text/plain", "To unsubscribe, write."))
    body = "".join(f"--B\nContent-Type: {kind}\n\n{text}\n" for kind, text in parts)
    mail = f"Subject: List\nContent-Type: multipart/mixed; boundary=B\n\n{body}--B--\n"
    assert MailExtractor().extract(mail.encode(), "a.eml").text == "Subject: List\n\nThe walrus."


def test_a_message_whose_parts_cannot_be_told_apart_is_read_as_it_stands():
    mail = b"Subject: List\nContent-Type: multipart/mixed\n\nThe walrus."
    assert MailExtractor().extract(mail, "a.eml").text == "Subject: List\n\nThe walrus."


def test_headers_in_bare_utf_8_are_read():
    mail = "From: Zoë <z@example.org>\nSubject: Übermut\n\nwords".encode()
    extracted = MailExtractor().extract(mail, "a.eml")
    assert (extracted.title, extracted.text) == (
        "Übermut",
        "From: Zoë <z@example.org>\nSubject: Übermut\n\nwords",
    )
