"""Which campaigns there are, how a whole run of one is counted, and the page that shows the last.

A campaign is a file `test_NAME.py` beside this one. Its tests are marked with the promise that they try to
break and with how often:

    @pytest.mark.promise("torture.NAME")
    @pytest.mark.campaign(whole=500, part=6)
    def test_a_sentence(seed: int): ...

Each runs once for every seed, 0 to 499 in a whole run, 0 to 5 in `make test`; so a case that failed is run
again by its name in brackets. A test that tries many things at once says how many it tried, and how many of
these survived, by the fixture `counted`. `may_lose` is what the promise allows of a whole run.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "promises.md"
IS_WHOLE = os.environ.get("KB_TORTURE") == "whole"  # so that processes of xdist know it, too


class Campaign(Struct, frozen=True):
    """A promise, and how much of it may break."""

    name: str
    promise: str  # its id in `requirements`
    whole: int
    may_lose: int


class Tally(Struct):
    """What came of a campaign."""

    tried: int = 0
    lost: int = 0

    @property
    def survived(self) -> int:
        return self.tried - self.lost


def campaigns() -> Iterator[Campaign]:
    """Yield every campaign, by its name."""
    for path in sorted(HERE.glob("test_*.py")):
        marks = [_marks(test) for test in vars(importlib.import_module(f"torture.{path.stem}")).values()]
        found = [given for given in marks if "campaign" in given]
        if found:
            options = [given["campaign"].kwargs for given in found]
            yield Campaign(
                path.stem.removeprefix("test_"),
                found[0]["promise"].args[0],
                sum(given["whole"] for given in options),
                sum(given.get("may_lose", 0) for given in options),
            )


def _marks(test: Any) -> dict[str, pytest.Mark]:
    return {mark.name: mark for mark in getattr(test, "pytestmark", ())} if callable(test) else {}


class Counting:
    """A plugin of pytest that counts what came of each campaign."""

    def __init__(self) -> None:
        self.tallies: dict[str, Tally] = {}
        self.said: list[str] = []  # further figures

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a case when it has run, or when it could not be begun."""
        name = Path(report.location[0]).stem.removeprefix("test_")
        if report.when != "call" and not report.failed:
            return
        tally = self.tallies.setdefault(name, Tally())
        said: dict[str, Any] = dict(report.user_properties)
        tried, survived = said.get("counted", (1, int(report.passed)))
        tally.tried += tried
        tally.lost += tried - survived
        self.said += [f"{name}: {said['said']}"] if "said" in said else []


def table(rows: Iterator[tuple[str, Tally]]) -> str:
    """Return one table of what was tried, what survived and what was lost."""
    lines = [f"{name:<16} {t.tried:>8,} {t.survived:>8,} {t.lost:>8,}" for name, t in rows]
    return "\n".join([f"{'campaign':<16} {'tried':>8} {'survived':>8} {'lost':>8}", *lines])


def row(name: str, promise: str, tally: Tally | None) -> str:
    """Return a campaign's row of the page."""
    figures = f"{tally.tried:,} | {tally.survived:,} | {tally.lost:,}" if tally else "- | - | -"
    return f"| `{name}` | {promise} | {figures} |"


def written(page: str, name: str, promise: str, tally: Tally) -> str:
    """Return the page with a campaign's row as it is now."""
    new = row(name, promise, tally)
    return re.sub(rf"^\| `{name}` \|.*$", lambda _: new, page, flags=re.MULTILINE)
