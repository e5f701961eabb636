"""From bytes to characters: which encoding a file is in, and whether it holds text at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.extract.decode import decode, looks_binary

SENTENCES = {
    "cp1252": "Die Öffnungszeiten ändern sich häufig, heißt es – “so” geht das für alle.",
    "iso-8859-2": "Příliš žluťoučký kůň úpěl ďábelské ódy. Nechť již hříšné saxofony ďáblů rozezvučí síň.",
    "cp1251": "Съешь ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний.",
    "koi8-r": "Съешь ещё этих мягких французских булок, да выпей чаю. Широкая электрификация южных губерний.",
    "shift_jis": "いろはにほへと ちりぬるを わかよたれそ つねならむ。日本語の文章です。",
    "euc-jp": "いろはにほへと ちりぬるを わかよたれそ つねならむ。日本語の文章です。",
    "gb18030": "知识库搜索是一种本地优先的工具,可以回答问题并引用来源。",
    "big5": "知識庫搜尋是一種本地優先的工具,可以回答問題並引用來源。",
    "euc-kr": "지식 기반 검색은 질문에 답하고 출처를 인용합니다.",
    "cp1253": "Ο κόσμος είναι μεγάλος και η γνώση είναι δύναμη για όλους τους ανθρώπους.",
    "utf-8": "naïve café, 知识库",
    "utf-8-sig": "naïve café, 知识库",
    "utf-16": "naïve café, 知识库",
    "utf-32": "naïve café, 知识库",
}


@pytest.mark.parametrize(("encoding", "sentence"), SENTENCES.items())
def test_text_is_read_in_the_encoding_it_was_written_in(encoding: str, sentence: str):
    data = sentence.encode(encoding)
    assert decode(data) == sentence
    assert not looks_binary(data)


SHORT = {
    "cp1252": [
        "Price list € 20 and “quoted” text\n",
        "Café latin1 marmots",
        "It’s a test",
        "naïve",
        "10 °C outside",
        "voilà une phrase",
        "El niño",
        "15 µm ± 2",
        "Price: £20",
        "© ACME",
        "Grüße aus Köln",
        "Straße 5, 50667 Köln, Tel. 0221",
        "“Hello,” she said. “It’s time we left — the others won’t wait.” He didn’t answer.",
    ],
    "cp1253": ["Καλημέρα"],
    "cp1251": ["Привет мир", "в 5 часов", "И я"],
    "koi8-r": ["Привет мир, как дела"],
    "cp1256": ["مرحبا بالعالم"],
    "cp874": ["สวัสดีครับ"],
    "shift_jis": ["日本語テキスト"],
    "cp850": ["Die Größe der Wärme änderte sich, und die Straße führte über schöne Brücken nach Köln."],
    "mac-roman": ["Le café de la gare était fermé, et l’été les élèves préfèrent la forêt où l’eau est là."],
}


@pytest.mark.parametrize(
    ("encoding", "line"), [(encoding, line) for encoding, lines in SHORT.items() for line in lines]
)
def test_a_line_with_a_few_accents_is_read_as_what_it_likely_is(encoding: str, line: str):
    assert decode(line.encode(encoding)) == line


def test_one_bad_byte_does_not_turn_good_utf8_to_mojibake():
    assert decode("Größe, Wärme, Übung, Straße ".encode() * 3 + b"\xff.") == (
        "Größe, Wärme, Übung, Straße " * 3 + "\ufffd."
    )


def test_a_declared_encoding_is_believed_only_when_it_is_not_utf8():
    assert decode("naïve".encode(), "iso-8859-1") == "naïve"
    assert decode("łódź".encode("iso-8859-2"), "iso-8859-2") == "łódź"
    assert decode("naïve".encode("cp1252"), "no-such-encoding") != ""


@given(st.binary(max_size=300))
@settings(max_examples=200)
def test_any_bytes_become_text_that_can_be_stored(data: bytes):
    assert decode(data).encode("utf-8") is not None


def test_bytes_that_are_no_text_are_known_by_their_controls():
    assert looks_binary(b"ELF\0\1\2")
    assert looks_binary(bytes(range(256)) * 8)
    assert not looks_binary(b"\x1b[31mred\x1b[0m log line\n" * 20)
    assert not looks_binary(b"")
