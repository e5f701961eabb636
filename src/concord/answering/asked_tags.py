"""Which tags of a request are unknown, and which tags are there? For an answer without results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from concord.errors import nearest
from concord.types import Filter, Source

if TYPE_CHECKING:
    from concord.storage import Catalog

MOST_NAMED = 10  # tags shown to whoever has typed another
MOST_READ = 5000  # documents that are looked at for theirs: a store of more is read for a second, or longer


def about_tags(tags: Iterable[str], sources: Iterable[Source], catalog: Catalog) -> str:
    """Return the end of a sentence that names unknown tags and those there are; empty if all are known."""
    unknown = [
        tag for tag in tags if not catalog.count_documents(Filter(tags=(tag,), include_superseded=True))
    ]
    if not unknown:
        return ""
    held = Counter(tag for source in sources for tag in source.tags)
    held.update(tag for document in islice(catalog.documents(), MOST_READ) for tag in document.tags)
    if not held:
        return "; no document has any tag"
    meant = filter(None, (nearest(tag, held) for tag in unknown))
    known = list(dict.fromkeys([*meant, *(tag for tag, _ in held.most_common())]))
    more = " …" if len(known) > MOST_NAMED else ""
    return f"; no document has the tag {', '.join(unknown)}: there are {', '.join(known[:MOST_NAMED])}{more}"
