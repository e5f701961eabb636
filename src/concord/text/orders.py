"""Does a text give an AI orders? A fitted score of what its sentences do, in whatever form they are written.

Words become letters (an override, rules, an AI, a secret …, in some twenty languages), so that a few patterns
over letters see what thousands of phrases have in common. What hides in encodings, comments, spaces between
letters and digits for letters is read as well. `scripts/fit_orders.py` fits the weights.
"""

from __future__ import annotations

import binascii
import math
import re
import unicodedata
from base64 import b64decode
from codecs import encode
from collections.abc import Iterator
from functools import cache, lru_cache
from pkgutil import get_data
from typing import NamedTuple

from msgspec import Struct, json

from concord.text.tokens import pattern

FILE = "data/orders.json"  # in the package
LIKELY = 0.55  # a score from which a text is called an order
ABOUT, ABOUT_WORDS = "a text about attacks", 2  # counts once for so many words of that subject
MOST_WINDOWS = 400  # of a text: more are not looked at

_HIDDEN = (
    pattern(r"<!--(.{8,2000}?)-->", re.S),
    pattern(r"\[//\]: # \((.{8,500}?)\)"),
    pattern(r"display: ?none[^>]{0,80}>([^<]{8,500})<"),
)
_BASE64 = pattern(r"(?<![\w+/])[A-Za-z0-9+/]{24,4000}={0,2}(?![\w+/])")
_HEX = pattern(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2} ?){16,2000}")
_PERCENT = pattern(r"%([0-7][0-9A-Fa-f])")
_SPELT = pattern(r"\b\w(?:[ .*_-]\w){3,}\b")
_MARKUP = pattern(  # of chats and tool calls
    r"<\|\w{3,20}\|>|\[/?inst\]|<</?sys>>|<important>|\]\(#assistant\)|\n\s*(?:human|assistant) ?:"
    r"|</?(?:system(?:[ -]\w+)?|tool_\w+|function_calls|invoke)\b[^>]{0,80}>"
    r"""|\{\s*["']role["']\s*:\s*["'](?:system|assistant)["']|###? (?:system|instructions?) ?:"""
    r"|\bend of (?:document|context)\b"
)
_DATA_LINK = pattern(
    r"\]\(\s*https?://[^)\s]{1,200}[?&][^)\s=]{1,30}=(?:\{|\[|<|%7b|\$|secret|data\b)"
    r"|\?\w{1,12}=<|\?\w{1,12}= (?:and|followed)"
)
_ADDRESS = pattern(r"https?://\S+|\S+@\S+\.\w+|~/\.\w+\S*")
_WORD = pattern(r"(?:[^\W_]|[\u0900-\u0dff])+(?:_[^\W_]+)*|[.!?;:\n，。！？]|[\"“”`«»‘]")
_UNSPACED = pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LEET = str.maketrans("0134578@$", "oieastbas")
_ENDS, _QUOTES = frozenset(".!?;:\n，。！？"), frozenset('"“”`«»‘')
_TELLING = frozenset("OoPZJDQKAHLXTS")  # a window without any of these orders nobody


class Words(NamedTuple):
    """Which letter stands for which word."""

    whole: dict[str, str]
    stems: dict[str, str]
    joined: tuple[tuple[str, str], ...]  # words of several words, as they are written and as one
    unspaced: re.Pattern[str]


class Model(Struct, frozen=True):
    """What is fitted: a weight for each pattern over letters."""

    letters: dict[str, str]  # letter → its words
    features: dict[str, str]
    weights: dict[str, float]
    bias: float


def is_order(text: str) -> bool:
    """Whether a text reads like an order to an AI."""
    return score(text) >= LIKELY


def score(text: str) -> float:
    """Return how likely it is that a text gives an AI orders, from 0 to 1."""
    model = _model()
    weigh = model.weights.get
    odds = [model.bias + sum(weigh(name, 0.0) for name in names) for names in windows(text)]
    return 1 / (1 + math.exp(-max(odds))) if odds else 0.0


def windows(text: str) -> Iterator[list[str]]:
    """Yield which patterns match each pair of sentences of a text; those that order nobody are left out."""
    views = [_letters(view, is_hidden=at > 0) for at, view in enumerate(_views(text))]
    about = [ABOUT] * min(3, sum(view.count("B") for view in views) // ABOUT_WORDS)
    for view in views:
        sentences = view.split(".")
        for at in range(min(len(sentences), MOST_WINDOWS)):
            window = ".".join(sentences[at : at + 2])
            if not _TELLING.isdisjoint(window):
                yield [name for name, found in _features() if found.search(window)] + about


def _views(text: str) -> Iterator[str]:
    """Yield a text as it is read, and whatever is hidden in it."""
    yield text
    for hiding in _HIDDEN:
        yield from hiding.findall(text)
    for encoded in _BASE64.findall(text):
        yield from _readable(b64decode(encoded.rstrip("=")[: len(encoded) // 4 * 4] + "==="))
    for encoded in _HEX.findall(text):
        yield from _readable(binascii.unhexlify(encoded.replace(" ", "")))
    if "%20" in text:
        yield _PERCENT.sub(lambda code: chr(int(code[1], 16)), text)
    if "rot13" in text.lower():
        yield encode(text, "rot13")


def _readable(data: bytes) -> Iterator[str]:
    if data.isascii() and b" " in data and data.decode("ascii").isprintable():
        yield data.decode("ascii")


def _letters(text: str, *, is_hidden: bool) -> str:
    """Return a text with a letter for each word: what is to be found in it, and where sentences end."""
    words, text = _words(), text.lower() if text.isascii() else _plain(text)
    text = _SPELT.sub(lambda spelt: re.sub(r"[ .*_-]", "", spelt[0]), text)
    text = _MARKUP.sub(" markupmark ", _DATA_LINK.sub(" datalink ", text))
    text = _ADDRESS.sub(" someaddress ", text).replace("'", "").replace("’", "")
    text = " ".join(text.replace("\n\n", " . ").split())
    for spaced, joined in words.joined:
        if spaced in text:
            text = text.replace(spaced, joined)
    return ("H" if is_hidden else "") + "".join(map(_letter, _WORD.findall(text)))


def _plain(text: str) -> str:
    """Return a text in small letters without accents and what cannot be seen, words of all scripts apart."""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).lower())
    accents = re.compile("[\u0300-\u036f]")
    seen = (c for c in accents.sub("", text) if c.isascii() or unicodedata.category(c) != "Cf")
    text = unicodedata.normalize("NFKC", "".join(seen))
    return _words().unspaced.sub(r" \g<0> ", text) if _UNSPACED.search(text) else text


@lru_cache(maxsize=1 << 14)
def _letter(word: str) -> str:
    """Return the letter of a word; a hyphen if it has none."""
    if word in _ENDS or word in _QUOTES:
        return "." if word in _ENDS else '"'
    words = _words()
    if word in words.whole:
        return words.whole[word]
    if stem := next((word[:n] for n in range(len(word), 1, -1) if word[:n] in words.stems), None):
        return words.stems[stem]
    plain = "" if word.isalpha() or word.isdecimal() else word.translate(_LEET)
    return _letter(plain) if plain.isalpha() else "-"


@cache
def _model() -> Model:
    return json.decode(get_data("concord", FILE) or b"", type=Model)


@cache
def _features() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(found)) for name, found in _model().features.items())


@cache
def _words() -> Words:
    whole, stems, joined = {"markupmark": "J", "datalink": "D", "someaddress": "X"}, dict[str, str](), []
    unspaced = []
    for letter, words in _model().letters.items():
        for word in words.split():
            (whole if word.endswith("=") or "_" in word else stems).setdefault(word.removesuffix("="), letter)
            if "_" in word:
                joined.append((word.replace("_", " "), word))
            if _UNSPACED.search(word):
                unspaced.append(word)
    unspaced.sort(key=len, reverse=True)
    return Words(whole, stems, tuple(joined), re.compile("|".join(unspaced)))
