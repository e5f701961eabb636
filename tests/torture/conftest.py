"""Each test of a campaign runs once for every seed; `make test` runs a part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.scratch import scratch
from torture.campaigns import HERE, IS_WHOLE


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a campaign's test its seeds."""
    mark = metafunc.definition.get_closest_marker("campaign")
    if mark:
        metafunc.parametrize("seed", range(mark.kwargs["whole" if IS_WHOLE else "part"]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave campaigns out of `make quick`."""
    for item in items:
        if item.path.parent == HERE and item.get_closest_marker("campaign"):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[int, int], None]:
    """Say of a case that tries many things how many it tried and how many of them survived."""

    def count(tried: int, survived: int) -> None:
        record_property("counted", (tried, survived))

    return count


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder in memory where there is such a place: waiting for a disk is no part of most promises."""
    with scratch() as made:
        yield Path(made)
