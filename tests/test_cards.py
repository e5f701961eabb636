"""Calendars and contacts: what people read of them, in words, with the lines of the file."""

from __future__ import annotations

from pathlib import Path

from concord.extract.cards import CardsExtractor
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
        "- Where: Hauptstr. 5, Kiel\nBring the card.\n\\# Be on time.\n"
        "- Organizer: Ann: the boss, ann@example.org\n\n## (no title)\n\n- Starts: 2026-12-24"
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


def test_a_telephone_number_is_no_day():
    assert "- Phone: 20301234\n" in read("BEGIN:VCARD\nFN:Ann\nTEL:20301234\nNOTE:x\nEND:VCARD").text


def test_people_of_an_event_are_named_and_how_long_it_lasts_is_told():
    extracted = read(
        "BEGIN:VEVENT\nSUMMARY:Tea\nDURATION:PT1H\n"
        "ATTENDEE;CN=Jane Doe;ROLE=CHAIR:mailto:jd@x.org\nEND:VEVENT"
    )
    assert extracted.text.strip() == "## Tea\n\n- Lasts: PT1H\n- Attendee: Jane Doe, jd@x.org"


def test_a_card_of_an_old_telephone_is_read_in_letters():
    extracted = read(
        "BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg;;;\n"
        "NOTE;ENCODING=QUOTED-PRINTABLE:likes=0D=0Atëa and =\n=C3=89clairs\nEMAIL:j@x.org\nEND:VCARD"
    )
    assert extracted.text.strip() == "## Müller Jörg\n\nlikes\ntëa and Éclairs\n- E-mail: j@x.org"
    assert extracted.file_lines == (3, 3, 4, 4, 6, 6)


def test_an_alarm_that_never_ends_hides_no_other_event():
    extracted = read(
        "BEGIN:VEVENT\nSUMMARY:One\nBEGIN:VALARM\nEND:VEVENT\nBEGIN:VEVENT\nSUMMARY:Two\nEND:VEVENT"
    )
    assert "## Two" in extracted.text


def test_an_event_is_found_by_its_day(tmp_path: Path):
    write(tmp_path / "home" / "calendar.ics", CALENDAR)
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "home")
        first = kb.search("dentist on 20 November 2026").hits[0]
    assert "Dentist, Dr. Braun" in first.chunk.text


def test_people_stay_apart_each_under_their_name(tmp_path: Path):
    people = "".join(
        f"BEGIN:VCARD\nFN:Anna {n}\nTEL:+49 30 {n}{n}\nEMAIL:p{n}@example.org\nORG:Firm {n}\nEND:VCARD\n"
        for n in range(20)
    )
    write(tmp_path / "home" / "people.vcf", people)
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "home")
        first = kb.search("phone of Anna 7").hits[0].chunk
    assert first.heading == ("Anna 7",)
    assert first.text.count("Anna") == 1
