"""The page of promises shows every campaign, with its promise word for word."""

from __future__ import annotations

from requirements import PROMISES
from torture.campaigns import PAGE, Tally, campaigns, row, written


def test_every_campaign_is_on_the_page_with_its_promise():
    page = PAGE.read_text(encoding="utf-8")
    for each in campaigns():
        start = row(each.name, PROMISES[each.promise].text, None).removesuffix("- | - | - |")
        assert f"\n{start}" in page, f"docs/promises.md lacks: {start}"


def test_figures_take_the_place_of_those_of_the_run_before():
    page = "\n".join(row(name, "holds", Tally(3, 1)) for name in ("a", "b"))
    assert written(page, "b", "holds", Tally(2000, 0)) == f"{row('a', 'holds', Tally(3, 1))}\n" + (
        "| `b` | holds | 2,000 | 2,000 | 0 |"
    )
