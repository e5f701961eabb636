"""Mailboxes (mbox): each message a section of its own, headed by its subject and read as an e-mail is.

A message that cannot be taken apart is text; the others are read all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from concord.errors import ExtractionError
from concord.extract.decode import decode
from concord.extract.mail import Mail, read_mail
from concord.extract.package import MAX_CHARACTERS, checked
from concord.extract.plain import MAX_TITLE, with_plain_newlines
from concord.text.clean import clean, without_encoded
from concord.types import Extracted

# "From who Mon Mar  3 10:00:00 2025", or no more than "From" by Thunderbird, and then a header. Where a
# message itself says so, it is written ">From".
_SEPARATOR = re.compile(rb"^(From [^\n]*+)\n(?=>?[A-Za-z][!-9;-~]{0,75}:)", re.MULTILINE)
_TIME = re.compile(rb"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.*\d:\d\d.*\b\d{4}\b")
_QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_HEADING = re.compile(r"#{1,5} ")
_MARKS = re.compile(r"^#+|[\\`*\[\]<>]")
_NO_SUBJECT = "(no subject)"
# What the library raises over messages that are damaged.
_DAMAGED = (
    ExtractionError, ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError,
)  # fmt: skip


class MailboxExtractor:
    """Reads .mbox."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the messages in the order of the file.

        Raises:
            TooLarge: they hold more text than is worth indexing.
        """
        parts: list[str] = []
        room = MAX_CHARACTERS
        for message in _messages(data):
            parts.append(clean(_section(message)).strip())
            room -= len(parts[-1])
            if room < 0:
                break
        return Extracted(checked("\n\n".join(filter(None, parts))), "office", language="mbox")


def _messages(data: bytes) -> Iterator[bytes]:
    """Yield what stands between the lines that part messages, without the signs that protect such lines."""
    start = 0
    for found in filter(_parts_messages, _SEPARATOR.finditer(data)):
        yield _unquoted(data[start : found.start()])
        start = found.end()
    yield _unquoted(data[start:])


def _parts_messages(line: re.Match[bytes]) -> bool:
    return line[1].strip() == b"From" or _TIME.search(line[1]) is not None


def _unquoted(message: bytes) -> bytes:
    return _QUOTED_FROM.sub(b"", message) if b"\n>From " in message or b">>From " in message else message


def _section(data: bytes) -> str:
    if not data.strip():
        return ""
    try:
        mail = read_mail(data)
    except _DAMAGED:
        return _as_text(data)
    if not mail.headers:
        return _as_text(data)
    try:
        body = _below(mail.body())
    except _DAMAGED:
        body = ""
    return "\n\n".join(filter(None, (f"# {_title(mail)}", mail.head(with_subject=False), body.strip("\n"))))


def _title(mail: Mail) -> str:
    return _MARKS.sub("", mail.subject).strip()[:MAX_TITLE] or _NO_SUBJECT


def _as_text(data: bytes) -> str:
    return f"# {_NO_SUBJECT}\n\n{_below(without_encoded(with_plain_newlines(decode(data))))}"


def _below(body: str) -> str:
    """Return a message with its headings one level deeper, below the subject."""
    if "#" not in body:
        return body
    fence = ""
    lines: list[str] = []
    for line in body.split("\n"):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        elif not fence and _HEADING.match(line):
            line = "#" + line
        lines.append(line)
    return "\n".join(lines)
