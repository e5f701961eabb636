"""Calendars and contacts (.ics, .vcf), and subtitles (.srt, .vtt), in plain words.

Each event, task or person is a section. In the file, long lines are folded, even within a word, and times are
written as 20260131T090000: as it stands, it would be found neither by words nor by days. Of subtitles remains
what is said, with the time of each minute: numbers and times of every cue would be most of a chunk. Each line
knows which line of the file it comes from.
"""

from __future__ import annotations

import html
import quopri
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import escaped
from concord.extract.text import readable
from concord.text.clean import clean
from concord.types import Extracted

_PROPERTY = re.compile(r"(?:[\w-]+\.)?([\w-]+)((?:;[^:;\"]*(?:\"[^\"]*\"[^:;\"]*)*)*):(.*)", re.DOTALL)
_BEGINS = frozenset({"VEVENT", "VTODO", "VJOURNAL", "VCARD"})
_INSIDE = frozenset({"VALARM", "STANDARD", "DAYLIGHT", "VTIMEZONE", "VFREEBUSY"})  # nothing that people read
_MOMENT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?\d\d)?(Z?))?$")
_ZONE = re.compile(r";TZID=\"?([^;:\"]+)", re.IGNORECASE)
_CHARSET = re.compile(r";CHARSET=\"?([^;:\"]+)", re.IGNORECASE)
_PERSON = re.compile(r";CN=(?:\"([^\"]+)\"|([^;:\"]+))", re.IGNORECASE)
_IN_HEX = "QUOTED-PRINTABLE"  # as old telephones write whatever is not ASCII
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_TITLES = ("SUMMARY", "FN")
_MOMENTS = frozenset({"DTSTART", "DTEND", "DUE", "COMPLETED", "BDAY", "ANNIVERSARY"})
_NAMES = {  # property → what it says, in words
    "DTSTART": "Starts",
    "DTEND": "Ends",
    "DURATION": "Lasts",
    "DUE": "Due",
    "COMPLETED": "Completed",
    "RRULE": "Repeats",
    "LOCATION": "Where",
    "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendee",
    "CONTACT": "Contact",
    "RESOURCES": "Resources",
    "STATUS": "Status",
    "CATEGORIES": "Categories",
    "URL": "Link",
    "DESCRIPTION": "",
    "COMMENT": "",
    "NOTE": "",
    "NICKNAME": "Nickname",
    "ORG": "Organisation",
    "TITLE": "Title",
    "ROLE": "Role",
    "TEL": "Phone",
    "EMAIL": "E-mail",
    "IMPP": "Chat",
    "ADR": "Address",
    "BDAY": "Birthday",
    "ANNIVERSARY": "Anniversary",
}
_PARTED = frozenset({"ADR", "ORG", "N"})  # their values have parts, with semicolons between them
_SCHEMES = ("mailto:", "tel:")


class _Line(NamedTuple):
    text: str
    number: int  # the line of the file on which it begins


class _Property(NamedTuple):
    name: str
    parameters: str
    value: str
    line: int


class CardsExtractor:
    """Reads .ics and .vcf."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the events, tasks and people; a file without any is data as it is."""
        text = readable(data)
        lines = [line for card in _cards(_unfolded(text)) for line in _written(card)]
        if not lines:
            return Extracted(clean(text), "data")
        return Extracted(
            clean("\n".join(line.text for line in lines)),
            "markdown",
            file_lines=tuple(line.number for line in lines),
            language="cards",
        )


def _unfolded(text: str) -> Iterator[_Property]:
    """Yield the properties of a file, each on one line."""
    whole: list[str] = []
    first = 1
    is_in_hex = False  # then a line that ends with = goes on
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if is_in_hex and whole[-1].endswith("="):
            whole[-1:] = [whole[-1][:-1], line]
            continue
        if line[:1] in (" ", "\t") and whole:
            whole.append(line[1:])
            continue
        if found := _PROPERTY.fullmatch("".join(whole)):
            yield _Property(found[1].upper(), found[2], _value(found[2], found[3]).strip(), first)
        whole, first = [line], number
        is_in_hex = _IN_HEX in line.partition(":")[0].upper()


def _value(parameters: str, written: str) -> str:
    if _IN_HEX not in parameters.upper():
        return written
    charset = _CHARSET.search(parameters)
    return with_plain_newlines(decode(quopri.decodestring(written.encode()), charset[1] if charset else None))


def _cards(properties: Iterator[_Property]) -> Iterator[list[_Property]]:
    """Yield what is said of each event, task and person; not of alarms and time zones within."""
    card: list[_Property] | None = None
    depth = 0
    for one in properties:
        kind = one.value.upper()
        if one.name in ("BEGIN", "END") and kind in _INSIDE:
            depth = max(0, depth + (1 if one.name == "BEGIN" else -1))
        elif one.name == "BEGIN" and kind in _BEGINS:
            card, depth = [], 0  # an alarm without an end must not hide later events
        elif one.name == "END" and kind in _BEGINS and card is not None:
            yield card
            card = None
        elif card is not None and not depth:
            card.append(one)


def _written(card: Sequence[_Property]) -> Iterator[_Line]:
    """Yield the lines of a card: its title as a heading, and then what is said, a line each."""
    title = next((one for one in card if one.name in _TITLES and one.value), None) or _unformatted(card)
    said = [(one, words) for one in card if one.name in _NAMES and (words := _words(one))]
    if title is None and not said:
        return
    first = title.line if title else said[0][0].line
    yield _Line(f"## {' '.join(_plain(title.value).split()) if title else '(no title)'}", first)
    yield _Line("", first)
    for one, words in said:
        name = _NAMES[one.name]
        for line in words.split("\n"):
            yield _Line(f"- {name}: {line}" if name else escaped(line), one.line)
    yield _Line("", card[-1].line)


def _unformatted(card: Sequence[_Property]) -> _Property | None:
    """Return the name of a person whose card has it in parts only, the family's first."""
    for one in card:
        if one.name == "N" and (parts := [part for part in one.value.split(";")[:2] if part.strip()]):
            return one._replace(value=" ".join(reversed(parts)))
    return None


def _words(one: _Property) -> str:
    if "ENCODING=B" in one.parameters.upper() or one.value.startswith("data:"):
        return ""  # a picture or a sound
    value = one.value
    if one.name in _MOMENTS and (found := _MOMENT.match(value)):
        return _moment(found, one.parameters)
    if one.name in _PARTED:
        value = ", ".join(part for part in value.split(";") if part.strip())
    for scheme in _SCHEMES:
        value = value[len(scheme) :] if value.lower().startswith(scheme) else value
    person = _PERSON.search(one.parameters)
    who = f"{(person[1] or person[2]).strip()}, " if person else ""
    return (who + _plain(value)).strip()


def _moment(found: re.Match[str], parameters: str) -> str:
    year, month, day, hour, minute, utc = found.groups()
    zone = _ZONE.search(parameters)
    where = " UTC" if utc else f" {zone[1]}" if zone else ""
    return f"{year}-{month}-{day}" + (f" {hour}:{minute}{where}" if hour else "")


def _plain(value: str) -> str:
    return _ESCAPED.sub(lambda found: "\n" if found[1] in "nN" else found[1], value)


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
