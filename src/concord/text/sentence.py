"""Where sentences begin: abbreviations, initials, decimals and the full stops of scripts without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A mark that may end a sentence, with the quotes and brackets that close after it, then white space; in
# scripts that write no spaces the mark alone is enough.
_END = re.compile(r"""(?:[.!?…]+["'”’»)\]]*+(?=\s)|[。！？｡]+[」』”’）】]*+|[।॥؟۔](?=\s))\s*""")
_LAST_WORD = re.compile(r"(?:^|(?<=[\s(\[\"'“‘]))[^\s(\[\"'“‘]*\Z")
_LONGEST_ABBREVIATION = 10

# English and German; an abbreviation that is missing costs one clumsy cut, no more.
_ABBREVIATION_ROWS = (
    "mr mrs ms dr prof rev hon st sr jr gen col sgt capt lt mt vs etc e.g i.e cf viz al approx est dept "
    "univ inc ltd co corp bros fig figs eq eqs sec ch chap vol vols no nos pp p ed eds trans repr ref "
    "refs tab app jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun a.m p.m "
    "u.s u.k ph.d z.b d.h u.a bzw usw ca vgl nr bd abb hrsg s bspw ggf evtl inkl zzgl "
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_ROWS.split())


def sentence_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where each sentence of text[start:end] but the first begins."""
    for mark in _END.finditer(text, start, end):
        after = mark.end()
        if after < end and not text[after].islower() and not _is_abbreviated(text, start, mark.start()):
            yield after


def _is_abbreviated(text: str, start: int, mark: int) -> bool:
    """Whether the full stop at `mark` belongs to the word before it: e.g., Dr., J., or the 3. of a list."""
    if text[mark] != ".":
        return False
    found = _LAST_WORD.search(text, max(start, mark - _LONGEST_ABBREVIATION), mark)
    word = found[0] if found else ""
    if word.isdigit():
        return found is not None and (found.start() == start or text[found.start() - 1] == "\n")
    return word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word.isupper())
