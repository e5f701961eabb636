"""Which names does a query ask for, so that their definitions come first?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from concord.ranking.named.options import asked_option
from concord.ranking.word_shapes import shape
from concord.ranking.words import STOPS
from concord.text.pattern import pattern
from concord.types import Query

_NAME = r"(?P<{}>[^\W\d][\w$]*(?:(?:\.|::|->|#)[^\W\d][\w$]*)*[?!]?(?:\(\)|=)?)"
_KEY = _NAME.replace(r"[\w$]*", r"[\w$-]*")  # of settings, such as maxmemory-policy
_KIND = r"(?:def|class|func|function|fn|fun|method|struct|interface|enum|trait|macro)"
# The Retry exception, the Pool class
_KIND_AFTER = rf"(?:\s+(?:{_KIND}|exception|error|type|constant|variable|decorator|component|hook))?"
_ASKED = pattern(
    rf"{_NAME.format('alone')}"
    rf"|{_KIND}\s+{_NAME.format('kind')}"  # def getconn
    rf"|(?:where\s+(?:is|are)\s+(?:the\s+)?(?:{_KIND}\s+)?{_NAME.format('where')}{_KIND_AFTER}"
    r"\s+(?:defined|implemented|declared)"
    rf"|(?:the\s+)?(?:definition|implementation|signature|source)\s+of\s+(?:the\s+)?(?:{_KIND}\s+)?"
    rf"{_NAME.format('what')}{_KIND_AFTER}"
    rf"|{_NAME.format('before')}\s+(?:definition|implementation|signature|source))"
    r"(?:\s+in\s+(?:the\s+)?(?P<within>[\w.-]+))?",
    re.IGNORECASE,
)
# A query for a value: it finds lines that set the name, and nothing else that is said of it. One that begins
# with "value" says of what; a value proposition, stream or chain is something else. "Default bantime" may ask
# for a value, or be what prose calls something: a default gateway, a market value.
_ASKED_VALUE = pattern(
    rf"where\s+(?:is|are)\s+(?:the\s+)?{_KEY.format('set')}\s+(?:configured|set|assigned|specified)\s*\?*"
    r"|(?:what\s+is\s+)?(?:the\s+)?(?:"
    r"(?:default(?:\s+value)?\s+(?:of|for)|default\s+value|value\s+(?:of|for))(?:\s+the)?\s+"
    rf"{_KEY.format('valued')}|{_KEY.format('before')}\s+default\s+value"
    rf"|(?P<said>default\s+{_KEY.format('after')}|{_KEY.format('first')}\s+(?:default|value)))\s*\?*",
    re.IGNORECASE,
)
_NAMES_DEFINED = ("alone", "kind", "where", "what", "before")
_NAMES_OF_VALUES = ("set", "valued", "before", "after", "first")
_DASHED = pattern(r"[^\W\d]\w*(?:-\w+)+")
_CALL = pattern(rf"{_NAME.format('called')}\([^()]*(?:\([^()]*\)[^()]*)*\);?")  # connect(host, timeout=3)
# Every query that `_ASKED` fits has one of these words, unless it is a single word: most need no pattern.
_ASKING = {
    "def", "class", "func", "function", "fn", "fun", "method", "struct", "interface", "enum", "trait",
    "macro", "where", "definition", "implementation", "signature", "source",
}  # fmt: skip
# Words around a name that ask what it is.
_ABOUT = {
    "a", "an", "the", "of", "for", "in", "is", "are", "what", "which", "does", "do", "mean", "means",
    "meaning", "default", "defaults", "value", "values", "setting", "option", "parameter", "parameters",
    "argument", "arguments", "args", "params", "variable", "constant", "attribute", "property", "field",
    "type", "types", "config", "configuration", "function", "method", "class", "signature", "purpose",
    "explain", "describe", "description", "documentation", "docs", "docstring", "reference", "how", "work",
    "works", "return", "returns", "returned", "raise", "raises", "throw", "throws", "exception",
    "exceptions", "take", "takes", "accept", "accepts", "where", "defined", "declared", "implemented",
    "configured", "set", "assigned", "specified", "section",
}  # fmt: skip
# The language of a name does not tell where it is defined.
_LANGUAGES = {
    "python", "java", "javascript", "js", "typescript", "go", "golang", "rust", "ruby", "php", "perl", "c",
    "c++", "c#", "kotlin", "swift", "scala", "bash", "shell", "sql", "code", "library", "package", "module",
}  # fmt: skip
_BETWEEN_NAMES = {"and", "or", "vs", "versus", "difference", "between", "compare", "&", "+", "/", ""}
_BEFORE_OWNER = {"in", "of", "from"}
MOST_NAMES = 4  # that are asked for at once
MOST_BESIDE = 3  # words that tell where a name is defined
MOST_PARTS = 16  # of a name: each is looked for in the place of every passage
_FILE = pattern(  # transport.py; os.walk is a name
    r"[\w-]+\.(?:pyi?|[cm]?[jt]sx?|go|rs|java|kt|scala|[ch](?:pp|xx|c|h)?|cs|rb|php|p[lm]|lua|jl|swift|exs?|erl"
    r"|hs|ml|sh|bash|sql|tf|vue|s?css|conf|cfg|ini|toml|ya?ml|json|env|properties|service)"
)
_SECTION = pattern(r"\[+([^\W\d][\w.-]*)\]+")  # of a file of settings
_BREAKS = pattern(r"[\s|]+")
MOST_WORDS = 8
_PARTS = pattern(r"\.|::|->|#")
_WHOLE_NAME = pattern(_NAME.format("whole"))


class AskedName(NamedTuple):
    """A name as it was written, and what it belongs to: argparse, in "parse_args in argparse"."""

    written: str
    within: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()  # words that must be its place's, or else something else is asked for
    is_value: bool = False  # only what gives it a value is asked for
    said: str = ""  # what prose may call something else: default gateway
    is_explicit: bool = False  # its definition is asked for in so many words

    @property
    def name(self) -> str:
        """What is defined: acquire, of pool.acquire()."""
        return self._parts()[-1]

    @property
    def owners(self) -> tuple[str, ...]:
        """What the name belongs to: pool, of pool.acquire()."""
        return (*self._parts()[:-1], *self.within, *self.beside)

    @property
    def owner(self) -> str:
        """What it is written with, and belongs to at once; empty where it is written alone."""
        return "".join(self._parts()[-2:-1])

    @property
    def is_qualified(self) -> bool:
        """Whether it is written with what it belongs to."""
        return len(self._parts()) > 1

    @property
    def is_sure(self) -> bool:
        """Whether it can only be a name, whatever words are around it."""
        return _is_sure(self.written)

    def _parts(self) -> list[str]:
        return _PARTS.split(self.written.removesuffix("()").removesuffix("="))


@lru_cache(maxsize=64)  # each stage that looks for a definition asks
def asked_names(text: str) -> tuple[AskedName, ...]:
    """Return the names whose definitions a query asks for, if it asks for nothing else.

    Such a query is a name alone, in any case; a name with words that ask for its definition; or one or more
    words that can only be names (snake_case, a.b), with words that ask what or where they are.
    """
    text = text.strip()
    words = text.split()
    text = text.rstrip("? ") if len(words) > 1 else text
    if len(words) == 1 and words[0].removesuffix("()").isidentifier():
        return (AskedName(words[0]),)  # most names, read without a regular expression
    if len(words) > MOST_WORDS:
        return ()
    names = next((names for read in _READERS if (names := read(text, words))), ())
    return () if any(len(one.owners) >= MOST_PARTS for one in names) else names


def _dashed(text: str, words: Sequence[str]) -> tuple[AskedName, ...]:
    """Return a name with hyphens, which only settings have."""
    return (AskedName(text, is_value=True),) if len(words) == 1 and _DASHED.fullmatch(text) else ()


def _in_brackets(text: str, words: Sequence[str]) -> tuple[AskedName, ...]:
    """Return the section of a settings file that is asked for, and the words beside it: where it stands."""
    if "[" not in text:
        return ()
    sections = [found[1] for word in words if (found := _SECTION.fullmatch(word))]
    beside = tuple(word for word in words if not _SECTION.fullmatch(word) and word.lower() not in _ABOUT)
    if len(sections) != 1 or len(beside) > MOST_BESIDE:
        return ()
    return (AskedName(sections[0], beside=beside, is_value=True),)


def _called(text: str, _: Sequence[str]) -> tuple[AskedName, ...]:
    found = _CALL.fullmatch(text) if text.endswith((")", ");")) else None
    return (AskedName(found["called"] + "()"),) if found else ()


def _defined(text: str, words: Sequence[str]) -> tuple[AskedName, ...]:
    """Return the name that is the whole query, or whose definition it asks for: "where is X defined in Y"."""
    is_asking = len(words) == 1 or not _ASKING.isdisjoint(map(str.lower, words))
    found = _ASKED.fullmatch(text) if is_asking else None
    if not found:
        return ()
    name = next(filter(None, map(found.__getitem__, _NAMES_DEFINED)))
    within = (found["within"],) if found["within"] else ()
    return (AskedName(name, within, is_explicit=not found["alone"]),)


def _asked_about(text: str, _: Sequence[str]) -> tuple[AskedName, ...]:
    """Return the sure names of a query that only asks about them, and what they belong to: X, of Y?"""
    bare = [word.strip(STOPS) for word in _BREAKS.split(text)]
    names = list(dict.fromkeys(word for word in bare if _is_sure(word) and _WHOLE_NAME.fullmatch(word)))
    names = [word for word in names if not _FILE.fullmatch(word)] or names
    others = [at for at, word in enumerate(bare) if word not in names]
    if len(names) > 1:
        are_alone = all(bare[at].lower() in _BETWEEN_NAMES for at in others)
        return tuple(map(AskedName, names)) if are_alone and len(names) <= MOST_NAMES else ()
    told = [at for at in others if bare[at].lower() not in _ABOUT]
    within = [at for at in told if at and bare[at - 1].lower() in _BEFORE_OWNER]
    beside = [bare[at] for at in told if at not in within and bare[at].lower() not in _LANGUAGES]
    if not names or len(within) > 1 or len(beside) > MOST_BESIDE:
        return ()
    if len(told) == len(beside) == 1 and _FILE.fullmatch(names[0]) and _WHOLE_NAME.fullmatch(beside[0]):
        return (AskedName(beside[0], beside=(names[0],)),)  # transport.py connect
    return (AskedName(names[0], tuple(bare[at] for at in within), tuple(beside)),)


def _asked_value(text: str, words: Sequence[str]) -> tuple[AskedName, ...]:
    """Return the word of which only the value is asked for: "default bantime", "where is port set"."""
    found = _ASKED_VALUE.fullmatch(text) if len(words) > 1 else None
    name = next(filter(None, map(found.__getitem__, _NAMES_OF_VALUES))) if found else ""
    if not found or name.lower() in _ABOUT:
        return ()
    return (AskedName(name, is_value=True, said=found["said"] or ""),)


# The ways to ask for a name, of which the first that fits counts.
_READERS = (_dashed, _in_brackets, _called, _defined, _asked_about, _asked_value)


def _is_sure(word: str) -> bool:
    return shape(word.removesuffix("=")) == "sure" or word.endswith("=") and len(word) > 1


def is_literal(query: Query) -> bool:
    """Whether the query is to be found as it stands: it quotes, or it is one identifier or option."""
    is_single = len(query.text.split()) == 1
    is_name = query.kind == "entity" or asked_option(query) is not None
    return query.kind == "exact_quote" or is_single and is_name
