"""What a test needs beside Python and a disk: a server or the bundled model. `make quick` leaves it out then.

Fixtures, parameters and file names tell most of it; where they do not, a test is marked by hand. One that
uses what it is not marked for fails, so what `make quick` promises stays true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

P = ParamSpec("P")
T = TypeVar("T")

# Names of fixtures, and words of parameters such as `sqlite+qdrant-shim`.
TELLING = {
    "server": {
        "administrator",
        "qdrant_server",
        "shim",
        "postgresql",
        "qdrant-shim",
        "qdrant-server",
    },
    "model": {"own_model", "real", "bundled", "multilingual"},
}
FILES = {
    "server": ("test_postgres_",),
    "model": ("test_bundled_model", "test_multilingual"),
}
EXEMPT = "slow"  # left out of `make quick` for what it takes, so it may use anything

_used: set[str] = set()  # by the test that runs now, in this process


def mark(item: pytest.Item) -> None:
    """Mark a test by what its fixtures, parameters and file tell that it needs."""
    told = _fixtures(item) | _parameters(item)
    for marker, names in TELLING.items():
        if told & names or item.path.name.startswith(FILES[marker]):
            item.add_marker(marker)


def noting(marker: str, function: Callable[P, T]) -> Callable[P, T]:
    """Return a function whose every call notes that the test uses what the marker stands for."""

    def noted(*args: P.args, **kwargs: P.kwargs) -> T:
        _used.add(marker)
        return function(*args, **kwargs)

    return noted


def begin() -> None:
    """Forget what the last test used."""
    _used.clear()


def check(item: pytest.Item) -> None:
    """Fail a test that has used what it is not marked for."""
    unmarked = [name for name in sorted(_used) if not item.get_closest_marker(name)]
    if unmarked and not item.get_closest_marker(EXEMPT):
        pytest.fail(f"it uses what it is not marked for: @pytest.mark.{unmarked[0]}", pytrace=False)


def _fixtures(item: pytest.Item) -> set[str]:
    """Return the names of a test's fixtures, with those that they use themselves."""
    return set(getattr(item, "fixturenames", ()))


def _parameters(item: pytest.Item) -> set[str]:
    call = getattr(item, "callspec", None)
    values = call.params.values() if call else ()
    return {word for value in values if isinstance(value, str) for word in value.split("+")}
