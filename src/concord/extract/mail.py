"""E-mail as it is read: who wrote to whom and when, the message, and the names of what was attached.

Messages are taken apart by the library's older interface, which forgives more, and which part is the message
itself is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.html import markdown_of
from concord.extract.package import checked
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean, without_encoded
from concord.types import Extracted

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_READABLE = ("text/plain", "text/html")
_MAX_DEPTH = 20  # levels of parts within parts
# What Markdown would take for a heading: the line above a signature, a line of a table drawn with dashes.
_UNDERLINE = re.compile(r"^[ \t]*[-=]{2,}[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


class MailExtractor(Extractor):
    """Reads .eml: the headers that people read, then the message."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        message = BytesParser().parsebytes(data)
        headers = _headers(message)
        text = clean(f"{_head(headers, message)}\n\n{_body(message)}").strip()
        return Extracted(checked(text), "mail", title=headers.get("Subject", "")[:MAX_TITLE] or None)


def _headers(message: Message) -> dict[str, str]:
    """Return the headers that people read, in words."""
    raw = {key.title(): value for key, value in reversed(list(message.raw_items()))}
    return {key: value for key in _HEADERS if key in raw and (value := _header(str(raw[key])))}


def _head(headers: dict[str, str], message: Message) -> str:
    """Return headers, a line each, and what is attached."""
    parts = (part for part in message.walk() if part.get_filename() or _is_attached(part))
    attached = ", ".join(_header(part.get_filename() or "") or part.get_content_type() for part in parts)
    lines = [f"{key}: {value}" for key, value in headers.items()]
    return "\n".join([*lines, f"Attached: {attached}"] if attached else lines)


def _body(message: Message) -> str:
    """Return a message as Markdown, from its plain form where it has one."""
    part = next(_readable(message), None)
    if part is None and _is_multipart(message) and not message.is_multipart():
        part = message  # its parts cannot be told apart
    payload = part.get_payload(decode=True) if part is not None else None
    if part is None or not isinstance(payload, bytes):
        return ""
    text = with_plain_newlines(decode(payload, part.get_content_charset()))
    if part.get_content_type() == "text/html":
        return markdown_of(text)
    return _HEADING.sub(r"\\", _UNDERLINE.sub("", without_encoded(text)))


def _header(raw: str) -> str:
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
    if _is_attached(message) or depth > _MAX_DEPTH:
        return
    if not message.is_multipart():
        if message.get_content_type() in _READABLE:
            yield message
    elif _is_multipart(message):
        parts = [part for part in message.get_payload() if isinstance(part, Message)]
        found = (
            message
            for part in parts[: 1 if kind == "related" else None]
            for message in _readable(part, depth + 1)
        )
        yield from sorted(found, key=_preference)[:1] if kind == "alternative" else found


def _preference(part: Message) -> int:
    return _READABLE.index(part.get_content_type())


def _is_attached(part: Message) -> bool:
    return part.get_content_disposition() == "attachment"


def _is_multipart(message: Message) -> bool:
    return message.get_content_maintype() == "multipart"
