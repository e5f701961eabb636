"""A query as a search understands it, for those who then do by hand what the library does."""

from __future__ import annotations

from concord.knowledge import KnowledgeBase
from concord.search.legs import Tools
from concord.search.request import options_of
from concord.search.understand import understand
from concord.types import Query, Request


def understood(kb: KnowledgeBase, text: str) -> Query:
    """Return the query, its words counted and the frequent ones pruned; nobody is asked for an answer."""
    request, tools = Request(text, mode="auto"), Tools(kb.store, (), kb.settings, kb.org)
    return understand(request, options_of(request, kb.settings), tools, ())
