"""A row names columns unless it holds values; in data, where nothing marks it, more speaks against that."""

from __future__ import annotations

import pytest

from concord.text.records import are_names, are_names_in_data


@pytest.mark.parametrize(
    ("cells", "is_head", "is_head_in_data"),
    [
        (("name", "colour"), True, True),
        (("", "colour", ""), True, False),
        (("country", "1850", "1900"), True, True),
        (("pear", "3"), False, False),
        (("pear", "1.5e-3"), False, False),
        (("pear", "Q3", "3rd"), True, True),
    ],
)
def test_numbers_are_values_and_years_are_names(cells: tuple[str, ...], is_head: bool, is_head_in_data: bool):
    assert (are_names(cells), are_names_in_data(cells)) == (is_head, is_head_in_data)
