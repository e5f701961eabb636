"""What else is indexed and looked for beside the tokens of `tokens.py`? Decided once, for every backend.

`index_terms` adds what FTS5's tokenizer cannot see: the parts of identifiers (getUserName is get, user and
name; 386DX33 is 386, DX and 33), overlapping pairs of characters of scripts written without
spaces, words with vowel signs as a whole, and words with letters that have no accent to lose (Straße, Łódź)
spelt out. `word_match` looks for a typed word in all of these forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import islice

from concord.text.scripts import (
    characters,
    has_marks,
    has_unspaced,
    is_form,
    is_glued,
    is_plain,
    letters_of,
    narrowed,
    pairs,
    pieces,
    segments,
    unspaced_terms,
    whole_words,
    with_marks,
)
from concord.text.tokens import beyond_ascii, folded, has_undivided, pattern, separated, spelt_out, stem
from concord.text.word_lists import word_list
from concord.types import AllOf, AnyOf, Match, Phrase, Without, Word

MAX_TOKENS = 64  # of one word or phrase; the rest of a longer one could hardly tell two chunks apart
_MIN_COMPLETED_STEM = 4  # shorter stems are other words: commi* would find com
# More parts than this, and shorter on average than that: a hash or a key, not an identifier.
_MANY_PARTS, _SHORT_PART = 4, 2.5
_MAX_CHARACTERS = 80  # longer words are data
# Names that differ in punctuation only; the letter alone would find every C.
_SYMBOL = pattern(r"[+#](?:(?<=\b[CcFf]#)(?!\w)|\+(?<=\b[CcGg]\+\+)(?!\+))")
_SIGNS = ("++", "C#", "c#", "F#", "f#")  # every symbol has one of them; headings of Markdown have none
_SYMBOL_NAMES = {"c++": "cplusplus", "g++": "gplusplus", "c#": "csharp", "f#": "fsharp"}
_CASED = pattern(r"[\u00aa-\u052f\u1e00-\u1eff]")
_VERSION = pattern(r"[vV]?[0-9]+(?:\.[0-9]+)+")
_JOINED = pattern(r"[^\W_]+(?:_+[^\W_]+)+")
_NUMBERED = pattern(r"(?<![\w-])[^\W\d_]+(?:-[^\W_]+)*-[^\W\d_]*\d[^\W_]*(?![\w-])")


def index_terms(text: str) -> str:
    """Return the terms of a text that the tokenizer cannot see, separated by spaces."""
    if is_plain(text):
        terms = [part for token in identifiers_in(text) for part in identifier_parts(token)]
    else:
        terms = list(_terms_by_segment(text))
    # One character is looked for many times faster than two, and most texts hold neither.
    if ("+" in text or "#" in text) and any(sign in text for sign in _SIGNS):
        symbols = _SYMBOL.finditer(text)
        terms += [_SYMBOL_NAMES[text[sign.start() - 1 : sign.end()].lower()] for sign in symbols]
    if has_marks(text):
        terms += whole_words(text)
    if has_undivided(text):
        # Loose matching looks for this form alone, so that Straße and Strasse are one word, equally frequent:
        # it is here twice, because the column of these terms has half the weight of others.
        words = filter(has_undivided, text.split())
        runs = (run for word in words for run in separated(spelt_out(word)) if run not in word)
        terms += [run for run in runs for _ in range(2)]
    return " ".join(terms).lower()


def _terms_by_segment(text: str) -> Iterator[str]:
    for segment in segments(text):
        run = narrowed(segment.text)
        alone = run == segment.text and not is_glued(text, segment.start, segment.end)
        if segment.is_unspaced:
            yield from unspaced_terms(run, alone)
        else:
            if not alone:
                yield run
            yield from identifier_parts(run)


def word_match(word: str, *, prefix: bool = False) -> Match | None:
    """Return the match for a typed word; None if it has no letter or digit.

    Every `Word` is one token and every `Phrase` several, so that all engines agree.
    """
    return _pieces_match(word, prefix) if has_marks(word) else _word_match(word, prefix)


def phrase_match(text: str) -> Match | None:
    """Return the match for a quoted phrase; None if it has no letter or digit.

    Unspaced scripts, words with vowel signs and other words are indexed in different columns, where no engine
    sees that they are neighbours. A phrase that mixes them looks for each run by itself.
    """
    return _pieces_match(text) if has_marks(text) else _phrase_match(text)


def exclusion_match(word: str) -> Match | None:
    """Return the match for an excluded word; excluding C# does not exclude every C."""
    name = _SYMBOL_NAMES.get(word.lower())
    return Word(name) if name else word_match(word)


def loose_words(word: str) -> list[str]:
    """Return the tokens of a typed word that loose matching looks for, each by itself.

    These are the word, split at punctuation; the parts of identifiers; and pairs of characters of unspaced
    scripts. By themselves they find more than as a phrase: nDCG@10 0.651 against 0.636 on link texts to
    documentation, 0.929 against 0.918 on German questions; none of eight collections lost 0.001.
    """
    if not has_marks(word):
        return _loose_words(word)
    tokens = [token for piece in pieces(word) for token in piece.forms or _loose_words(piece.text)]
    return tokens[:MAX_TOKENS]


def written(token: str) -> str:
    """Return a token of `loose_words` as people write it."""
    return letters_of(token) if is_form(token) else with_marks(token)


def loose_match(token: str) -> Match:
    """Return the match for a token of `loose_words`."""
    return Word(token, prefix=has_unspaced(token) and len(characters(token)) == 1)


def searched(match: Match) -> list[str]:
    """Return the words and phrases that a match looks for, as people write them; a prefix as prefix*."""
    if isinstance(match, Without):
        return searched(match.keep)
    if isinstance(match, AnyOf | AllOf):
        return list(dict.fromkeys(text for part in match.parts for text in searched(part)))
    is_prefix = isinstance(match, Word) and match.prefix
    return [written(match.text) + "*" * is_prefix]


def any_of(parts: Sequence[Match]) -> Match | None:
    """Return a match of any of these, without needless nesting; None when there are none."""
    distinct = tuple(dict.fromkeys(parts))
    return AnyOf(distinct) if len(distinct) > 1 else distinct[0] if distinct else None


def all_of(parts: Sequence[Match]) -> Match | None:
    """Return a match of all of these, without needless nesting; None when there are none."""
    distinct = tuple(dict.fromkeys(parts))
    return AllOf(distinct) if len(distinct) > 1 else distinct[0] if distinct else None


def _word_match(word: str, prefix: bool) -> Match | None:
    if not prefix and is_common(word):
        return Word(word)
    usual = narrowed(word)
    if has_unspaced(usual):
        return _segments_match(usual, prefix)
    runs = separated(usual)
    if not _has_letter(runs):
        return None
    forms = [_completed(runs) if prefix else _adjacent(runs)]
    apart = [part.lower() for run in runs for part in identifier_parts(run) or (run,)]
    if apart != list(map(str.lower, runs)):
        forms.append(_adjacent(apart))
    if has_undivided(usual):
        forms += filter(None, [_word_match(spelt_out(usual), prefix)])
    if name := _SYMBOL_NAMES.get(usual.lower()):
        forms.append(Word(name))
    if number := version_number(usual):
        forms.append(_adjacent(separated(number)))
    return any_of(forms if usual == word else [*forms, _adjacent(separated(word))])


def is_common(word: str) -> bool:
    """Whether a word is surely one token without parts or other forms, as most are."""
    return word.isascii() and word.isalpha() and (word.islower() or word.istitle())


def _phrase_match(text: str) -> Match | None:
    usual = narrowed(text)
    if has_unspaced(usual):
        return _segments_match(usual)
    runs = separated(usual)
    spelt = [_adjacent(separated(spelt_out(usual)))] if has_undivided(usual) else []
    return any_of([_adjacent(runs), _adjacent(separated(text)), *spelt]) if _has_letter(runs) else None


def _loose_words(word: str) -> list[str]:
    if is_common(word):
        return [word]
    word = spelt_out(narrowed(word))
    if has_unspaced(word):
        divided = ((_unspaced_tokens if s.is_unspaced else loose_words)(s.text) for s in segments(word))
        return [token for tokens in islice(divided, MAX_TOKENS) for token in tokens]
    runs = [run for run in separated(version_number(word) or word) if _has_letter(run)]
    tokens = [token for run in runs for token in (run, *map(str.lower, identifier_parts(run)))]
    return [*tokens, name] if (name := _SYMBOL_NAMES.get(word.lower())) else tokens


def _unspaced_tokens(run: str) -> list[str]:
    parts = characters(run)
    return pairs(parts) or parts


def _pieces_match(text: str, prefix: bool = False) -> Match | None:
    """Return a match of each run of words with vowel signs, and of each text between such runs."""
    parts: list[Match | None] = []
    known = list(islice(pieces(text), MAX_TOKENS))
    for piece in known:
        is_begun = prefix and piece is known[-1]
        if not piece.forms:
            is_word = " " not in piece.text
            parts.append(_word_match(piece.text, is_begun) if is_word else _phrase_match(piece.text))
        elif is_begun:
            parts += [*map(Word, piece.forms[:-1]), Word(piece.forms[-1], prefix=True)]
        else:
            parts.append(_adjacent(piece.forms))
    return all_of([match for match in parts if match is not None])


def _segments_match(text: str, prefix: bool = False) -> Match | None:
    """Return a match of each run of an unspaced script, and of each word between such runs."""
    parts = (
        _unspaced_match(segment.text)
        if segment.is_unspaced
        else word_match(segment.text, prefix=prefix and segment.end == len(text))
        for segment in islice(segments(text), MAX_TOKENS)
    )
    return all_of([match for match in parts if match is not None])


def _unspaced_match(run: str) -> Match | None:
    tokens = _unspaced_tokens(run)
    if not _has_letter(run):
        return None
    return loose_match(tokens[0]) if len(tokens) == 1 else _adjacent(tokens)


def _has_letter(runs: Sequence[str]) -> bool:
    return any(character.isalnum() for run in runs for character in run)


def _adjacent(tokens: Sequence[str]) -> Match:
    return Word(tokens[0]) if len(tokens) == 1 else Phrase(" ".join(tokens[:MAX_TOKENS]))


def _completed(runs: Sequence[str]) -> Match:
    """Return a match of every word that begins with the last of these runs; the others are whole words."""
    *whole, begun = runs
    start = "".join(folded(begun))
    forms = [Word(begun, prefix=True)]
    if not stem(start).startswith(start):  # news*, which stemming would make new*, as news, newsa* …
        longer = [start + letter for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
        forms = [Word(begun), *(Word(word, prefix=True) for word in longer if stem(word).startswith(start))]
    forms += map(Word, _completions(begun))
    last: Match = AnyOf(tuple(forms)) if len(forms) > 1 else forms[0]
    return AllOf((*map(Word, whole[:MAX_TOKENS]), last)) if whole else last


@lru_cache(maxsize=256)
def _completions(begun: str) -> tuple[str, ...]:
    """Return words that begin so, though their stems do not: authentication (authent) for authenticat."""
    start = "".join(folded(begun))
    words: dict[str, str] = {}  # by stem
    for ending in sorted(word_list("english_ending")):
        for taken in range(1, len(ending)):
            if start.endswith(ending[:taken]):
                word = start + ending[taken:]
                words.setdefault(stem(word), word)
    known = stem(start)
    return tuple(
        word
        for root, word in words.items()
        if len(root) >= _MIN_COMPLETED_STEM and not root.startswith(known)
    )


def identifiers_in(text: str) -> Iterator[str]:
    """Yield the words of a text that may have parts, each with a version number after it."""
    tail, _ = _patterns(_has_foreign_case(text))
    for match in tail.finditer(text):
        start = match.start()
        while start and text[start - 1].isalnum():
            start -= 1
        yield text[start : match.end()]


@lru_cache(maxsize=1 << 14)
def identifier_parts(token: str) -> tuple[str, ...]:
    """Return the parts of a word; nothing when it is one part, or a hash."""
    if len(token) > _MAX_CHARACTERS or (token.isascii() and token.isalpha() and token.islower()):
        return ()
    _, part = _patterns(_has_foreign_case(token))
    parts = tuple(part.findall(token))
    is_shattered = len(parts) > _MANY_PARTS and len(token) < _SHORT_PART * len(parts)
    return () if is_shattered or parts == tuple(token.split(".")) else parts


def joined_names(word: str) -> list[str]:
    """Return the names in a word whose parts are joined: by underscores, both of add_int|add_bytes(x).

    Or by hyphens, with a number behind the last: log-3, us-east-1, IL-6, whose numbers say nothing alone.
    """
    joined = _JOINED.findall(word) if "_" in word else []
    return [*joined, *_NUMBERED.findall(word)] if "-" in word else joined


def version_number(word: str) -> str | None:
    """Return the number of a version with a v before it: 3.2 for v3.2. Without a dot (v3) it is a name."""
    return word[1:] if word[:1] in ("v", "V") and is_version(word) else None


def is_version(word: str) -> bool:
    """Whether a word is a version, or a decimal: numbers with dots between them, after a v or alone."""
    return "." in word and word[-1].isdigit() and _VERSION.fullmatch(word) is not None


@cache
def _patterns(is_cased: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds words that have parts, from their first inner boundary on, and what finds a part.

    The first begins with a set of characters that prose has few of: the engine skips to them at once. It
    takes a version number along. A part is an acronym in the plural, an acronym, a word, a number, or letters
    that have no case. Without other letters than those of ASCII both are faster.
    """
    cased = [chr(code) for code in (*range(0x80, 0x530), *range(0x1E00, 0x1F00))] if is_cased else []
    upper = "A-Z" + "".join(filter(str.isupper, cased))  # Latin, Greek, Cyrillic
    lower = "a-z" + "".join(filter(str.islower, cased))
    letter = upper + lower
    tail = (
        rf"[{upper}0-9](?:(?<=[{lower}][{upper}])|(?<=[{letter}][0-9])|(?<=[0-9])(?=[{letter}])"
        rf"|(?<=[{upper}][{upper}])(?=[{lower}]))[^\W_]*(?:\.[0-9]+)*"
    )
    part = (
        rf"[{upper}]{{2,}}s(?![{lower}])|[{upper}]+(?![{lower}])|[{upper}]?[{lower}]+|[0-9]+"
        rf"|[^\W_0-9{letter}]+"
    )
    return re.compile(tail), re.compile(part)


def _has_foreign_case(text: str) -> bool:
    """Whether a text may hold letters with case that are not of ASCII."""
    return not text.isascii() and _CASED.search(beyond_ascii(text)) is not None
