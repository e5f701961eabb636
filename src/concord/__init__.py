"""Concord: a local-first knowledge base whose search says how far to trust it.

>>> from concord import KnowledgeBase
>>> with KnowledgeBase.open() as kb:
...     kb.add("docs")
...     answer = kb.search("how does authentication work")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concord.clients.remote import Concord
    from concord.core.errors import KBError
    from concord.core.reports import DocumentSlice as Passage
    from concord.core.reports import SyncReport
    from concord.index.notes import Note
    from concord.knowledge import KnowledgeBase
    from concord.types import Answer, Document, Hit, Request, Source

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "Concord",
    "Document",
    "Hit",
    "KBError",
    "KnowledgeBase",
    "Note",
    "Passage",
    "Request",
    "Source",
    "SyncReport",
    "__version__",
]

_HOMES = {
    "Concord": "clients.remote",
    "KBError": "core.errors",
    "KnowledgeBase": "knowledge",
    "Note": "index.notes",
    "Passage": "core.reports",
    "SyncReport": "core.reports",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `kb --help` pays for none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = import_module(f"{__name__}.{_HOMES.get(name, 'types')}")
    return getattr(home, "DocumentSlice" if name == "Passage" else name)
