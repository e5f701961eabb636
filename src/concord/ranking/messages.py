"""Is a query a message that a program has printed? Then what it has in quotes are values, not quotations.

`FATAL: database "shop" does not exist` asks for the message, whatever the database is called. No text about
the message has "shop" in it.
"""

from __future__ import annotations

import re

from concord.text.pattern import pattern

LEAST_OUTSIDE = 4  # words beside what is quoted: `error "connection reset"` quotes a message

_QUOTED = pattern('(?<!-)"([^"]*)"|[“„]([^“„”"]*)[”“]')
# ERROR: … · ValueError: … · Exception in thread … · [warning] … · src/main.c:12: …
_MESSAGE = pattern(
    r"\b\w*(?:error|exception|warning|fatal|panic|hint|detail|notice)\b[\])]?:|\b(?-i:Exception) in\b"
    r"|\[(?:error|warn(?:ing)?|fatal)\]|\S\.\w+:\d+:",
    re.IGNORECASE,
)
_AROUND = " \t\n.,:;!?()[]{}"
_WORD = pattern(r"\S*\w\S*")
# ERROR: … · [worker-1] WARNING: … · ValueError: …
_HEAD = pattern(r"(?:[\[(]?[\w./-]{1,80}[\])]?:\s+|\[[\w ./:-]{1,80}\]\s+)+")
# 'shop' · `shop` · <User at 0x7f> · 30.00 · 0x7f · /var/run/shop.pid: what is another each time
_VALUE = pattern(
    r"(?<!\w)'[^'\n]{1,80}'(?!\w)|`[^`\n]{1,80}`|<[^<>\n]{1,80}>|(?<![\w.])0x[0-9a-f]+\b"
    r"|(?<![\w.-])[-+]?\d[\d.,:/-]*+(?!\w)|(?<!\w)(?:/[\w.-]{1,80}){2,20}",
    re.IGNORECASE,
)
# paramiko.ssh_exception.SSHException: … · java.lang.IllegalStateException: …
_MODULES = pattern(r"\b(?:[A-Za-z_]\w{0,60}\.){1,12}(?=[A-Z]\w{0,80}(?:Error|Exception|Warning|Fault): )")


def without_modules(text: str) -> str:
    """Return a message without the modules before its exception: texts name the exception alone."""
    return _MODULES.sub("", text)


def with_bare_values(text: str) -> str:
    """Return a message without the quotes around its values; any other query as it is."""
    outside = _QUOTED.sub(" ", text)
    if not _MESSAGE.search(outside):
        return text
    around = len(_WORD.findall(outside))
    within = sum(len(_WORD.findall(quoted[0])) for quoted in _QUOTED.finditer(text))
    return _QUOTED.sub(r"\1\2", text) if around >= LEAST_OUTSIDE and around > within else text


def literal_parts(text: str) -> tuple[str, ...]:
    """Return what a pasted message says before, between and behind its values; nothing of any other query.

    `Received unregistered task of type 'shop.pay'` stands in a program as its first five words.
    """
    head = _HEAD.match(text)
    body = text[head.end() :] if head else text
    parts = tuple(part for one in _VALUE.split(body) if (part := one.strip(_AROUND)) and _WORD.search(part))
    is_message = parts != (text.strip(_AROUND),)  # it has values, or begins like one
    return parts if is_message and sum(len(_WORD.findall(part)) for part in parts) >= LEAST_OUTSIDE else ()
