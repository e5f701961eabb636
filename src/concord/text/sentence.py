"""Where sentences begin: abbreviations, initials, decimals and the full stops of scripts without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A mark that may end a sentence, with the quotes and brackets that close after it, then white space; in
# scripts that write no spaces the mark alone is enough.
_END = re.compile(r"""(?:(?<![.!?…])[.!?…]++["'”’»)\]]*+(?=\s)|[。！？｡]+[」』”’）】]*+|[।॥؟۔](?=\s))\s*""")
_LAST_WORD = re.compile(r"(?:^|(?<=[\s(\[\"'“‘]))[^\s(\[\"'“‘]*\Z")
_LONGEST_ABBREVIATION = 10

# English and German; an abbreviation that is missing costs one clumsy cut, no more.
_ABBREVIATION_ROWS = (
    "mr mrs ms dr prof rev hon st sr jr gen col sgt capt lt mt vs etc e.g i.e cf viz al approx dept univ inc "
    "ltd co corp bros eds trans jan feb apr jun jul aug sep sept oct nov dec mon tue wed thu fri a.m p.m u.s "
    "u.k ph.d z.b d.h u.a bzw usw ca vgl hrsg bspw ggf evtl inkl zzgl"
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_ROWS.split())
_BEFORE_NUMBERS = frozenset(
    ("no", "nos", "fig", "figs", "eq", "eqs", "sec", "ch", "chap", "vol", "vols", "p", "pp", "tab", "app")
    + ("art", "par", "ref", "refs", "nr", "bd", "abb", "s")
)


def sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where each sentence of text[start:end] but the first begins."""
    for mark in _END.finditer(text, start, end):
        after = mark.end()
        if (
            after < end
            and not text[after].islower()
            and not _is_abbreviated(text, start, mark.start(), text[after])
        ):
            yield after


def _is_abbreviated(text: str, start: int, mark: int, following: str) -> bool:
    """Whether the full stop at `mark` belongs to the word before it: e.g., Dr., J., or the 3. of a list."""
    if text[mark] != ".":
        return False
    found = _LAST_WORD.search(text, max(start, mark - _LONGEST_ABBREVIATION), mark)
    if not found:
        return False
    word = found[0].lower()
    if word.isdigit():
        return found.start() == start or text[found.start() - 1] == "\n"
    if word in _BEFORE_NUMBERS and following.isdigit():
        return True
    return word in _ABBREVIATIONS or (len(word) == 1 and text[mark - 1].isupper())
