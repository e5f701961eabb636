"""The page of promises shows every campaign, with its promise word for word."""

from __future__ import annotations

from requirements import PROMISES
from torture.campaigns import PAGE, campaigns, row


def test_every_campaign_is_on_the_page_with_its_promise():
    page = PAGE.read_text(encoding="utf-8")
    for each in campaigns():
        start = row(each.name, PROMISES[each.promise].text, None).removesuffix("- | - | - |")
        assert f"\n{start}" in page, f"docs/promises.md lacks: {start}"
