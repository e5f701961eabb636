"""Cursors of listings: the name that the page before ended with, so that changes shift nothing."""

from __future__ import annotations

from concord.core.errors import BadValue
from concord.text.clean import encodable

_MARK = "after:"


def cursor_after(name: str) -> str:
    """Return the cursor of the page that follows a name."""
    return encodable(_MARK + name)


def name_before(cursor: str | None) -> str:
    """Return the name that a page follows; none is before the first page.

    Raises:
        BadValue: the cursor is none of ours.
    """
    if cursor is None:
        return ""
    if not cursor.startswith(_MARK):
        raise BadValue("this is not a cursor that was given here", hint="pass the next cursor as it is")
    return cursor.removeprefix(_MARK)
