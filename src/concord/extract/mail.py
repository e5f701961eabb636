"""E-mail as it is read: who wrote to whom and when, the message, and the names of what was attached."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.html import markdown_of
from concord.extract.package import checked
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean, without_encoded
from concord.types import Extracted

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_LONGEST_HEADER = 20_000  # characters: the library takes their square
_MISREAD = (LookupError, ValueError, TypeError, AttributeError)  # by the library, of headers that are none
# What Markdown would take for a heading: the line above a signature, a line of a table drawn with dashes.
_UNDERLINE = re.compile(r"^[ \t]*[-=]{2,}[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


class MailExtractor(Extractor):
    """Reads .eml: the headers that people read, then the message."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        message = message_from_bytes(data, EmailMessage, policy=policy.default)
        raw = {key.title(): str(value) for key, value in reversed([*message.raw_items()])}
        headers = {key: value for key in _HEADERS if (value := _header(key, raw.get(key, "")))}
        attached = ", ".join(_attached(message))
        lines = {**headers, "Attached": attached} if attached else headers
        head = "\n".join(f"{key}: {value}" for key, value in lines.items())
        text = clean(f"{head}\n\n{_body(message)}").strip()
        return Extracted(checked(text), "mail", title=headers.get("Subject", "")[:MAX_TITLE] or None)


def _header(key: str, raw: str) -> str:
    if raw.isascii() and "=?" not in raw:  # as it was written: the library writes days its own way
        return " ".join(raw.split())
    with suppress(*_MISREAD):
        return " ".join(str(policy.default.header_fetch_parse(key, raw[:_LONGEST_HEADER])).split())
    return ""


def _attached(message: EmailMessage) -> Iterator[str]:
    """Yield the names of what is attached, or what it is."""
    for part in message.walk():
        with suppress(*_MISREAD):
            name = " ".join((part.get_filename() or "").split())
            if name or part.get_content_disposition() == "attachment":
                yield name or part.get_content_type()


def _body(message: EmailMessage) -> str:
    """Return a message as Markdown, from its plain form where it has one."""
    part = _main_part(message)
    payload = part.get_payload(decode=True) if part is not None else None
    if part is None or not isinstance(payload, bytes):
        return ""
    text = with_plain_newlines(decode(payload, part.get_content_charset()))
    if part.get_content_type() == "text/html":
        return markdown_of(text)
    return _HEADING.sub(r"\\", _UNDERLINE.sub("", without_encoded(text)))


def _main_part(message: MIMEPart) -> MIMEPart | None:
    """Return the message itself: below it a list may have added words in plain text."""
    if message.get_content_maintype() == "multipart" and not message.is_multipart():
        return message  # its parts cannot be told apart
    if message.get_content_type() != "multipart/mixed":
        return message.get_body(("plain", "html"))
    parts = (part for part in message.iter_parts() if isinstance(part, MIMEPart))
    return next(filter(None, map(_main_part, parts)), None)
