"""A query as a search understands it, for those who then do by hand what the library does."""

from __future__ import annotations

from concord.answering.request_checks import search_options
from concord.answering.retrieve import retrieve
from concord.answering.tools import SearchTools
from concord.knowledge import KnowledgeBase
from concord.types import Query, Request


def understood(kb: KnowledgeBase, text: str) -> Query:
    """Return the query, its words counted and the frequent ones pruned; nobody is asked for an answer."""
    request, tools = Request(text, mode="auto"), SearchTools(kb.store, (), kb.settings, kb.org)
    return retrieve(request, search_options(request, kb.settings), tools, ()).query
