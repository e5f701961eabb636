"""How are many documents given other tags? Together: an index rewrites what it has of a word once a group."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concord.protocols import Catalog
    from concord.types import Document

GROUP = 1000  # documents; others who write wait for as long as a group takes


def relabel(catalog: Catalog, documents: Iterable[Document]) -> None:
    """Store the own fields of documents, a group in a transaction."""
    rest = iter(documents)
    while group := list(islice(rest, GROUP)):
        catalog.update_documents(group)
