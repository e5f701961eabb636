"""Modules that are imported when something of theirs is first used: a command pays for what it uses alone."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Late:
    """Stands for a module. Type checkers are shown the real one, by an import that only they read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def late(package: str, *names: str) -> list[Late]:
    """Return stand-ins for some modules of a package, in the order of their names."""
    return [Late(f"{package}.{name}") for name in names]
