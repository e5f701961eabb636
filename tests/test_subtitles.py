"""Subtitles: what is said, with the time of each minute and the lines of the file."""

from __future__ import annotations

from time import process_time

import pytest

from concord.extract.cards import SubtitlesExtractor
from concord.types import Extracted


def read(text: str) -> Extracted:
    return SubtitlesExtractor().extract(text.encode(), "a.vtt")


def test_numbers_times_and_tags_go_and_each_line_knows_where_it_stood():
    extracted = read(
        "1\n00:00:01,000 --> 00:00:04,000\nThe keeper\n<i>is missing.</i>\n\n"
        "2\n00:00:50,000 --> 00:00:58,500\n{\\an8}Find &amp; call him.\n\n"
        "3\n01:01:02,000 --> 01:01:03,000\nAn hour later.\n"
    )
    assert extracted.text == (
        "[0:00:01] The keeper\nis missing.\nFind & call him.\n\n[1:01:02] An hour later."
    )
    assert extracted.file_lines == (3, 4, 8, 12, 12)


def test_remarks_and_styles_are_not_said_and_voices_have_their_names():
    extracted = read(
        "WEBVTT - a film\n\nSTYLE\n::cue {}\n\nNOTE\nnot said\n\n"
        "intro\n00:01.000 --> 00:04.000 align:start\n<v.loud Anna>Hello<00:02.000><c> there</c>.\n"
    )
    assert extracted.text == "[0:00:01] Anna: Hello there."


def test_a_blank_line_in_a_subtitle_ends_nothing_and_numbers_are_not_said():
    extracted = read(
        "1\n\n00:00:01,000 --> 00:00:02,000\n\nHe said\n\n42\n\n2\n00:00:03,000 --> 00:00:04,000\n7\n\n"
        "00:00:05,000 --> 00:00:06,000\nEnd.\n"
    )
    assert extracted.text == "[0:00:01] He said\nEnd."
    assert extracted.file_lines == (5, 14)


def test_lines_that_roll_up_are_said_once():
    extracted = read(
        "WEBVTT\n\n00:01.000 --> 00:02.000\nso the\n\n00:02.000 --> 00:02.010\nso the\n\n"
        "00:02.010 --> 00:04.000\nso the\nwalrus\n\n00:04.000 --> 00:05.000\nwalrus\nleft\n"
    )
    assert extracted.text == "[0:00:01] so the\nwalrus\nleft"


def test_a_file_without_a_cue_is_text_as_it_is():
    extracted = read("notes on subtitles\n\nnone here")
    assert extracted.text == "notes on subtitles\n\nnone here"
    assert extracted.file_lines == ()


def test_what_is_less_and_greater_is_no_tag():
    extracted = read("1\n00:00:01,000 --> 00:00:02,000\nif x < 3 and <b>y</b> > 1\n")
    assert extracted.text == "[0:00:01] if x < 3 and y > 1"


@pytest.mark.parametrize("line", ["<v." * 70_000, "<v" + " " * 200_000, "{\\" * 100_000, "</" * 100_000])
def test_tags_that_never_end_take_no_time(line: str):
    before = process_time()
    assert read(f"00:01.000 --> 00:02.000\n{line}\n").type == "text"
    assert process_time() - before < 2
