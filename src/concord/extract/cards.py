"""Calendars and contacts (.ics, .vcf), and subtitles (.srt, .vtt), in plain words.

Each event, task or person is a section: in the file, lines are folded within words, and times are written as
20260131T090000. Of subtitles remains what is said, with the time of each minute. Each line knows which line
of the file it comes from.
"""

from __future__ import annotations

import html
import quopri
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import NamedTuple

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import escaped
from concord.extract.text import readable
from concord.text.clean import clean
from concord.text.word_lists import paired
from concord.types import Extracted

_PROPERTY = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:;\"]*(?:\"[^\"]*\"[^:;\"]*)*)*):(.*)", re.DOTALL)
_CARDS = frozenset({"VEVENT", "VTODO", "VJOURNAL", "VCARD"})
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?\d\d)?(Z?))?$")
_ZONE = re.compile(r";TZID=\"?([^;:\"]+)", re.IGNORECASE)
_PERSON = re.compile(r";CN=(?:\"([^\"]+)\"|([^;:\"]+))", re.IGNORECASE)
_IN_HEX = "QUOTED-PRINTABLE"  # as telephones write whatever is not ASCII
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_TITLES = ("SUMMARY", "FN", "N")  # the first that a card has
_MOMENTS = frozenset({"DTSTART", "DTEND", "DUE", "COMPLETED", "BDAY", "ANNIVERSARY"})
# What is shown of a card, and what it is called; a description and a note have no name before them.
_NAMES = paired("""
DTSTART Starts DTEND Ends DURATION Lasts DUE Due COMPLETED Completed RRULE Repeats LOCATION Where
ORGANIZER Organizer ATTENDEE Attendee STATUS Status CATEGORIES Categories URL Link NICKNAME Nickname
ORG Organisation TITLE Title ROLE Role TEL Phone EMAIL E-mail ADR Address BDAY Birthday
ANNIVERSARY Anniversary
""") | {"DESCRIPTION": "", "NOTE": ""}
_PARTED = frozenset({"ADR", "ORG"})  # their values have parts, with semicolons between them
_SCHEME = re.compile(r"(?:mailto|tel):", re.IGNORECASE)


class _Property(NamedTuple):
    name: str
    parameters: str
    value: str
    line: int  # of the file, on which it begins


class CardsExtractor(Extractor):
    """Reads .ics and .vcf: events, tasks and people; a file without any is data as it is."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        text = readable(data)
        lines = [line for card in _cards(_unfolded(text)) for line in _written(card)]
        if not lines:
            return Extracted(clean(text), "data")
        said = clean("\n".join(line for line, _ in lines))
        return Extracted(said, "markdown", file_lines=tuple(number for _, number in lines), language="cards")


def _unfolded(text: str) -> Iterator[_Property]:
    """Yield the properties of a file, each on one line."""
    whole: list[str] = []
    first = 1
    is_in_hex = False  # then a line that ends with = goes on
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if is_in_hex and whole[-1].endswith("="):
            whole[-1:] = [whole[-1][:-1], line]
        elif line[:1] in (" ", "\t") and whole:
            whole.append(line[1:])
        else:
            if found := _PROPERTY.fullmatch("".join(whole)):
                yield _Property(found[1].upper(), found[2], _value(found[2], found[3]).strip(), first)
            whole, first = [line], number
            is_in_hex = _IN_HEX in line.partition(":")[0].upper()


def _value(parameters: str, written: str) -> str:
    if _IN_HEX not in parameters.upper():
        return written
    return with_plain_newlines(decode(quopri.decodestring(written.encode())))


def _cards(properties: Iterator[_Property]) -> Iterator[list[_Property]]:
    """Yield what is said of each event, task and person; not of alarms and time zones within."""
    card: list[_Property] = []
    is_taken = False
    for item in properties:
        if item.name not in ("BEGIN", "END"):
            card += [item] if is_taken else []
            continue
        is_card = item.value.upper() in _CARDS
        if is_card and item.name == "END":
            yield card
        card = [] if is_card else card
        is_taken = is_card == (item.name == "BEGIN")  # within a card, and again behind an alarm


def _written(card: Sequence[_Property]) -> Iterator[tuple[str, int]]:
    """Yield the lines of a card: its title as a heading, and then what is said, a line each."""
    titles = [item for item in card if item.name in _TITLES and item.value]
    title = min(titles, key=lambda item: _TITLES.index(item.name), default=None)
    said = [(item, words) for item in card if item.name in _NAMES and (words := _words(item))]
    if title is None and not said:
        return
    first = title.line if title else said[0][0].line
    yield f"## {' '.join(_plain(title.value).replace(';', ' ').split()) if title else '(no title)'}", first
    yield "", first
    for item, words in said:
        name = _NAMES[item.name]
        for line in words.split("\n"):
            yield (f"- {name}: {line}" if name else escaped(line)), item.line
    yield "", card[-1].line


def _words(item: _Property) -> str:
    if "ENCODING=B" in item.parameters.upper():
        return ""  # a picture or a sound
    value = item.value
    if item.name in _MOMENTS and (found := _MOMENT.match(value)):
        return _moment(found, item.parameters)
    if item.name in _PARTED:
        value = ", ".join(part for part in value.split(";") if part.strip())
    person = _PERSON.search(item.parameters)
    who = f"{(person[1] or person[2]).strip()}, " if person else ""
    return (who + _plain(_SCHEME.sub("", value, count=1))).strip()


def _moment(found: re.Match[str], parameters: str) -> str:
    year, month, day, hour, minute, utc = found.groups()
    zone = _ZONE.search(parameters)
    where = " UTC" if utc else f" {zone[1]}" if zone else ""
    return f"{year}-{month}-{day}" + (f" {hour}:{minute}{where}" if hour else "")


def _plain(value: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


PARAGRAPH_S = 60

_TIMES = re.compile(r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,]\d{1,3}[ \t]+-->[ \t]")
# Possessive, and never beyond the next tag: a line of nothing but beginnings of tags would take minutes.
_VOICE = re.compile(r"<v(?:\.[^ \t<>]*+)?[ \t]++([^<>]++)>")
# Of WebVTT and HTML, and positions of other players. "x < 3 and y > 1" is said.
_TAG = re.compile(r"</?(?![\s/])[^<>]*+>|\{\\[^{}]*+\}")


class SubtitlesExtractor(Extractor):
    """Reads .srt and .vtt: what is said; a file without a single cue is text as it is."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        text = readable(data)
        lines = list(_paragraphs(_spoken(text.split("\n"), is_vtt=text.startswith("WEBVTT"))))
        if not lines:
            return Extracted(clean(text), "text")
        said = clean("\n".join(line for line, _ in lines))
        return Extracted(said, "text", file_lines=tuple(number for _, number in lines))


def _spoken(lines: list[str], *, is_vtt: bool) -> Iterator[tuple[int, str, int]]:
    """Yield what is said, with the second at which its cue begins and its line of the file.

    In WebVTT a blank line ends a cue, and remarks may follow. Elsewhere people leave lines blank.
    """
    second: int | None = None
    last = ""
    for number, line in enumerate(map(str.strip, lines), 1):
        if found := _TIMES.match(line):
            hours, minutes, seconds = (int(part or 0) for part in found.groups())
            second = hours * 3600 + minutes * 60 + seconds
        elif not line:
            second = None if is_vtt else second
        elif second is not None and not line.isdecimal():  # a number of a cue
            spoken = " ".join(html.unescape(_TAG.sub("", _VOICE.sub(r"\1: ", line))).split())
            if spoken not in ("", last):  # what rolls up is repeated
                yield second, spoken, number
            last = spoken or last


def _paragraphs(spoken: Iterator[tuple[int, str, int]]) -> Iterator[tuple[str, int]]:
    """Yield lines of text, with those of the file; each minute begins with its time."""
    begun = -PARAGRAPH_S
    for count, (second, text, number) in enumerate(spoken):
        if 0 <= second - begun < PARAGRAPH_S:
            yield text, number
            continue
        begun = second
        yield from [("", number)] * (count > 0)
        yield f"[{timedelta(seconds=second)}] {text}", number
