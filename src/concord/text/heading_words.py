"""The words of a heading in Markdown, without its marks: as a title and as a place in a document.

Marks are what a reader of the page would not see. Where Markdown and code mean different things by the same
characters, a heading is taken to speak of code: `__init__` and `snake_case_name` keep their underscores.
"""

from __future__ import annotations

import re

from concord.text.tokens import pattern

_LONGEST = 200  # characters; what is longer is a paragraph
_LONGEST_READ = 1_000  # characters: addresses of badges are long, and are read to be left out
_DEEPEST = 3  # how far marks may stand within marks: a badge is an image within a link

_MARKS = frozenset("`*_[]<>\\{}")
# Marks that stand for themselves, in code or after a backslash, are characters that no text has meanwhile.
_HIDDEN = {ord(mark): 0xFDD0 + n for n, mark in enumerate(sorted(_MARKS))}
_SHOWN = {hidden: mark for mark, hidden in _HIDDEN.items()}

_VERBATIM = pattern(r"(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)|\\(?P<escaped>[!-/:-@\[-`{-~])")
_LINK = pattern(r"!?\[([^\]\[]*)\](?:\((?:[^()]|\([^()]*\))*+\)|\[[^\]\[]*\])")
_TAG = pattern(r"</?[A-Za-z][^<>]*>|<!--.*?-->")
_ATTRIBUTES = pattern(r"\{\s?[:#.][^{}]*\}$")
_STARRED = pattern(r"(?<!\*)(?P<mark>\*{1,3})(?![\s*])([^*]+)(?<!\s)(?P=mark)(?!\*)")
_UNDERSCORED = pattern(r"(?<!\w)(?P<mark>_|__(?=[^_]*\s))(?![\s_])([^_]+)(?<!\s)(?P=mark)(?!\w)")


def line_words(line: str) -> str:
    """Return the words of a heading that begins with #; of the # at its end those of a word (C#) stay."""
    raw = line.strip().lstrip("#")
    bare = raw.rstrip("#")
    return heading_words(raw if bare[-1:].strip() else bare)


def heading_words(raw: str) -> str:
    """Return the words of a heading, without the marks of emphasis, code, links, images and anchors."""
    words = " ".join(raw[:_LONGEST_READ].split())
    if not _MARKS.isdisjoint(words):
        words = _VERBATIM.sub(_hidden, words)
        words = _TAG.sub("", _unwrapped(_LINK, r"\1", words))
        words = _ATTRIBUTES.sub("", words.rstrip())
        words = _unwrapped(_UNDERSCORED, r"\2", _unwrapped(_STARRED, r"\2", words))
        words = " ".join(words.translate(_SHOWN).split())
    return words[:_LONGEST].rstrip()


def _hidden(found: re.Match[str]) -> str:
    return (found["code"] or found["escaped"]).translate(_HIDDEN)


def _unwrapped(marked: re.Pattern[str], kept: str, words: str) -> str:
    """Return words without the marks around some of them, from the innermost on."""
    for _ in range(_DEEPEST):
        words, changes = marked.subn(kept, words)
        if not changes:
            break
    return words
