"""`python -m tests.torture [NAMES] [--jobs N] [--write]`: run campaigns whole, and print what came of them.

The exit status is 1 where more was lost than a promise allows. `--write` puts the figures into the page.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ["KB_TORTURE"] = "whole"

import pytest

from requirements import PROMISES
from torture.campaigns import HERE, PAGE, Counting, campaigns, table, written


def main(arguments: Sequence[str] | None = None) -> int:
    """Run campaigns, all or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("names", nargs="*", help="of campaigns: files test_NAME.py beside this one")
    parser.add_argument("--jobs", default="2", help="how many processes")
    parser.add_argument("--write", action="store_true", help="put the figures into the page")
    given = parser.parse_args(arguments)
    wanted = [each for each in campaigns() if not given.names or each.name in given.names]
    counting = Counting()
    files = [str(HERE / f"test_{each.name}.py") for each in wanted]
    workers = ("-n", given.jobs, "--dist", "worksteal")
    # Campaigns were imported to be counted, and with them libraries that bring plugins of pytest.
    quiet = ("--tb=line", "-W", "ignore:Module already imported")
    pytest.main([*files, *workers, *quiet, "-m", "campaign"], [counting])
    print(table((each.name, counting.tallies[each.name]) for each in wanted), *counting.said, sep="\n")
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        for each in wanted:
            page = written(page, each.name, PROMISES[each.promise].text, counting.tallies[each.name])
        PAGE.write_text(page, encoding="utf-8")
    return int(any(counting.tallies[each.name].lost > each.may_lose for each in wanted))


if __name__ == "__main__":
    sys.exit(main())
