"""Values as programs give them: one text or several, and what is said of a value of the wrong kind."""

from __future__ import annotations

from collections.abc import Iterable

from concord.core.errors import BadValue, shown


def as_texts(name: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return a tuple of texts; a single text is one of them, not its letters.

    Raises:
        BadValue: something else than text is among them.
    """
    if isinstance(given, str):
        return (given,)
    try:
        texts = tuple(given or ())
    except TypeError:
        raise refused(name, given, "a list of texts") from None
    for text in texts:
        if not isinstance(text, str):
            raise refused(f"one of {name}", text, "text")
    return texts


def refused(name: str, value: object, wanted: str) -> BadValue:
    """Return the error for a value of the wrong kind."""
    return BadValue(f"{name} cannot be {shown(value)}", hint=f"give {wanted}")
