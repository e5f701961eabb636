"""Is a query one option of a command, which texts write it with its dashes, and which describe it?

To the index `--amend` is the word amend, so `--fixup=amend:` holds it as well as what is said of `--amend`.
"""

from __future__ import annotations

import re

from concord.text.pattern import pattern
from concord.types import Query

WRITTEN_BOOST = 1.1  # of the range of scores: before all that hold only its letters

_OPTION = pattern(r"(--?[A-Za-z][\w-]*)(?:=\S*)?")


def asked_option(query: Query) -> str | None:
    """Return the option that a query is and nothing else, with its dashes and without a value.

    A word that a single dash excludes is none, unless passages write it so.
    """
    found = _OPTION.fullmatch(query.text.strip())
    return found[1] if found and not query.nothing_wanted else None


def writes(option: str, text: str) -> bool:
    """Whether a text has an option with its dashes; in its own case, for -c and -C are two."""
    return option in text and re.search(_whole(option), text) is not None


def describes(option: str, text: str) -> bool:
    """Whether a line of a text begins with an option, or with others and a comma before it: -c, --count."""
    if option not in text:
        return False
    return re.search(rf"^[^\w\n]*(?:-[^,\n]{{1,40}},[ \t]*)*{_whole(option)}", text, re.MULTILINE) is not None


def _whole(option: str) -> str:
    return rf"(?<![\w-]){re.escape(option)}(?![\w-])"
