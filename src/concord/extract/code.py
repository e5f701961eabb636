"""Source code, as it is. Its title is the file's name and what the file says of itself in its first comment.

The name, because people look for files by it; the sentence, because it tells what every chunk of the file is
about and stands in none but the first.
"""

from __future__ import annotations

import re

from concord.extract.decode import HEAD_BYTES
from concord.extract.formats import Format, detect
from concord.extract.plain import readable
from concord.text.clean import clean
from concord.types import Extracted

MAX_SUMMARY = 120  # characters: about a line of a comment
_SEARCHED_CHARACTERS = 4_096

_DOCSTRING = re.compile(r'(?:[ \t]*(?:#[^\n]*)?\n)*+[rRuU]?("""|\'\'\')\s*([^\n]+)')
_PREAMBLE = re.compile(r"(?:\s+|#![^\n]*|<\?php|package [\w.]+;?|[\"']use strict[\"'];?)+")


def _comments(line_mark: str, *blocks: str) -> re.Pattern[str]:
    lines = rf"(?:[ \t]*{line_mark}[^\n]*(?:\n|\Z))+"
    return re.compile("|".join([lines, *blocks]), re.DOTALL)


_SLASHES = _comments("//", r"/\*.*?\*/", "<!--.*?-->")
_HASHES = _comments("#")
_COMMENTS = {
    **dict.fromkeys(("ruby", "bash", "fish", "perl", "r", "julia", "elixir", "make", "dockerfile"), _HASHES),
    **dict.fromkeys(("cmake", "nix", "hcl", "powershell", "graphql", "nim"), _HASHES),
    **dict.fromkeys(("sql", "lua", "haskell"), _comments("--", r"/\*.*?\*/", r"\{-.*?-\}")),
    **dict.fromkeys(("clojure", "elisp", "scheme", "asm"), _comments(";")),
    **dict.fromkeys(("erlang", "fortran"), _comments("[%!]")),
    "ocaml": re.compile(r"\(\*.*?\*\)", re.DOTALL),
}
_MARKS = "/*#-;%!<>(){} \t="
# Comments that say nothing of what the code does.
_NOT_A_SUMMARY = re.compile(
    r"copyright|licen[cs]e|spdx|all rights reserved|\(c\)|generated|"
    r"coding[:=]|-\*-|eslint|prettier|@ts-|@flow|pylint",
    re.IGNORECASE,
)


class CodeExtractor:
    """Reads source code."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the code with its language."""
        form = detect(name, data[:HEAD_BYTES])
        language = form.language if isinstance(form, Format) else None
        text = clean(readable(data))
        file_name = name.rpartition("/")[2]
        summary = _summary(text[:_SEARCHED_CHARACTERS], language)
        return Extracted(
            text=text,
            type="code",
            title=f"{file_name}: {summary}" if summary else file_name,
            language=language,
        )


def _summary(head: str, language: str | None) -> str:
    """Return the first sentence that a file says of itself; nothing when it begins with code or a licence."""
    if language == "python":
        found = _DOCSTRING.match(head)
        return _sentence(found[2].partition(found[1])[0]) if found else ""
    comments = _COMMENTS.get(language or "", _SLASHES)
    position = 0
    while block := comments.match(head, _after_preamble(head, position)):
        lines = (_sentence(line) for line in block[0].split("\n"))
        summary = next((line for line in lines if line), "")
        if summary and not _NOT_A_SUMMARY.search(block[0]):
            return summary
        position = block.end()
    return ""


def _after_preamble(head: str, position: int) -> int:
    found = _PREAMBLE.match(head, position)
    return found.end() if found else position


def _sentence(line: str) -> str:
    text = line.strip().strip(_MARKS)
    if not any(map(str.isalpha, text)) or text.startswith("@"):
        return ""
    return text if len(text) <= MAX_SUMMARY else text[:MAX_SUMMARY].rpartition(" ")[0] + " …"
