"""Which known words are meant by an unknown one? Other letters for umlauts, a hyphen, parts, a correction.

Forms are alternatives of a word that matches nothing, so no other query can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from concord.text.scripts import has_unspaced
from concord.text.similar import distance
from concord.text.terms import identifier_parts, written
from concord.text.tokens import folded, stem
from concord.text.word_lists import is_stop_word

MAX_WORDS = 4  # of a query that are given forms: who mistypes more has pasted something
ONE_EDIT_FROM, TWO_EDITS_FROM = 5, 8  # letters of a word that may be one or two edits off
SIMILAR = 5  # known words that a correction is chosen from
LEAST_PART = 4  # letters of a compound's part: shorter words stand in too many others by chance
LEAST_STEM = 3  # letters of a part's stem: iing, of a mistyped settliing, has the stem i, which is everywhere
LONGEST = 32  # letters of a word that is taken apart
_LINKS = ("", "s", "es", "n", "en", "e", "er")  # letters between two German words, which belong to neither
_FIRST_PARTS, _LAST_PARTS = ("e", "co", "re", "pre", "non"), ("up", "in", "on", "off", "out")  # of hyphens
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue"}

Parts = tuple[str, ...]
Frequencies = Callable[[Sequence[str]], Mapping[str, int]]
Similar = Callable[[str, int], Sequence[tuple[str, int]]]


def forms_of(
    words: Iterable[str],
    frequencies: Frequencies,
    similar: Similar,
    is_word: Callable[[str], bool],
    terms: Iterable[str] = (),
) -> dict[str, Parts]:
    """Return for each unknown word the known ones that it is searched by; none for what has no form.

    `is_word` says what is a word of the model's language: bread is no mistyped read. `terms` are the words
    as typed: a part of e-mail may be searched by email.
    """
    chosen = sorted((word for word in words if not has_unspaced(word)), key=len)[-MAX_WORDS:]
    joined = {max(term.split("-"), key=len): term.replace("-", "").lower() for term in terms if "-" in term}
    ways = {word: [*_respelt(word), *_apart(word)] for word in chosen}
    for word in ways.keys() & joined.keys():
        ways[word].append((joined[word],))
    wanted = {part for parts in ways.values() for way in parts for part in way}
    held = {part for part, count in frequencies([*wanted]).items() if count} if wanted else set()
    forms = {word: _known_parts(word, parts, held) for word, parts in ways.items()}
    for word, parts in forms.items():
        is_compound = len(parts) == 2 and word.isalpha()
        if is_compound and not all(_is_written(part, similar, is_word) for part in parts):
            forms[word] = parts = ()
        if not parts and not is_word(word.casefold()):
            forms[word] = tuple(_corrections(written(word), similar(word, SIMILAR)))
    return {word: form for word, form in forms.items() if form}


def _is_written(part: str, similar: Similar, is_word: Callable[[str], bool]) -> bool:
    """Whether a part is itself a known word: texts with "relied" hold the stem reli, which is none."""
    spellings = ("".join(folded(known)) for known, _ in similar(part, SIMILAR))
    return is_word(part) or any(map(part.startswith, spellings))


def is_mistyped(word: str, known: str) -> bool:
    """Whether one word is another, mistyped: its first letter is right, and it is few edits off."""
    return _edits("".join(folded(word)), "".join(folded(known))) is not None


def splits(word: str) -> Iterator[Parts]:
    """Yield the pairs that a word may be made of, folded; nothing for what is not one word of letters."""
    tokens = folded(word)
    if len(tokens) != 1 or len(tokens[0]) > LONGEST or not tokens[0].isalpha() or has_unspaced(word):
        return
    token = tokens[0]
    for end in range(LEAST_PART, len(token) - LEAST_PART + 1):
        for link in _LINKS:
            begin = end + len(link)
            if token.startswith(link, end) and _are_words(parts := (token[:end], token[begin:])):
                yield parts


def likeliest(ways: Iterable[Parts], known: set[str]) -> Parts:
    """Return the known words with the fewest letters left out, and of those the most even ones."""
    whole = (parts for parts in ways if known.issuperset(parts))
    return max(whole, key=lambda parts: (sum(map(len, parts)), min(map(len, parts))), default=())


def _are_words(parts: Parts) -> bool:
    return all(len(part) >= LEAST_PART and len(stem(part)) >= LEAST_STEM for part in parts)


def _respelt(word: str) -> Iterator[Parts]:
    """Yield Mueller for Müller, or else the reverse; e-mail for email."""
    spelt = typed = word.lower()
    for umlaut, letters in _UMLAUTS.items():
        spelt = spelt.replace(umlaut, letters)
    for letters in _UMLAUTS.values() if spelt == typed else ():
        spelt = spelt.replace(letters, letters[0])
    if spelt != typed:
        yield (spelt,)
    yield from ((f"{part}-{typed[len(part) :]}",) for part in _FIRST_PARTS if typed.startswith(part))
    yield from ((f"{typed[: -len(part)]}-{part}",) for part in _LAST_PARTS if typed.endswith(part))


def _apart(word: str) -> list[Parts]:
    """Return the ways to take a word apart: FY2022 at the digits, timezone in two."""
    glued = tuple(part.lower() for part in identifier_parts(word))
    return [glued] if len(glued) > 1 else [*splits(word)]


def _known_parts(word: str, ways: Sequence[Parts], held: set[str]) -> Parts:
    """Return the known parts; of a glued token the number counts and the letters may be missing."""
    if any(map(str.isdigit, word)):
        known = tuple(part for part in (*ways, ())[0] if part in held)
        return known if any(part.isdigit() for part in known) else ()
    return likeliest([way for way in ways if len(way) <= 2], held)


def _corrections(word: str, similar: Sequence[tuple[str, int]]) -> list[str]:
    """Return the nearest known word, if it is near enough to be meant."""
    typed = "".join(folded(word))
    apart = {known: _edits(typed, "".join(folded(known))) for known, _ in similar}
    near = {known: edits for known, edits in apart.items() if edits is not None}
    return [min(near, key=lambda known: near[known])] if near else []


def _edits(typed: str, known: str) -> int | None:
    """Return how far a known word is from what was typed; None if it is another word."""
    most = (len(typed) >= ONE_EDIT_FROM) + (len(typed) >= TWO_EDITS_FROM)
    if not most or typed[:1] != known[:1] or is_stop_word(known) or any(map(str.isdigit, typed)):
        return None
    return distance(typed, known, most)
