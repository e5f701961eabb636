"""E-mail as it is read: who wrote to whom and when, the message, and the names of what was attached.

The library's newer interface reads a header in a millisecond, which a mailbox of 20,000 messages has no time
for: messages are taken apart by its older one, and which part is the message itself is decided here. Of a
mailbox (mbox) each message is a section, headed by its subject; one that cannot be taken apart is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from typing import NamedTuple

from concord.core.errors import ExtractionError
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.html import markdown_of
from concord.extract.package import MAX_CHARACTERS, checked
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean, without_encoded
from concord.types import Extracted

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_READABLE = ("text/plain", "text/html")
_FORMS = (*_READABLE, "multipart/alternative", "multipart/related")
_MAX_DEPTH = 20  # levels of parts within parts
# What Markdown would take for a heading: the line above a signature, a line of a table drawn with dashes.
_UNDERLINE = re.compile(r"^[ \t]*[-=]{2,}[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


class Mail(NamedTuple):
    """A message, taken apart."""

    headers: dict[str, str]  # those that people read
    attached: list[str]  # names
    message: Message

    @property
    def subject(self) -> str:
        """What it is about, as its writer says."""
        return self.headers.get("Subject", "")

    def head(self, *, with_subject: bool = True) -> str:
        """Return the headers, a line each, and what is attached."""
        lines = [f"{key}: {value}" for key, value in self.headers.items() if with_subject or key != "Subject"]
        lines += [f"Attached: {', '.join(self.attached)}"] if self.attached else []
        return "\n".join(lines)

    def body(self) -> str:
        """Return the message as Markdown, from its plain form where it has one."""
        part = next(_readable(self.message), None)
        if part is None and _is_multipart(self.message) and not self.message.is_multipart():
            part = self.message  # its parts cannot be told apart
        payload = part.get_payload(decode=True) if part is not None else None
        if part is None or not isinstance(payload, bytes):
            return ""
        text = with_plain_newlines(decode(payload, part.get_content_charset()))
        if part.get_content_type() == "text/html":
            return markdown_of(text)
        return _HEADING.sub(r"\\", _UNDERLINE.sub("", without_encoded(text)))


class MailExtractor:
    """Reads .eml."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the headers that people read, then the message."""
        mail = read_mail(data)
        text = clean(f"{mail.head()}\n\n{mail.body()}").strip()
        return Extracted(checked(text), "office", title=mail.subject[:MAX_TITLE] or None)


def read_mail(data: bytes) -> Mail:
    """Return a message that is given as it was sent."""
    message = BytesParser().parsebytes(data)
    raw = {key.title(): value for key, value in reversed(list(message.raw_items()))}
    headers = {key: value for key in _HEADERS if key in raw and (value := decoded_header(str(raw[key])))}
    return Mail(headers, [_name(part) for part in _attached(message)], message)


def decoded_header(raw: str) -> str:
    """Return what a header says, in words."""
    try:
        parts: Sequence[tuple[bytes | str, str | None]] = decode_header(raw) if "=?" in raw else [(raw, None)]
    except (HeaderParseError, ValueError):  # base64 that is none
        parts = [(raw, None)]
    return " ".join("".join(_text(part, charset) for part, charset in parts).split())


def _text(part: bytes | str, charset: str | None) -> str:
    if isinstance(part, str):
        if part.isascii():
            return part
        part = part.encode("utf-8", "surrogateescape")  # which is against the rules, and common
    return decode(part, charset)


def _readable(message: Message, depth: int = 0) -> Iterator[Message]:
    """Yield the parts that may be the message itself: of its forms the plain one, of a page no pictures."""
    kind = message.get_content_subtype()
    if message.get_content_disposition() == "attachment" or depth > _MAX_DEPTH:
        return
    if not message.is_multipart():
        if message.get_content_type() in _READABLE:
            yield message
    elif _is_multipart(message):
        parts = _parts(message)[:1] if kind == "related" else _parts(message)
        found = (one for part in parts for one in _readable(part, depth + 1))
        yield from sorted(found, key=_preference)[:1] if kind == "alternative" else found


def _preference(part: Message) -> int:
    return _READABLE.index(part.get_content_type())


def _parts(message: Message) -> list[Message]:
    payload = message.get_payload()
    return [part for part in payload if isinstance(part, Message)] if isinstance(payload, list) else []


def _attached(message: Message) -> Iterator[Message]:
    """Yield the parts that are not the message in one of its forms."""
    kind = message.get_content_subtype()
    if not _is_multipart(message) or kind == "alternative":
        return
    if kind == "related":
        yield from _parts(message)[1:]
        return
    seen: set[str] = set()
    for part in _parts(message):
        form = part.get_content_type()
        if form in _FORMS and form not in seen and part.get_content_disposition() != "attachment":
            seen.add(form)
        else:
            yield part


def _name(part: Message) -> str:
    return decoded_header(part.get_filename() or "") or part.get_content_type()


def _is_multipart(message: Message) -> bool:
    return message.get_content_maintype() == "multipart"


# "From who Mon Mar  3 10:00:00 2025", or no more than "From" by Thunderbird, and then a header. Where a
# message itself says so, it is written ">From".
_SEPARATOR = re.compile(rb"^(From [^\n]*+)\n(?=>?[A-Za-z][!-9;-~]{0,75}:)", re.MULTILINE)
_TIME = re.compile(rb"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.*\d:\d\d.*\b\d{4}\b")
_QUOTED_FROM = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_MARKED_HEADING = re.compile(r"#{1,5} ")
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
        elif not fence and _MARKED_HEADING.match(line):
            line = "#" + line
        lines.append(line)
    return "\n".join(lines)
