"""Replies that are kept as files: making what varies in them the same, comparing them, renewing them.

KB_TEST_RENEW=1 writes the files anew. Even then a key that a file has must still be there: delete the file
first if a key is meant to go.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from concord import __version__

GOLDEN = Path(__file__).parent.parent / "golden"
RENEW = "KB_TEST_RENEW"

# Times, durations, sizes on the disk and secrets; and the generation, because a file that was saved within
# two seconds of being read is read again by the next sync. An object below such a key keeps its keys.
_VARIES = re.compile(r"(?:.*_)?(?:ms|s|at|size_bytes|token|checksum|generation)")
# Objects whose keys are data: stages, chunks, reasons, kinds, and what a user wrote.
_MAPS = frozenset({"timings_ms", "agreement_scores", "skipped", "types", "query_types", "details"})
_IDS = re.compile(r"\b(?:[0-9a-f]{16}|[0-9a-f]{12})\b")
_SHORT_IDS = re.compile(r"(?<=-)[0-9a-f]{6}\b")  # in the paths of notes: the beginning of an id
_TEXTS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\d{8}-\d{6}\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?= (?:ms|s|kB|MB)\b)|(?<=\bgeneration )\d+"), "<number>"),
    (re.compile(re.escape(__version__)), "<version>"),
)
_DIGITS = 4  # of a score: what is left of them depends on the processor


class Normaliser:
    """Replaces what differs from run to run. Ids are numbered as they are met: who names whom stays."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._numbers: dict[str, int] = {}

    def __call__(self, value: Any) -> Any:
        """Return a JSON value with placeholders."""
        if isinstance(value, dict):
            return {
                self._text(key): _typed(item) if _VARIES.fullmatch(key) else self(item)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self(item) for item in value]
        if isinstance(value, float):
            return float(f"{value:.{_DIGITS}g}")
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        text = text.replace(self._folder, "<folder>")
        for pattern, placeholder in _TEXTS:
            text = pattern.sub(placeholder, text)
        return _SHORT_IDS.sub(self._short_id, _IDS.sub(self._id, text))

    def _id(self, match: re.Match[str]) -> str:
        number = self._numbers.setdefault(match[0], len(self._numbers) + 1)
        return f"<id {number}>"

    def _short_id(self, match: re.Match[str]) -> str:
        ids = (f"<id {number}>" for known, number in self._numbers.items() if known.startswith(match[0]))
        return next(ids, match[0])


def _typed(value: Any) -> Any:
    """Return a placeholder that tells of which type a value is."""
    if isinstance(value, dict):
        return {key: _typed(item) for key, item in sorted(value.items())}  # stages: in the order they ended
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return None if value is None else f"<{type(value).__name__}>"


def assert_golden(path: Path, reply: Any) -> None:
    """Assert that a reply is the one in a file and has all of its keys; write the file when renewing."""
    if path.exists():
        lost = sorted(set(keys(_read(path))) - set(keys(reply)))
        assert not lost, f"keys are only ever added, and the reply lacks keys of {path.name}: {lost}"
    if os.environ.get(RENEW):
        path.write_text(_text(reply), encoding="utf-8")
    assert path.exists(), f"{path.name} is missing: {RENEW}=1 writes it"
    lines = difflib.unified_diff(_text(_read(path)).splitlines(), _text(reply).splitlines(), "file", "reply")
    assert reply == _read(path), "\n".join([f"{path.name} differs ({RENEW}=1 renews it)", *lines])


def keys(value: Any, place: str = "") -> Iterator[str]:
    """Yield where each key of a JSON value is; items of a list share one place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{place}.{key}"
            if key not in _MAPS:
                yield from keys(item, f"{place}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from keys(item, f"{place}[]")


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _text(reply: Any) -> str:
    return json.dumps(reply, indent=1, ensure_ascii=False) + "\n"
