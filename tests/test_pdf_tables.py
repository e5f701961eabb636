"""Tables of PDFs: a number is told with the name of its column, and what is no table stays as it is."""

from __future__ import annotations

import pytest

from concord.extract.pdf import PdfExtractor
from support.pdf_samples import make_pdf

SALES = ["Region\t2023\t2024", "North\t1,200\t1,350", "Far South\t800\t(90)", "East\t\t75%"]
NAMED = [
    "Region: North; 2023: 1,200; 2024: 1,350.",
    "Region: Far South; 2023: 800; 2024: (90).",
    "Region: East; 2024: 75%.",
]


def read(lines: list[str]) -> str:
    return PdfExtractor().extract(make_pdf([lines]), "a.pdf").text


def test_each_row_of_a_table_names_its_columns():
    told = read(["Sales by region.", *SALES, "All figures are in thousands."])
    written = ["Sales by region.", "Region 2023 2024", *NAMED, "All figures are in thousands."]
    assert [line for line in told.split("\n") if line] == written


@pytest.mark.parametrize(
    "lines",
    [
        [
            "In 1998 they\thad 40 ships",
            "and in 2003\tabout 55 of",
            "them sailed\tto 12 ports",
            "of 3 seas\tin 8 weeks",
        ],
        ["Of 40 ships\tin 12 ports\tand 3 seas", *["some 30 sailed\tfor 8 weeks\tin 2003 alone"] * 4],
        ["1999\tParis\tAnna", "2003\tRome\tBruno", "2007\tOslo\tClara", "2011\tBern\tDavid"],
        ["12\t30\t41", "13\t31\t44", "14\t32\t47", "15\t33\t50"],
        SALES[:3],
    ],
    ids=["two columns of prose", "three columns of prose", "rows alone", "numbers alone", "two rows"],
)
def test_what_is_no_table_stays_as_it_is(lines: list[str]):
    assert read(lines).split() == " ".join(lines).split()


def test_a_row_is_marked_where_it_stands_on_its_page():
    reader, table = PdfExtractor(), make_pdf([SALES])
    plain, first, last = (reader.image(table, 1, 300, row) for row in ("", NAMED[0], NAMED[-1]))
    assert len({plain, first, last}) == 3
