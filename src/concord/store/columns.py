"""What a lexical index holds of a chunk: four columns with their weights, and names, on every backend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from concord.text.names import names_of
from concord.text.terms import index_terms
from concord.types import Document


class Columns(NamedTuple):
    """The indexed text of one chunk, in the order of the index's columns."""

    title: str
    content: str
    tags: str
    terms: str


# BM25 multiplies how often a term occurs in a column by these. A starting point until the judged sets say
# better: a title is a summary that somebody wrote; `terms` repeats what another column holds already.
WEIGHTS = (2.0, 1.0, 1.0, 0.5)
LEAST_IDF = 1e-6  # as of BM25: what most chunks have still counts


def columns_of(title: str, tags: Sequence[str], heading: Iterable[str], text: str) -> Columns:
    """Return what is indexed of a chunk: its document's title and tags, its headings and its text."""
    # The first heading of a Markdown file is its title as a rule; twice in the column it would count twice.
    titles = "\n".join(dict.fromkeys((title, *heading)))
    labels = " ".join(tags)
    return Columns(titles, text, labels, index_terms(f"{titles}\n{text}\n{labels}"))


def chunk_names(document: Document, heading: Sequence[str], text: str) -> list[str]:
    """Return the name tokens of a chunk of a document."""
    return names_of(document.type, document.path, document.title, heading, text)


def owner_and_name(token: str) -> tuple[str, str]:
    """Return the two parts of a token that is asked for; the owner is empty where there is none."""
    owner, _, name = token.rpartition(" ")
    return owner, name
