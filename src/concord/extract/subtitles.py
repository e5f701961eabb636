"""Subtitles and transcripts: what is said, without the clockwork, each line with its line of the file.

What is said within a minute is a paragraph that begins with its time: numbers and times of every cue would be
most of a chunk. Transcripts that are made by machine say each line two or three times, as it rolls up.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from concord.extract.plain import readable
from concord.text.clean import clean
from concord.types import Extracted

PARAGRAPH_S = 60

_WEBVTT = "WEBVTT"
_TIMES = re.compile(
    r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,]\d{1,3}[ \t]+-->[ \t]+(?:\d{1,4}:)?\d{1,2}:\d{1,2}[.,]\d{1,3}"
)
# Possessive, and never beyond the next tag: a line of nothing but beginnings of tags would take minutes.
_VOICE = re.compile(r"<v(?:\.[^ \t<>]*+)?[ \t]++([^<>]++)>")
# Of WebVTT and HTML, and positions of other players. "x < 3 and y > 1" is said.
_TAG = re.compile(r"</?(?![\s/])[^<>]*+>|\{\\[^{}]*+\}")


class _Cue(NamedTuple):
    second: int
    text: str
    line: int  # of the file


class SubtitlesExtractor:
    """Reads .srt and .vtt."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return what is said; a file without a single cue is text as it is."""
        text = readable(data)
        spoken = _cues(text.split("\n"), ends_at_blank=text.startswith(_WEBVTT))
        cues = list(_without_repetitions(spoken))
        if not cues:
            return Extracted(clean(text), "text")
        lines = list(_paragraphs(cues))
        said = clean("\n".join(line for line, _ in lines))
        return Extracted(said, "text", file_lines=tuple(number for _, number in lines))


def _cues(lines: list[str], *, ends_at_blank: bool) -> Iterator[_Cue]:
    """Yield the lines that are said, each with the time at which its cue begins.

    In WebVTT a blank line ends a cue, and remarks may follow. Elsewhere what follows is said, up to the
    number of the next cue: people leave lines blank.
    """
    second: int | None = None
    numbers = _numbers(lines)
    for index, line in enumerate(lines):
        if found := _TIMES.match(line.strip()):
            hours, minutes, seconds = (int(part or 0) for part in found.groups())
            second = hours * 3600 + minutes * 60 + seconds
        elif index in numbers or (ends_at_blank and not line.strip()):
            second = None  # what follows is a name or a remark, until the next time
        elif second is not None and (said := _said(line)):
            yield _Cue(second, said, index + 1)


def _numbers(lines: list[str]) -> set[int]:
    """Return which lines are numbers of cues: below a blank one, and the last before a time."""
    found: set[int] = set()
    last = 0  # that is not blank
    for index, line in enumerate(lines):
        is_below_blank = last == 0 or not lines[last - 1].strip()
        if is_below_blank and _TIMES.match(line.strip()) and lines[last].strip().isdecimal():
            found.add(last)
        last = index if line.strip() else last
    return found


def _said(line: str) -> str:
    spoken = _TAG.sub("", _VOICE.sub(r"\1: ", line))
    return " ".join(html.unescape(spoken).split())


def _without_repetitions(cues: Iterator[_Cue]) -> Iterator[_Cue]:
    last = ""
    for cue in cues:
        if cue.text != last:
            yield cue
        last = cue.text


def _paragraphs(cues: list[_Cue]) -> Iterator[tuple[str, int]]:
    """Yield the lines of the text, and those of the file that they come from."""
    begun: int | None = None
    for cue in cues:
        if begun is None or not 0 <= cue.second - begun < PARAGRAPH_S:
            if begun is not None:
                yield "", cue.line
            begun = cue.second
            yield f"[{_clock(begun)}] {cue.text}", cue.line
        else:
            yield cue.text, cue.line


def _clock(second: int) -> str:
    minutes, seconds = divmod(second, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
