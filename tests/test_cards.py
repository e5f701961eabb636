"""Calendars and contacts: what people read of them, in words, with the lines of the file."""

from __future__ import annotations

from pathlib import Path

from concord.extractors.cards import CardsExtractor
from concord.types import Extracted
from support.recorders import write
from support.small_library import opened

CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VTIMEZONE
BEGIN:STANDARD
DTSTART:19701025T030000
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:1@example.org
DTSTART;TZID=Europe/Berlin:20261120T090000
DTEND:20261120T083000Z
SUMMARY:Dentist\\, Dr. Br
 aun
LOCATION:Hauptstr. 5\\, Kiel
DESCRIPTION:Bring the card.\\n# Be on time.
ORGANIZER;CN="Ann: the boss":mailto:ann@example.org
BEGIN:VALARM
DESCRIPTION:Reminder
END:VALARM
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20261224
END:VEVENT
END:VCALENDAR
"""
CARD = """BEGIN:VCARD
VERSION:3.0
N:Lindholm;Greta;;;
FN:Greta Lindholm
ORG:Harbour;Pilots
item1.TEL;TYPE=CELL:+46 70 123 45 67
ADR;TYPE=HOME:;;Storgatan 1;Visby;;62156;Sweden
BDAY:1981-03-02
PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQSkZJRg
NOTE;ENCODING=B:AAAA
END:VCARD
"""


def read(text: str) -> Extracted:
    return CardsExtractor().extract(text.replace("\n", "\r\n").encode(), "a.ics")


def test_an_event_is_a_section_in_words_without_its_alarms_and_time_zones():
    extracted = read(CALENDAR)
    assert extracted.text.strip() == (
        "## Dentist, Dr. Braun\n\n- Starts: 2026-11-20 09:00 Europe/Berlin\n- Ends: 2026-11-20 08:30 UTC\n"
        "- Where: Hauptstr. 5, Kiel\nBring the card.\n\\# Be on time.\n- Organizer: ann@example.org\n\n"
        "## (no title)\n\n- Starts: 2026-12-24"
    )
    lines = dict(zip(extracted.text.split("\n"), extracted.file_lines, strict=True))
    assert (lines["## Dentist, Dr. Braun"], lines["- Where: Hauptstr. 5, Kiel"]) == (12, 14)
    assert extracted.type == "markdown"


def test_a_contact_is_told_without_its_picture():
    assert read(CARD).text.strip() == (
        "## Greta Lindholm\n\n- Organisation: Harbour, Pilots\n- Phone: +46 70 123 45 67\n"
        "- Address: Storgatan 1, Visby, 62156, Sweden\n- Birthday: 1981-03-02"
    )


def test_what_holds_neither_event_nor_person_is_data_as_it_is():
    assert (read("BEGIN:VCALENDAR\nEND:VCALENDAR").type, read("no card").text) == ("data", "no card")
    assert read("BEGIN:VEVENT\nSUMMARY:cut off").type == "data"
    assert read('DTSTART;X="' + '"' * 20_000 + "\n" + "A;" * 20_000).type == "data"


def test_an_event_is_found_by_its_day(tmp_path: Path):
    write(tmp_path / "home" / "calendar.ics", CALENDAR)
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "home")
        first = kb.search("dentist on 20 November 2026").hits[0]
    assert "Dentist, Dr. Braun" in first.chunk.text
