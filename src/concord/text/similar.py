"""Which known words are meant by an unknown one? Other letters for umlauts, a hyphen, parts, a correction.

An index holds stems, so a typed word is near a token when either the word or its stem is; what a person is
shown is a word that really stands in a text. Numbers are never near each other: 404 is no misspelt 403.
Forms are alternatives of a word that matches nothing, so no other query can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct

from concord.text.scripts import has_unspaced, is_form
from concord.text.terms import identifier_parts, written
from concord.text.tokens import folded, stem, tokenize
from concord.text.word_lists import is_stop_word

MIN_LETTERS = 3  # of a word, and of a token: shorter ones are near everything
MIN_PART = 4  # letters of a word that is looked for inside others
BEGINS, CONTAINS = 2, 3  # what a longer token counts as, in edits: "kubern" is as far off as two slips
UNSURE = 4  # a stem that only the words it stands for can show to be near: implmentaton, implement
SPELLINGS = 5  # places to look at for the word that a token stands for
ALIKE = 3  # first letters that words must share where not all can be compared
LONGEST = 32  # letters of a word; longer ones are data
SIMILAR = 5  # known words that a correction is chosen from
MAX_WORDS = 4  # of a query that are given forms: who mistypes more has pasted something
LEAST_PART = 4  # letters of a compound's part: shorter words stand in too many others by chance
LEAST_STEM = 3  # letters of a part's stem: iing, of a mistyped settliing, has the stem i, which is everywhere
_MOST_UNSURE = 10
_SPARE = 2  # words that are looked at beyond those asked for: one may be nearer than its stem
_LONGEST_ENDING = 7  # that stemming takes off: ization
_BLOCK = 64  # letters of other scripts stand in blocks of this many code points, small ones together
_LINKS = ("", "s", "es", "n", "en", "e", "er")  # letters between two German words, which belong to neither
_FIRST_PARTS, _LAST_PARTS = ("e", "co", "re", "pre", "non"), ("up", "in", "on", "off", "out")  # of hyphens
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue"}

Parts = tuple[str, ...]
Frequencies = Callable[[Sequence[str]], Mapping[str, int]]
Similar = Callable[[str, int], Sequence[tuple[str, int]]]
# How far a token of an index is from what was typed, minus how many chunks hold it, and the token itself: so
# that the nearest comes first, and then the most frequent.
Near = tuple[int, int, str]


class Typed(Struct, frozen=True):
    """A word as it is compared: folded, its stem, how far off it may be, the stems one edit away."""

    word: str
    root: str
    allowed: int
    one_off: frozenset[str]
    letters: frozenset[str]


def typed(word: str) -> Typed | None:
    """Return a word ready to be compared; None for what is too short, too long, several words or unspaced."""
    tokens = folded(word)
    if len(tokens) != 1 or not MIN_LETTERS <= len(tokens[0]) <= LONGEST or has_unspaced(tokens[0]):
        return None
    letters = len(tokens[0]) - is_form(tokens[0])
    allowed = (letters >= 4) + (letters >= 6)
    one_off = frozenset(tokenize(" ".join(variants(tokens[0])))) if allowed else frozenset[str]()
    return Typed(tokens[0], stem(tokens[0]), allowed, one_off, frozenset(tokens[0]))


def variants(word: str) -> Iterator[str]:
    """Yield the spellings one edit away: a letter left out, swapped with the next, changed or added.

    The first letter stays: hardly anybody mistypes it, and most other words differ in it.
    """
    starts = {ord(letter) // _BLOCK * _BLOCK for letter in word if letter.isalpha() and not word.isascii()}
    codes = (code for start in sorted(starts) for code in range(start, start + _BLOCK))
    alphabet = [*filter(str.islower, map(chr, codes))] or list("abcdefghijklmnopqrstuvwxyz")
    yield word
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        yield from (before + letter + after for letter in alphabet)
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in alphabet if letter != after[0])
        if len(after) > 1 and after[0] != after[1]:
            yield before + after[1] + after[0] + after[2:]


def similar(
    asked: Typed,
    vocabulary: Iterable[tuple[str, int]],
    spellings: Callable[[str], Iterable[str]],
    limit: int,
) -> list[tuple[str, int]]:
    """Return words near the typed one, nearest first, then most frequent, with how many chunks hold each.

    `vocabulary` holds tokens and how many chunks hold each, `spellings` says which words one stands for.
    """
    edits = ((_edits_to(asked, token), -chunks, token) for token, chunks in vocabulary)
    close = ((far, rarity, token) for far, rarity, token in edits if far is not None)
    found = sorted(near for near in close if _is_comparable(asked.word, near[2]))
    sure = [near for near in found if near[0] < UNSURE][: limit + _SPARE]
    if not sure or sure[0][0] > 1:
        sure += [near for near in found if near[0] == UNSURE][:_MOST_UNSURE]
    best = sorted(_shown(asked, near, islice(spellings(near[2]), SPELLINGS)) for near in sure)
    return [(word, -rarity) for far, rarity, word in best if far < UNSURE][:limit]


def _shown(asked: Typed, near: Near, spellings: Iterable[str]) -> Near:
    """Return a token by the nearest of the words that it stands for in texts; they may be nearer than it."""
    far, rarity, token = near
    known = [word.lower() for word in spellings if stem("".join(folded(word))) == token]
    if not known:
        return near
    apart = ((distance(asked.word, "".join(folded(word)), asked.allowed), word) for word in known)
    edits, _, best = min((asked.allowed + 1 if off is None else off, len(word), word) for off, word in apart)
    if edits > asked.allowed:  # the word is a part of it, or two stems happen to be alike: capital, capath
        edits = far if far <= 1 or asked.word in f"{token}e" else UNSURE
    return edits, rarity, best


def distance(word: str, other: str, at_most: int) -> int | None:
    """Return how many letters must be added, left out, changed or swapped with the next; None when more."""
    if abs(len(word) - len(other)) > at_most:
        return None
    row = _last_row(word, other, at_most)
    return row[-1] if row and row[-1] <= at_most else None


def _last_row(word: str, other: str, at_most: int) -> list[int]:
    """Return the edits between a word and each beginning of another; nothing when all are more."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        earlier, before, row = before, row, [i]
        for j, facing in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != facing))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == facing:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > at_most:
            return []
    return row


def _edits_to(asked: Typed, token: str) -> int | None:
    """Return how far a token is from the word, if it is near; the cheap questions come first."""
    if token in asked.one_off:
        return int(token != asked.root)
    word, most = asked.word, asked.allowed
    is_as_long = len(asked.root) - most <= len(token) <= len(word) + most
    # Each edit changes two letters of the set at most: this spares nearly all of the comparisons.
    if is_as_long and len(asked.letters.symmetric_difference(token)) <= 2 * most:
        apart = (distance(form, token, most) for form in {word, asked.root})
        if known := [edits for edits in apart if edits is not None]:
            return min(known)
    # Stemming takes off a final e: database holds base, though databas does not.
    if word in f"{token}e":
        return BEGINS if token.startswith(word) else CONTAINS if len(word) >= MIN_PART else None
    # A token may be near the beginning of the word, the rest of which may be an ending.
    may_end = most > 1 and 0 < len(word) - len(token) <= _LONGEST_ENDING and word[:ALIKE] == token[:ALIKE]
    return UNSURE if may_end and min(_last_row(token, word, most), default=most + 1) <= most else None


def _is_comparable(word: str, token: str) -> bool:
    return (
        len(token) >= MIN_LETTERS
        and is_form(token) == is_form(word)  # parts of a word with signs are no words
        and [*filter(str.isdigit, word)] == [*filter(str.isdigit, token)]
        and any(map(str.isalpha, token))
        and not has_unspaced(token)
    )


def forms_of(
    words: Iterable[str],
    frequencies: Frequencies,
    similar: Similar,
    is_word: Callable[[str], bool],
) -> dict[str, Parts]:
    """Return for each unknown word the known ones that it is searched by; none for what has no form.

    `is_word` says what is a word of the model's language: bread is no mistyped read.
    """
    chosen = sorted((word for word in words if not has_unspaced(word)), key=len)[-MAX_WORDS:]
    ways = {word: [*_respelt(word), *_apart(word)] for word in chosen}
    wanted = {part for parts in ways.values() for way in parts for part in way}
    held = {part for part, count in frequencies([*wanted]).items() if count} if wanted else set()
    forms = {word: _known_parts(word, parts, held) for word, parts in ways.items()}
    for word, parts in forms.items():
        is_compound = len(parts) == 2 and word.isalpha()
        if is_compound and not all(_is_written(part, similar, is_word) for part in parts):
            forms[word] = parts = ()
        if not parts and not is_word(word.casefold()):
            forms[word] = _correction(written(word), similar(word, SIMILAR))
    return {word: form for word, form in forms.items() if form}


def _is_written(part: str, similar: Similar, is_word: Callable[[str], bool]) -> bool:
    """Whether a part is itself a known word: texts with "relied" hold the stem reli, which is none."""
    spellings = ("".join(folded(known)) for known, _ in similar(part, SIMILAR))
    return is_word(part) or any(map(part.startswith, spellings))


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


def splits(word: str) -> Iterator[Parts]:
    """Yield the pairs that a word may be made of, folded; nothing for what is not one word of letters."""
    token, *others = folded(word) or [""]
    if others or len(token) > LONGEST or not token.isalpha() or has_unspaced(word):
        return
    for end in range(LEAST_PART, len(token) - LEAST_PART + 1):
        for begin in (end + len(link) for link in _LINKS if token.startswith(link, end)):
            parts = token[:end], token[begin:]
            if all(len(part) >= LEAST_PART and len(stem(part)) >= LEAST_STEM for part in parts):
                yield parts


def _known_parts(word: str, ways: Sequence[Parts], held: set[str]) -> Parts:
    """Return the known parts; of a glued token the number counts and the letters may be missing."""
    if any(map(str.isdigit, word)):
        known = tuple(part for part in (*ways, ())[0] if part in held)
        return known if any(part.isdigit() for part in known) else ()
    return likeliest([way for way in ways if len(way) <= 2], held)


def likeliest(ways: Iterable[Parts], known: set[str]) -> Parts:
    """Return the known words with the fewest letters left out, and of those the most even ones."""
    whole = (parts for parts in ways if known.issuperset(parts))
    return max(whole, key=lambda parts: (sum(map(len, parts)), min(map(len, parts))), default=())


def _correction(word: str, similar: Sequence[tuple[str, int]]) -> Parts:
    """Return the nearest known word, if it is near enough to be meant."""
    apart = {known: edits for known, _ in similar if (edits := _edits(word, known)) is not None}
    return (min(apart, key=lambda known: apart[known]),) if apart else ()


def is_mistyped(word: str, known: str) -> bool:
    """Whether one word is another, mistyped: its first letter is right, and it is few edits off."""
    return _edits(word, known) is not None


def _edits(word: str, known: str) -> int | None:
    """Return how far a known word is from what was typed; None if it is another word."""
    word, known = "".join(folded(word)), "".join(folded(known))
    most = (len(word) >= 5) + (len(word) >= 8)
    if not most or word[:1] != known[:1] or is_stop_word(known) or any(map(str.isdigit, word)):
        return None
    return distance(word, known, most)
