"""Text made fit for an index. Files with lines keep every line; pages, whose lines are layout, are re-flowed.

Nothing here guesses at content: what cannot be told from layout with certainty stays as it is. Left out are
pictures and files that are written in letters, as base64: they would be most of a file's chunks, and their
letters would be found as words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

from concord.text.tokens import pattern
from concord.text.word_lists import word_list

# Control characters but tab and newline, byte order marks and halves of surrogate pairs.
_ODD = pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ud800-\udfff]")
_TERMINAL_CODES = pattern(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b\n]*+(?:\x07|\x1b\\))")
# Form feeds and other separators: between two words they are a space, elsewhere nothing.
_SEPARATING = pattern(r"(?<=[^\s\x00-\x1f])[\x0b\x0c\x1c-\x1f\x85]+(?=[^\s\x00-\x1f])")
_LONE_SURROGATE = pattern(r"[\ud800-\udfff]")

LEFT_OUT = "…"
MIN_CHARACTERS = 1_000  # of base64; a public key of 4,096 bits has 716, and somebody may want to read it
MIN_ADDRESS = 200  # characters of a `data:` address, which is never anything else
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_AS_RUNS = bytes(ord("x") if byte in _LETTERS else ord(" ") for byte in range(256))
_RUN = b"x" * 60  # encoders fill their lines with 60 letters or more, and no word is as long
_ADDRESS = pattern(rf"(data:[\w.+-]+/[\w.+-]+(?:;[\w.=-]+)*+,)[^\s\"'<>()\\]{{{MIN_ADDRESS},}}+")
# Lines of it, one after another, the last maybe short; in JSON and in code \n may stand for a line's end.
_BASE64 = pattern(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{60,}+(?:(?:\\n|\n[ \t]*+)[A-Za-z0-9+/]{20,}+)*+={0,2}")
_MIXED = pattern(r"(?s)(?=.*?[A-Z])(?=.*?[a-z])(?=.*?[0-9])")

_LIGATURES = dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
# What ends a line where a word was divided: PDFium's marks, soft hyphens, and how OCR reads them.
_DIVISION = pattern(r"(?:[\x02\ufffe\xad]|(?<=[^\W\d_])¬)[ \t]*(?=\r?\n|\r)")
_SOFT_HYPHEN = "\xad"
_LEADERS = pattern(r"(?:[ \t]?[.·]){5,}+[ \t]*+")  # to the page in a table of contents: dots, spaced or not
_MARKS_WITHIN_LINES = pattern(r"[\xad\ufffe](?!\n)")

_WORD = pattern(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_DIVIDED = pattern(r"((?:[^\W\d_]+-)*[^\W\d_]+)[-\u2010\xad]$")
_LONGEST_DIVIDED = 100  # characters: longer is no word, and would be read again from each of its letters
_FIRST_WORD = pattern(r"[^\W\d_]+")
# The page of an entry in a table of contents ends it, too.
_SENTENCE_END = pattern(r"[.!?…:;。！？][\"'”’»)\]]*$|… [ivxlc\d]+$")
_PARAGRAPH_END = pattern(r"[.!?…。！？][\"'”’»)\]]*$")
_ENDS_IN_LOWER_CASE = pattern(r"(?<!\S)[a-zß-öø-ÿ]+,?$")
_MANY_NEWLINES = pattern(r"\n{3,}")
_SPACES = pattern(r"(?<=\S)[ \t]{2,}(?=\S)")
_WIDE_PAGE = 40  # characters; in narrower columns the length of a line tells nothing
_FULL = 0.85  # of the page's width: such a line was broken because it was full
_LONG = 0.6  # a line this long may go on in the next if that begins in the middle of a sentence
_SHORT = 0.75  # a line this short that ends a sentence also ends its paragraph

_EDGE = 3  # lines at the top and as many at the bottom
_LEAST_PAGES = 3
_SHARE = 0.6  # of the pages on which a line must recur
_IN_STEP = 0.8  # of its occurrences whose numbers must fit
_DIGITS = pattern(r"\d+")
_MASK = "\0"  # no clean text has one
_PAGE_NUMBER = pattern(r"(?:page |seite |p\. ?)\0(?: (?:of|von) \0| ?/ ?\0)?|[-–—] ?\0 ?[-–—]")

Vocabulary = Counter[str]  # the words that a document writes within its lines, in lower case
_EdgeLine = tuple[int, int, tuple[int, ...]]  # a line at an edge: which page, which line of it, its numbers


def clean(text: str, *, paged: bool = False) -> str:
    """Return the text in NFC with plain newlines and without control characters; no line comes or goes.

    With `paged`, form feeds part pages whose lines mean nothing, and the text is re-flowed.
    """
    if paged:
        return clean_pages(text.split("\f"))[0]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _ODD.search(text):
        text = _TERMINAL_CODES.sub("", text) if "\x1b" in text else text
        text = _ODD.sub("", without_lone_surrogates(_SEPARATING.sub(" ", text)))
    return unicodedata.normalize("NFC", text)


def without_lone_surrogates(text: str) -> str:
    """Return a text that can be stored: UTF-8 has no form for half a character, as file names may hold.

    The replacement character says that something is lost there and ends no sentence; offsets stay.
    """
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def encodable(text: str) -> str:
    """Return a text that can be sent, with a question mark for half a character, as terminals show names."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def without_encoded(text: str) -> str:
    """Return a text with an ellipsis for all that is base64; no line comes or goes."""
    if "data:" in text:
        text = _ADDRESS.sub(rf"\1{LEFT_OUT}", text)
    # Whether there may be base64: seven times faster than looking for it, and most files have none.
    has_long_run = _RUN in text.encode("utf-8", "replace").translate(_AS_RUNS)
    return _BASE64.sub(_left_out, text) if has_long_run else text


def _left_out(run: re.Match[str]) -> str:
    """Return what stands for a run; one without a mix of letters and digits, as a gene, stays."""
    is_data = len(run[0]) >= MIN_CHARACTERS and _MIXED.match(run[0])
    return LEFT_OUT + "\n" * run[0].count("\n") if is_data else run[0]


def clean_pages(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the text of all pages, re-flowed, and where in it each page begins.

    Headers, footers and page numbers go (the first of each header and footer stays), words that were divided
    at a line's end and sentences that were broken into lines are whole again.
    """
    lines = _without_furniture([*map(_page_lines, pages)])
    vocabulary = Counter(word for page in lines for line in page for word in _WORD.findall(line.lower()))
    parts: list[str] = []
    starts: list[int] = []
    length, before = 0, ""
    for page in (_reflowed(page, vocabulary) for page in lines):
        if page and before:
            parts.append("\n" if _goes_on(before, page) else "\n\n")
            length += len(parts[-1])
        starts.append(length)
        parts.append(page)
        length += len(page)
        before = page or before
    return "".join(parts), tuple(starts)


def _page_lines(page: str) -> list[str]:
    text = clean(_DIVISION.sub(_SOFT_HYPHEN, page).translate(_LIGATURES))
    shown = _LEADERS.sub(" … ", _MARKS_WITHIN_LINES.sub("", text))
    return [line.rstrip() for line in shown.split("\n")]


def _reflowed(lines: Sequence[str], vocabulary: Vocabulary) -> str:
    """Return a page's text: a space where a sentence goes on, blank lines between paragraphs."""
    tidy = [_SPACES.sub(" ", line.strip()) for line in lines]
    lengths = sorted(len(line) for line in tidy if line)
    width = lengths[9 * (len(lengths) - 1) // 10] if lengths else 0  # nine in ten lines do not exceed it
    parts = [part for line, below in pairwise([*tidy, ""]) for part in _seam(line, below, width, vocabulary)]
    return _MANY_NEWLINES.sub("\n\n", "".join(parts)).strip("\n")


def _seam(line: str, below: str, width: int, vocabulary: Vocabulary) -> tuple[str, str]:
    """Return a line as it is written, and what parts it from the next."""
    divided = _DIVIDED.search(line, max(0, len(line) - _LONGEST_DIVIDED))
    right = _FIRST_WORD.match(below)
    if divided and right:
        is_one = line.endswith(_SOFT_HYPHEN) or _is_one_word(divided[1], right[0], vocabulary)
        return (line[:-1] if is_one else line), ""
    line = line.rstrip(_SOFT_HYPHEN)
    if not line or not below:
        return line, "\n"
    if len(line) >= _LONG * width and _goes_on(line, below):
        return line, " "
    if width >= _WIDE_PAGE and len(line) < _SHORT * width and _PARAGRAPH_END.search(line):
        return line, "\n" if below[0].islower() else "\n\n"
    is_full = width >= _WIDE_PAGE and len(line) >= _FULL * width
    begins_name = is_full and below[0].isalpha() and _ENDS_IN_LOWER_CASE.search(line)
    return line, " " if begins_name else "\n"


def _goes_on(line: str, below: str) -> bool:
    """Whether a sentence is broken between two lines: nothing ends, and what follows begins in lower case."""
    return below[:1].islower() and not _SENTENCE_END.search(line, max(0, len(line) - 10))


def _is_one_word(left: str, right: str, vocabulary: Vocabulary) -> bool:
    """Whether a hyphen at a line's end only divides a word; one that belongs to it stays.

    The document is asked first: it mostly writes the same word elsewhere in the middle of a line.
    """
    if right[0].isupper():  # Anglo-Saxon
        return False
    whole, hyphenated = (vocabulary[f"{left}{mark}{right}".lower()] for mark in ("", "-"))
    if whole != hyphenated:
        return whole > hyphenated
    is_compound = "-" in left or left.lower() in word_list("hyphenating")
    return not is_compound and len(left) > 1 and len(right) > 1


def _without_furniture(pages: Sequence[list[str]]) -> list[list[str]]:
    """Return the pages without running headers, footers and page numbers; their first occurrence stays.

    A line at the edge of a page is furniture when it recurs on most pages (or most left or right ones), with
    its numbers either the same everywhere or counting along with the pages: "Report 2021", "Page 3 of 10".
    """
    dropped: set[tuple[int, int]] = set()
    for edge in (slice(_EDGE), slice(-_EDGE, None)):
        lines: defaultdict[str, list[_EdgeLine]] = defaultdict(list)  # by their text with the numbers masked
        for number, page in enumerate(pages):
            for index in [index for index, line in enumerate(page) if line.strip()][edge]:
                text = " ".join(page[index].split()).casefold()
                numbers = tuple(int(digits[-9:]) for digits in _DIGITS.findall(text))
                lines[_DIGITS.sub(_MASK, text)].append((number, index, numbers))
        for mask, seen in lines.items():
            dropped.update((page, index) for page, index, _ in _furniture(mask, seen, len(pages)))
    return [
        [line for index, line in enumerate(page) if (number, index) not in dropped]
        for number, page in enumerate(pages)
    ]


def _furniture(mask: str, seen: Sequence[_EdgeLine], pages: int) -> Sequence[_EdgeLine]:
    """Return which occurrences of a line are to go."""
    if _PAGE_NUMBER.fullmatch(mask):
        return seen
    on = {page for page, _, _ in seen}
    groups = [
        group
        for group in (range(pages), range(0, pages, 2), range(1, pages, 2))
        if len(group) >= _LEAST_PAGES
    ]
    is_running = any(len(on.intersection(group)) >= _SHARE * len(group) for group in groups)
    if len(on) < _LEAST_PAGES or not is_running or not _numbers_fit(seen):
        return ()
    return seen[1:] if any(map(str.isalpha, mask)) else seen


def _numbers_fit(seen: Sequence[_EdgeLine]) -> bool:
    """Whether each number of a line is the same on most pages, or counts along with them."""
    for values in zip(*(numbers for _, _, numbers in seen), strict=True):
        same = Counter(values).most_common(1)[0][1]
        offsets = Counter(value - line[0] for value, line in zip(values, seen, strict=True))
        if max(same, offsets.most_common(1)[0][1]) < _IN_STEP * len(seen):
            return False
    return True
