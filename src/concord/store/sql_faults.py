"""How the errors of an SQL engine become ours, whichever engine it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from concord.core.errors import BadValue, KBError

Place = TypeVar("Place")
Kinds = type[Exception] | tuple[type[Exception], ...]
# What is raised, and what to tell the user of it; None of a fault of ours. The first row that fits decides.
Explanations = Iterable[tuple[Kinds, Callable[[Exception, Place], KBError | None]]]


@contextmanager
def translated(raised: Kinds, explanations: Explanations[Place], place: Place) -> Iterator[None]:
    """Turn what an engine raises in the block into a KBError; what only a fault of ours can cause passes."""
    try:
        yield
    except raised as fault:
        explain = next((explain for kinds, explain in explanations if isinstance(fault, kinds)), None)
        error = explain(fault, place) if explain else None
        if error is None:
            raise
        raise error from fault
    except UnicodeEncodeError as fault:  # a lone surrogate, as in a file name that is not UTF-8
        raise BadValue(
            "text that is not valid Unicode cannot be stored", hint="rename or convert it"
        ) from fault
