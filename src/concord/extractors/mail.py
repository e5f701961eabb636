"""E-mail as it is read: who wrote to whom and when, the message, and the names of what was attached."""

from __future__ import annotations

import re
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser

from concord.extractors.decode import decode
from concord.extractors.html import HtmlExtractor
from concord.extractors.office_package import checked
from concord.extractors.plain import MAX_TITLE, with_plain_newlines
from concord.text.clean import clean
from concord.text.encoded import without_encoded
from concord.types import Extracted

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
# What Markdown would take for a heading: the line above a signature, a line of a table drawn with dashes.
_UNDERLINE = re.compile(r"^[ \t]*[-=]{2,}[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)


class MailExtractor:
    """Reads .eml."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the headers that people read, then the message."""
        message = BytesParser(EmailMessage, policy=policy.default).parsebytes(data)
        headers = {key: " ".join(str(message[key]).split()) for key in _HEADERS if message[key]}
        attached = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
        lines = [f"{key}: {value}" for key, value in headers.items()]
        lines += [f"Attached: {', '.join(attached)}"] if attached else []
        text = clean("\n".join(lines) + "\n\n" + _body(message)).strip()
        return Extracted(checked(text), "office", title=headers.get("Subject", "")[:MAX_TITLE] or None)


def _body(message: EmailMessage) -> str:
    """Return the message as Markdown, from its plain form where it has one."""
    part = message.get_body(("plain", "html"))
    payload = part.get_payload(decode=True) if part is not None else None
    if part is None or not isinstance(payload, bytes):
        return ""
    text = with_plain_newlines(decode(payload, part.get_content_charset()))
    if part.get_content_subtype() == "html":
        return HtmlExtractor().extract(text.encode("utf-8", "replace"), "").text
    return _HEADING.sub(r"\\", _UNDERLINE.sub("", without_encoded(text)))
