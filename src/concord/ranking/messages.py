"""Is a query a message that a program has printed? Then what it has in quotes are values, not quotations.

`FATAL: database "shop" does not exist` asks for the message, whatever the database is called. No text about
the message has "shop" in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from concord.ranking.questions import asks
from concord.ranking.words import words
from concord.text.pattern import pattern
from concord.text.stopwords import is_stop_word

LEAST_OUTSIDE = 4  # words beside what is quoted: `error "connection reset"` quotes a message

_QUOTED = pattern('(?<!-)"([^"]*)"|[“„]([^“„”"]*)[”“]')
# ERROR: … · ValueError: … · Exception in thread … · [warning] … · src/main.c:12: …
_MESSAGE = pattern(
    r"\b\w*(?:error|exception|warning|fatal|panic|hint|detail|notice)\b[\])]?:|\b(?-i:Exception) in\b"
    r"|\[(?:error|warn(?:ing)?|fatal)\]|\S\.\w+:\d+:",
    re.IGNORECASE,
)
LEAST_TELLING = 2  # words that are no stop words: "the … of … and … in" stands in every text
MOST_OUTSIDE = 200  # words of a message; more is a page of a log

_AROUND = " \t\n.,:;!?()[]{}"
_WORD = pattern(r"(?<!\S)[^\s\w]*+\w\S*+")  # not begun within a ruler: each time it would go to its end
# ERROR: … · [worker-1] WARNING: … · ValueError: … · Exception in thread "main" IOException: … · Uncaught …
_HEAD = pattern(
    r"(?:Exception in thread [\"'][^\"'\n]{1,80}[\"']\s+|Uncaught (?:\(in promise\) )?)?"
    r"(?:[\[(]?[\w./-]{1,80}[\])]?:\s+|\[[\w ./:-]{1,80}\]\s+)+"
)
# thread 'main' panicked at 'no entry found', src/main.rs:4:5 · … panicked at src/main.rs:4:5:⏎no entry found
_PANIC = pattern(
    r"thread '[^'\n]{1,80}'(?: \(\d{1,20}\))? panicked at (?P<place>\S{1,300}:\d{1,9}:\d{1,9}:\s++)?"
)
_ADVICE = "\nnote: "  # of Rust, below the message
# 'shop' · "shop" · `shop` · <User at 0x7f> · 30.00 · 0x7f · /var/run/shop.pid: what is another each time
_VALUE = pattern(
    r"(?<!\w)'[^'\n]{1,80}'(?!\w)|‘[^‘’\n]{1,80}’(?!\w)|`[^`\n]{1,80}`|<[^<>\n]{1,80}>"
    r"|(?<![\w-])\"[^\"\n]{1,80}\"(?!\w)|[“„][^“„”\n]{1,80}[”“](?!\w)|(?<![\w.])0x[0-9a-f]+\b"
    r"|(?<![\w.-])[-+]?\d[\d.,:/-]*+(?!\w)|(?<!\w)(?:/[\w.-]{1,80}){2,20}",
    re.IGNORECASE,
)
# 10.0.3.7:8080 · 3f2504e0-4f89-11d3-9a0c-0305e82c3301
_OWN = pattern(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?!\.?\w)|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
    re.IGNORECASE,
)
_PLAIN_WORD = pattern(r"[^\W_]+")
_NUMBER = pattern(
    r"(?<![\w.{%$])\d+(?:[.,:]\d+)*+(?!\w)"
)  # not {0}, %1 and $1, in whose place values are put
_MARK = pattern(r"[\"“”„«»'‘’`<{%$]")  # of a value, or of what stands in its place
_BETWEEN = r"[\W_]++(?:[^\W_]++[\W_]++){0,4}?"  # 'shop', %s, {self.limit}, " + str(limit) + "
# paramiko.ssh_exception.SSHException: … · java.lang.IllegalStateException: …
_MODULES = pattern(r"\b(?:[A-Za-z_]\w{0,60}\.){1,12}(?=[A-Z]\w{0,80}(?:Error|Exception|Warning|Fault): )")


def without_modules(text: str) -> str:
    """Return a message without the modules of its exception: texts name the exception alone."""
    return _MODULES.sub("", text)


def with_bare_values(text: str) -> str:
    """Return a message with its values in single quotes, which quote no phrase; other queries unchanged."""
    outside = _QUOTED.sub(" ", text)
    if not _MESSAGE.search(outside):
        return text
    around = len(_WORD.findall(outside))
    within = sum(len(_WORD.findall(quoted[0])) for quoted in _QUOTED.finditer(text))
    return _QUOTED.sub(_singly_quoted, text) if around >= LEAST_OUTSIDE and around > within else text


def _singly_quoted(quoted: re.Match[str]) -> str:
    value = quoted[1] or quoted[2] or ""
    return f"'{value}'" if "'" not in value else value


def own_values(text: str) -> frozenset[str]:
    """Return the addresses and ids in a pasted message: they belong to one machine or run, not to any text.

    In any other query they are what was asked for, so there are none.
    """
    is_message = _HEAD.match(text) or _MESSAGE.search(text)
    found = frozenset(_OWN.findall(text)) if is_message else frozenset()
    is_long_enough = found and len(_WORD.findall(_OWN.sub(" ", text))) >= LEAST_OUTSIDE
    return found if is_long_enough and not asks(text, words(text)) else frozenset()


def literal_parts(text: str) -> tuple[str, ...]:
    """Return the parts of a pasted message before, between and behind its values; none of any other query.

    Of `Received unregistered task of type 'shop.pay'` a program has the words before the value.
    """
    body = _body(text)
    parts = tuple(part for one in _VALUE.split(body) if (part := one.strip(_AROUND)) and _WORD.search(part))
    is_message = parts != (text.strip(_AROUND),)  # it has values, or begins like one
    plain = [word for part in parts for word in _PLAIN_WORD.findall(part)]
    telling = sum(not is_stop_word(word) for word in plain)
    is_long_enough = LEAST_OUTSIDE <= sum(len(_WORD.findall(part)) for part in parts) <= MOST_OUTSIDE
    return parts if is_message and is_long_enough and telling >= LEAST_TELLING else ()


def saying(text: str) -> Callable[[str], bool] | None:
    """Return a test whether a text holds a pasted message, whatever its values; None for any other query.

    The text must have the parts of the message, each soon after the one before. In the place of values it may
    have no other number: `error 5011 when starting` is another message than `error 5012 when starting`. In
    the place of a value in double quotes it must have something in quotes, or a placeholder: those quotes may
    be a user's, who asks for that phrase. In a question they always are, so a question is no message.
    """
    parts = literal_parts(text)
    if not parts:
        return None
    body, numbers = _body(text).strip(_AROUND), {*_NUMBER.findall(text)}
    quoted = sum(value[0].startswith(('"', "“", "„")) for value in _VALUE.finditer(body))
    if quoted and asks(text, words(text)):
        return None
    form = re.compile(_form(parts, body), re.IGNORECASE)

    def is_like(values: str) -> bool:
        return numbers.issuperset(_NUMBER.findall(values)) and len(_MARK.findall(values)) >= quoted

    def is_said(other: str) -> bool:
        return any(is_like(" ".join(found.groups())) for found in form.finditer(other))

    return is_said


def _body(text: str) -> str:
    """Return what a message says behind who says it, where and how badly."""
    if text.startswith("thread '") and (panic := _PANIC.match(text)):
        said = text[panic.end() :].partition(_ADVICE)[0].strip()
        if panic["place"] or said.startswith("'"):
            return said if panic["place"] else said[1:].rpartition("'")[0]  # its place follows the quotation
    head = _HEAD.match(text)
    return text[head.end() :] if head else text


def _form(parts: Sequence[str], body: str) -> str:
    """Return a pattern of the parts with anything short between them; its groups match the values."""
    first, *rest = (r"[\W_]++".join(map(re.escape, _PLAIN_WORD.findall(part))) for part in parts)
    before = "" if body.startswith(parts[0]) else r"([^\s_]*+[\W_]*+)"
    after = "" if body.endswith(parts[-1]) else r"([\W_]*+[^\W_]*+)"
    # Each part is taken where it stands next: to try all of its places would take forever.
    steps = "".join(rf"(?>({_BETWEEN}){part}\b)" for part in rest)
    return rf"{before}\b{first}\b{steps}{after}"
