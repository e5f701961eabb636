"""Fixtures of modules about vectors: stores that keep them inside or outside, nobody can tell which."""

from __future__ import annotations

import pytest

from contract.conftest import INDEXED, OUTSIDE, STORES, opened_for_a_test, opened_with_the_reference

EVERYWHERE = (*STORES, INDEXED, *OUTSIDE)
store_anywhere = pytest.fixture(params=EVERYWHERE, name="store")(opened_for_a_test)
rivals_anywhere = pytest.fixture(params=EVERYWHERE, name="rivals")(opened_with_the_reference)
