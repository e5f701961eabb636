"""Which lines of which files does a text name? As compilers, tracebacks and citations write them.

`src/client.py:311`, `client.py:311:8`, `client.py#L311`, `File "/srv/client.py", line 311`, and the path of a
file alone, where that is the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from concord.text.citation import Citation
from concord.text.tokens import pattern

LONGEST = 400  # characters of a path; what is longer is none
_AROUND = "\"'`“”‘’()[]<>{},;!?"
_FILE = pattern(r"(?:[^:]*[/\\])?[^:/\\]*[\w\])]\.[A-Za-z]\w{0,9}")
_LINE = pattern(r"(?P<path>.+?)(?::|#L)(?P<first>[0-9]{1,7})(?:-L?(?P<last>[0-9]{1,7}))?(?::[0-9]+)?:?")
_LAST_FRAME_FIRST = "most recent call last"
_HOST = pattern(r"[\w.-]+\.(?:com|org|net|io|edu|gov|local)", re.IGNORECASE)  # with a port: example.com:80
_PRODUCT = pattern(r"[\w.-]+\.(?:js|net|io|ai)", re.IGNORECASE)  # Node.js is more often that than a file
MOST_BESIDE = 6  # words beside a place that is what a query asks for


def places_in(text: str) -> list[Citation]:
    """Return the places that a text names, the likeliest first: where a program has failed."""
    if not any(mark in text for mark in ".:#"):
        return []
    words = [word.strip(_AROUND) for word in text.split()]
    if len(words) == 1 and _is_file(words[0]) and not _PRODUCT.fullmatch(words[0]):
        return [Citation(words[0].replace("\\", "/"))]
    places = list(dict.fromkeys([*_joined(words), *_apart(words)]))
    is_printed = "\n" in text.strip() or bool(places) and _begins_with(places[0], words)
    if not is_printed and len(words) > MOST_BESIDE + 1:
        return []  # a question that only mentions one
    return places[::-1] if _LAST_FRAME_FIRST in text else places


def _joined(words: Sequence[str]) -> Iterator[Citation]:
    """Yield places that are one word: client.py:311."""
    for word in words:
        found = _LINE.fullmatch(word) if len(word) <= LONGEST else None
        if found and _is_file(found["path"]) and not _HOST.fullmatch(found["path"]):
            yield _lines(found["path"], int(found["first"]), int(found["last"] or found["first"]))


def _apart(words: Sequence[str]) -> Iterator[Citation]:
    """Yield places in several words: client.py, line 311; line 311 of client.py."""
    for at, word in enumerate(words):
        number = words[at + 1].rstrip(".:") if word.lower() == "line" and at + 1 < len(words) else ""
        if not number.isdecimal() or len(number) > 7:
            continue
        before, after = words[at - 1] if at else "", words[at + 3] if at + 3 < len(words) else ""
        path = before if _is_file(before) else after if words[at + 2 : at + 3] in (["of"], ["in"]) else ""
        if _is_file(path):
            yield _lines(path, int(number), int(number))


def _begins_with(place: Citation, words: Sequence[str]) -> bool:
    """Whether a text begins with a place, as what a compiler or a traceback prints does."""
    return any(word.replace("\\", "/").startswith(place.path) for word in words[:2])


def _lines(path: str, first: int, last: int) -> Citation:
    return Citation(path.replace("\\", "/"), lines=(first, max(first, last)))


def _is_file(word: str) -> bool:
    return len(word) <= LONGEST and _FILE.fullmatch(word) is not None
