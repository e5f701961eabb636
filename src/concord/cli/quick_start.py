"""Import what every command needs without what hardly any uses: a search by words takes a few milliseconds.

What is left out is not lost: click and msgspec are given stand-ins for some modules while they are imported.
Whoever imports these modules later gets the real ones; so does click when it asks a stand-in for more.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

# New objects before the collector looks for cycles among them. Importing makes thousands and no garbage: at
# Python's own 700 it would look forty times before a quick search is over, a twentieth of what that takes.
FEW_SWEEPS = 20_000


class StandIn(ModuleType):
    """A module of which a few functions are here, and the rest in the real one."""

    def __init__(self, name: str, **functions: Any) -> None:
        super().__init__(name)
        vars(self).update(functions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python itself asks of every module
            raise AttributeError(name)
        return getattr(_real(self.__name__), name)


def import_click() -> None:
    """Import click without `inspect` (for pages of help), translations and `platform` (for an id's maker)."""
    gc.set_threshold(FEW_SWEEPS)
    with (
        _instead("inspect", StandIn("inspect", cleandoc=_without_indentation)),
        _instead("gettext", StandIn("gettext", gettext=str, ngettext=_counted)),
        _instead("platform", StandIn("platform", system=lambda: os.uname().sysname)),
    ):
        import click  # noqa: F401


def import_structs() -> None:
    """Import msgspec without `textwrap` (for JSON schemas) and typing_extensions (for an older Python)."""
    with _instead("textwrap", StandIn("textwrap")), _instead("typing_extensions", None):
        import msgspec  # noqa: F401


@contextmanager
def _instead(name: str, stand_in: StandIn | None) -> Iterator[None]:
    """Let imports of a module find another, or none; a module that is there already stays."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = stand_in  # type: ignore[assignment]  # with None, an import of it fails
    try:
        yield
    finally:
        if name in sys.modules and sys.modules[name] is stand_in:
            del sys.modules[name]


def _real(name: str) -> ModuleType:
    if isinstance(sys.modules.get(name), StandIn):
        del sys.modules[name]
    return import_module(name)


def _without_indentation(text: str) -> str:
    if "\n" in text:
        return str(_real("inspect").cleandoc(text))
    return text.expandtabs().lstrip()


def _counted(single: str, several: str, number: int) -> str:
    return single if number == 1 else several
