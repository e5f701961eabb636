"""What is a chunk called? The names that it defines, explains or is headed by, and those a query asks for.

Words do not tell `--amend` from amend, 8.0.0 from an 8 and two noughts, or where a name is defined from its
thousand uses. So a chunk has name tokens beside its words, none with a space in it:

- `name`, in lower case: an option keeps its dashes (`--amend`), a release its dots (`8.0.0`), and a code has
  one hyphen and no leading noughts (`adr-12` for ADR 0012)
- `=Name`, as it is written, where that is not in lower case
- `#name`, a heading of prose that is one word: most are ordinary words
- `@owner`, what the names of the chunk belong to: class, section, heading, file, folder; in code also `@def`
- `@.Class`, in lower case, an owner that a name may be written with: a folder may be called the same

A query asks for `name`, `=Name`, `#name`, and for `owner name`: a chunk that has both `@owner` and `name`.
Owners are kept once a chunk and not with each of its names, which takes a quarter of the room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from concord.text.name_lines import OPTION, has_headings, headings_in, named_in, outer_names
from concord.text.tokens import pattern
from concord.text.word_lists import is_stop_word, listed, word_list
from concord.types import DocumentType

MOST_NAMES = 200  # of a chunk: a longer list tells of nothing in particular
MOST_OWNERS = 6
LONGEST = 64  # characters of a name
MANY_WORDS = 8  # content words of a query that asks for a release or an option
FEW_WORDS = 4  # content words of a query that asks for an identifier; a longer one mentions it
_MOST_NEAREST = 4  # owners that are not part of the path
_MOST_ASKED = 8  # names of a query, and words beside them
_LONGEST_QUERY = 1000  # characters: what is longer was pasted
_LONGEST_HEADING = 120

# Words that ask for the definition of another.
DEFINING = listed(
    "def class func fn fun function method struct interface enum trait macro defined definition implemented"
    " implementation declared declaration signature"
)
_DEFINED = listed("defined definition implemented implementation declared declaration signature")
_EXTENSIONS = listed(
    "py js ts jsx tsx md rst txt json yaml yml toml ini cfg conf go rs java c h cpp rb php sh sql html css"
)

_NUMBER = r"v?(\d+(?:\.\d+)+(?:[-.]?(?:a|b|rc|alpha|beta|dev|post)\.?\d*)?)(?!\w|\.\d)"
_VERSION = pattern(_NUMBER, re.IGNORECASE)
# The number of a release begins a heading, or ends it after a few words; then a date may follow.
_RELEASE = pattern(
    rf"\W{{0,4}}{_NUMBER}|\W{{0,4}}(?:[\w.-]+[ ]+){{1,4}}?[\[(]?{_NUMBER}"
    r"(?=[\])]?(?:\W*$|[ ]*[(\[/–—:,-]|[ ]+\d))",
    re.IGNORECASE,
)
_NUMBERED = r"0*(\d{1,7}(?:-\d{1,7})*)"
_CODE = pattern(rf"(?<![\w-])(?:([A-Z][A-Z0-9]{{1,9}})[- ]{_NUMBERED}|([A-Z]{{1,3}}\d{{3,9}}))(?![\w-])")
_TYPED_CODE = pattern(rf"([A-Za-z]{{2,10}})-{_NUMBERED}")
_IDENTIFIER = pattern(
    r"_*[^\W_]+(?:_+[^\W_]+)+_*|__[^\W_]+__|[a-z]+[0-9]*(?:[A-Z]+[a-z0-9]+)+[A-Z]*|[a-z]{4,}[A-Z]{2,}"
    r"|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Z]{2,}[a-z][a-z0-9]+(?:[A-Z][a-z0-9]+)*"
)
_QUALIFIED = pattern(r"[^\W\d][\w$]*(?:(?:\.|::|->|#)[^\W\d][\w$]*)+")
_JOINTS = pattern(r"\.|::|->|#")
_CHARACTERS = pattern(r"-{0,2}\w[\w$.-]*")  # of a name, and of a heading that is one word
_DIGIT = pattern(r"\d")
_WORD = pattern(r"[^\W_]\w*(?:-\w+)*")
_HYPHENS = pattern(r"[-_]+")
_AROUND = "?.,;:!()[]{}<>\"'`“”„‘’*$@="


class Asked(NamedTuple):
    """The names that a query asks for."""

    tokens: tuple[str, ...] = ()  # to look up: each name, in all its forms and with each other word
    names: tuple[str, ...] = ()  # each name by itself
    sure: tuple[str, ...] = ()  # the names that can be nothing else: the store lacks what no chunk is called


def names_of(type: DocumentType, path: str, title: str, heading: Sequence[str], text: str) -> list[str]:
    """Return the name tokens of a chunk, each once; none if it names nothing."""
    places = list(islice(named_in(type, text), MOST_NAMES))
    names, headings, single = [place.name for place in places], list[str](), list[str]()
    if has_headings(type):
        headings = [place.name for place in headings_in(text)]
        single = _single_words(*heading[-1:], *headings)
    numbers = chain.from_iterable(map(_numbers, (title, *heading, *headings) if has_headings(type) else ()))
    tokens = _tokens([*names, *numbers])[:MOST_NAMES]
    if tokens:  # most prose names nothing
        classes = [owner for name in names for owner in _with_owners(name)[:-1]]
        above = [words for words in headings if words[:1] != "-"]  # an option is no owner of itself
        if has_headings(type):
            owners = _owners(path, classes, [*single, *above, *heading[-1:]])
        else:
            owners = _owners(path, [*classes, *outer_names(places), *heading], ())
        tokens += ["@def"] * (type == "code") + owners
    return tokens + [f"#{word}" for word in single[:MOST_OWNERS]]


def asked_names(text: str) -> Asked:
    """Return the names that a query asks for; most queries ask for none."""
    typed = text.split() if len(text) <= _LONGEST_QUERY else []
    words = [word for word in map(_bare, typed) if word]
    content = [word for word in words if word[0] == "-" or not is_stop_word(word)]
    others = [word for word in content if word.lower() not in DEFINING]
    is_defined = len(others) < len(content)
    is_short = len(content) <= FEW_WORDS
    firm = [name for word in words for name in _release_or_option(word)] if len(content) <= MANY_WORDS else []
    if is_short:  # a longer one mentions codes: of claims about genes (IL-4), titles with the code are wrong
        codes = filter(None, map(_TYPED_CODE.fullmatch, words))
        firm += [*_codes(" ".join(typed)), *(f"{code[1]}-{code[2]}".lower() for code in codes)]
    loose = [_bare(word) for word in typed if _is_identifier(word)] if is_short else []
    is_alone = len(others) == 1 and (len(words) == 1 or _asks_for_definition(words, others[0]))
    ordinary = others if is_alone and not (firm or loose or _is_file(others[0])) else []
    named = list(dict.fromkeys([*firm, *loose, *ordinary]))[:_MOST_ASKED]
    # Beside other words an identifier is mostly mentioned ("NodePort services"): one of them must own it.
    bare = [*firm, *ordinary] if loose and len(others) > len(named) and not is_defined else named
    names = [token for token in _tokens(named) if token[0] != "="]
    owners = [*_asked_owners(named, others), *(["def"] * is_defined)]
    pairs = [f"{owner} {name}" for name in names for owner in owners if owner != name]
    headed = [f"#{name}" for name in names if len(words) == 1]
    tokens = (*_tokens(bare), *headed, *pairs)
    return Asked(tokens, tuple(names), () if ordinary else tuple(names))


def _asks_for_definition(words: Sequence[str], name: str) -> bool:
    """Whether words ask where a name is defined; "storage class" does not, "class Storage" does."""
    kinds = [word.lower() for word in words[: words.index(name)]]
    return not DEFINING.isdisjoint(kinds) or not _DEFINED.isdisjoint(word.lower() for word in words)


def line_of(name: str, type: DocumentType, text: str) -> int | None:
    """Return where the line begins that gives a passage a name; None if the passage only stands under it."""
    lines = ((place.start, _tokens([place.name])) for place in named_in(type, text))
    headings = headings_in(text) if has_headings(type) else ()
    headed = (
        (place.start, [*_single_words(place.name), *_tokens(_numbers(place.name))]) for place in headings
    )
    return next((start for start, tokens in chain(lines, headed) if name in tokens), None)


def _tokens(names: Iterable[str]) -> list[str]:
    """Return each name without its owners, in lower case and, if that is something else, as it is written."""
    own = [name for name in (_with_owners(name)[-1] for name in names) if _is_name(name)]
    forms = ((name.lower(), f"={name}") if name != name.lower() else (name,) for name in own)
    return list(dict.fromkeys(chain.from_iterable(forms)))


def _is_name(text: str) -> bool:
    return 1 < len(text) <= LONGEST and _CHARACTERS.fullmatch(text) is not None


def _with_owners(name: str) -> list[str]:
    """Return URL and copy_with of URL.copy_with; options and releases have no owners in them."""
    return [name] if name[:1] == "-" or name[:1].isdigit() else _JOINTS.split(name)


def _owners(path: str, classes: Iterable[str], inner: Iterable[str]) -> list[str]:
    """Return tokens for what the names of a chunk belong to: the nearest, then file and folder."""
    dotted = [*islice(_words(classes), _MOST_NEAREST)]
    nearest = islice(dict.fromkeys((*dotted, *_words(inner))), _MOST_NEAREST)
    folder, _, file = path.lower().rpartition("/")
    stem = file.partition(".")[0].strip("_")
    place = [stem, *_HYPHENS.split(stem)[:2], folder.rpartition("/")[2]]
    known = filter(_is_name, dict.fromkeys((*nearest, *place)))
    return [*(f"@.{word}" for word in dotted), *(f"@{word}" for word in islice(known, MOST_OWNERS))]


def _words(texts: Iterable[str]) -> Iterator[str]:
    """Yield the words of texts, each once, in lower case and without function words."""
    words = dict.fromkeys(word.lower() for text in texts for word in _WORD.findall(text))
    return (word for word in words if _is_name(word) and not is_stop_word(word))


def _asked_owners(named: Sequence[str], others: Iterable[str]) -> list[str]:
    """Return what names may belong to: URL where it says URL.copy_with, the other words, and their parts."""
    rest = [word for word in others if word not in named and not _TYPED_CODE.fullmatch(word)]
    words = [word for word in rest if not any(_release_or_option(word))][:_MOST_ASKED]
    parts = chain.from_iterable((word, *_HYPHENS.split(word)) for word in words)
    written = [part for name in named for part in _with_owners(name)[:-1] if _is_name(part)]
    owners = [*(f".{part}" for part in written), *written, *filter(_is_name, parts)]
    return list(dict.fromkeys(owner.lower() for owner in owners))


def _single_words(*headings: str) -> list[str]:
    """Return those headings that are one word, in lower case."""
    words = dict.fromkeys(heading.strip("`").removesuffix("()").lower() for heading in headings)
    return [word for word in words if _is_name(word) and word[0] != "-"]


def _numbers(heading: str) -> Iterator[str]:
    """Yield the release that a heading names, and its codes."""
    if len(heading) <= _LONGEST_HEADING and _DIGIT.search(heading):
        if release := _RELEASE.match(heading):
            yield release[1] or release[2]
        yield from _codes(heading)


def _codes(text: str) -> Iterator[str]:
    for letters, number, whole in _CODE.findall(text):
        yield (whole or f"{letters}-{number}").lower()


def _release_or_option(word: str) -> Iterator[str]:
    """Yield a word of a query if it is an option or a release, in the form that chunks have it."""
    if option := OPTION.match(word):
        yield option[0]
    elif version := _VERSION.fullmatch(word):
        yield version[1]


def _bare(word: str) -> str:
    """Return a typed word without the punctuation around it; nothing where there is no more."""
    bare = word.strip(_AROUND)
    return bare if any(map(str.isalnum, bare)) else ""


def _is_identifier(word: str) -> bool:
    """Whether a typed word can only be a name in code or settings: snake_case, camelCase, a.b, f()."""
    bare = _bare(word)
    if bare.lower() in word_list("brand") or bare.lower() in word_list("abbreviation"):
        return False
    is_call = word.rstrip("?.,").endswith("()") and bare.isidentifier()
    return is_call or bool(_IDENTIFIER.fullmatch(bare) or _QUALIFIED.fullmatch(bare) and not _is_file(bare))


def _is_file(word: str) -> bool:
    return "." in word and word.rpartition(".")[2].lower() in _EXTENSIONS
