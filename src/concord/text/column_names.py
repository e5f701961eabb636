"""Do these cells name the columns of a table? Numbers are values and name none, but years do.

Where the first row is drawn apart from the others, as in Markdown, that is all there is to ask. In data
nothing tells it from the rows below, so that more speaks against names there.
"""

from __future__ import annotations

from collections.abc import Sequence

from concord.text.tokens import pattern

_NUMBER = pattern(r"[-+(]?[$€£]?\d[\d.,:/ -]*+[%)]?(?:[eE][-+]?\d+)?")
_YEAR = pattern(r"(?:1[5-9]|20)\d\d")


def are_names(cells: Sequence[str]) -> bool:
    """Whether the cells of a row that stands apart name columns."""
    return all(map(_YEAR.fullmatch, _numbers(cells)))


def are_names_in_data(cells: Sequence[str]) -> bool:
    """Whether the first row of data names columns: each another, at most one missing, of years several."""
    numbers = _numbers(cells)
    is_series = not numbers or (len(numbers) > 1 and numbers == sorted(numbers))
    return are_names(cells) and is_series and len({*cells}) == len(cells)


def _numbers(cells: Sequence[str]) -> list[str]:
    return [cell for cell in cells if _NUMBER.fullmatch(cell)]
